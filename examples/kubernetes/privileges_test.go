package kubernetes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// Nothing asks for more than the agent on a node needs, and that is little.
func TestPrivileges(t *testing.T) {
	for _, p := range templates(t) {
		agent := p.folder == "base" || p.folder == "host-engine"
		if s := p.Spec; s.HostNetwork || s.HostIPC || s.HostPID != agent {
			t.Errorf("%s: host network %v, IPC %v, PID %v", p.folder, s.HostNetwork, s.HostIPC, s.HostPID)
		}
		if token := p.Spec.AutomountServiceAccountToken; token == nil || *token {
			t.Errorf("%s: its pods have a token of the API server", p.folder)
		}
		if sc := p.Spec.SecurityContext; sc == nil || sc.SeccompProfile == nil || sc.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: no seccomp profile", p.folder)
		} else if nobody := sc.RunAsNonRoot != nil && *sc.RunAsNonRoot && *sc.RunAsUser > 0; nobody == agent {
			t.Errorf("%s: not root: %v", p.folder, nobody)
		}
		for _, c := range p.containers() {
			may(t, p.folder, c, agent)
		}
	}
}

// may checks what one container may do.
func may(t *testing.T, folder string, c core.Container, agent bool) {
	t.Helper()
	sc := c.SecurityContext
	if sc == nil {
		t.Fatalf("%s: %s has no security context", folder, c.Name)
	}
	isSet := func(b *bool, want bool) bool { return b != nil && *b == want }
	if sc.Privileged != nil || !isSet(sc.AllowPrivilegeEscalation, false) || !isSet(sc.ReadOnlyRootFilesystem, true) {
		t.Errorf("%s: %s may do too much: %v", folder, c.Name, sc)
	}
	if sc.Capabilities == nil || !slices.Equal(sc.Capabilities.Drop, []core.Capability{"ALL"}) {
		t.Errorf("%s: %s does not drop all capabilities", folder, c.Name)
	}
	var allowed []core.Capability
	if agent && c.Name == "datawait" {
		allowed = []core.Capability{"DAC_OVERRIDE"}
	}
	if !slices.Equal(sc.Capabilities.Add, allowed) {
		t.Errorf("%s: %s adds %v, and may add %v", folder, c.Name, sc.Capabilities.Add, allowed)
	}
	if root := sc.RunAsUser != nil && *sc.RunAsUser == 0; root != agent {
		t.Errorf("%s: %s runs as root: %v", folder, c.Name, root)
	}
}

// What pods that train need is allowed in a namespace at the level `restricted` (Pod Security Standards), hostPath of the first form apart.
func TestTheSidecarFormIsRestricted(t *testing.T) {
	for _, p := range templates(t) {
		if p.folder != "sidecar" && p.folder != "training" {
			continue
		}
		for _, v := range p.Spec.Volumes {
			if spool := p.folder == "training" && v.Name == "spool"; v.EmptyDir == nil != spool {
				t.Errorf("%s: volume %s is %v", p.folder, v.Name, v.VolumeSource)
			}
		}
		for _, c := range p.containers() {
			if sc := c.SecurityContext; len(sc.Capabilities.Add) > 0 || sc.RunAsUser != nil || sc.RunAsNonRoot != nil {
				t.Errorf("%s: %s has a user or capabilities of its own", p.folder, c.Name)
			}
			if _, bounded := c.Resources.Limits[core.ResourceMemory]; !bounded {
				t.Errorf("%s: the memory of %s is not bounded", p.folder, c.Name)
			}
		}
	}
}

// The agent sees the kubelet and the logs, and cannot change them.
func TestMountsOfTheNodeAreReadOnly(t *testing.T) {
	written := []string{"/run/datawait", "/var/lib/datawait", "/tmp"}
	for _, p := range templates(t) {
		if p.folder == "base" || p.folder == "host-engine" {
			for _, m := range container(t, p, "datawait").VolumeMounts {
				if m.ReadOnly == slices.Contains(written, m.MountPath) {
					t.Errorf("%s: %s is read-only: %v", p.folder, m.MountPath, m.ReadOnly)
				}
			}
		}
	}
}

// privileged are lines that give something away.
var privileged = regexp.MustCompile(`^\s*(hostPID: true|hostNetwork: true|hostIPC: true|privileged: true|runAsUser: 0|hostPath:.*|- [A-Z]+_[A-Z_]+|add:.*\S.*)$`)

// Every privilege has a comment right before it that says what it is for; a folder of the node, before the name of its volume.
func TestEveryPrivilegeIsExplained(t *testing.T) {
	files, err := filepath.Glob("base/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("manifests: %v, %v", files, err)
	}
	explained := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			if !privileged.MatchString(line) {
				continue
			}
			at := i - 1
			if strings.Contains(line, "hostPath:") {
				at--
			}
			if !commented(lines, at) {
				t.Errorf("%s:%d: nothing says why: %s", file, i+1, strings.TrimSpace(line))
				continue
			}
			explained++
		}
	}
	if explained != 8 { // hostPID, root twice, a capability, four folders of the node
		t.Errorf("%d privileges are explained, and 8 are known", explained)
	}
}

// commented reports whether the comment that ends at this line begins with PRIVILEGE.
func commented(lines []string, at int) bool {
	for ; at >= 0; at-- {
		text, ok := strings.CutPrefix(strings.TrimSpace(lines[at]), "# ")
		switch {
		case !ok:
			return false
		case strings.HasPrefix(text, "PRIVILEGE "):
			return true
		}
	}
	return false
}
