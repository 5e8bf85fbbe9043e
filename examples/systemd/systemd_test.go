// Package systemd has systemd itself read the unit, where there is one.
package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	service = "datawait.service"
	binary  = "/usr/local/bin/datawait"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("NOT TESTED: no %s here", name)
	}
	return path
}

// settings are the lines of the unit, by name.
func settings(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(read(t, service)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			found[name] = value
		}
	}
	return found
}

// verified is a copy of the unit that names a program which is there.
func verified(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), service)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(read(t, service), binary, "/bin/true")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSystemdTakesTheUnit(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	out, err := exec.Command(analyze, "verify", "--man=no", verified(t)).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// Its exposure in systemd's own reckoning, 0 to 10; without the settings this unit would have 9.6.
func TestTheServiceIsLockedIn(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	out, err := exec.Command(analyze, "security", "--no-pager", "--offline=true", "--threshold=30", verified(t)).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheUnitAllowsWhatServeNeedsAndNoMore(t *testing.T) {
	unit := settings(t)
	for name, want := range map[string]string{
		"Type": "notify", "DynamicUser": "yes", "ProtectSystem": "strict", "StateDirectory": "datawait",
		"CapabilityBoundingSet": "CAP_DAC_OVERRIDE", "AmbientCapabilities": "CAP_DAC_OVERRIDE",
	} {
		if unit[name] != want {
			t.Errorf("%s=%s, want %s", name, unit[name], want)
		}
	}
	spool := regexp.MustCompile(`DATAWAIT_SERVE_SPOOL=(\S+)`).FindStringSubmatch(read(t, service))
	if spool == nil || unit["ReadWritePaths"] != spool[1] {
		t.Fatalf("the spool is %v, and what may be written to is %s", spool, unit["ReadWritePaths"])
	}
	if !strings.Contains(read(t, "datawait.conf"), "\nd "+spool[1]+" 1777 root root -\n") {
		t.Errorf("systemd-tmpfiles does not make %s for all users", spool[1])
	}
}

// systemd-tmpfiles makes the folders, with their modes, in a root of the test's.
func TestTmpfiles(t *testing.T) {
	tmpfiles := tool(t, "systemd-tmpfiles")
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root makes root's folders")
	}
	root := t.TempDir()
	conf, err := filepath.Abs("datawait.conf")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tmpfiles, "--create", "--root="+root, conf).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(filepath.Join(root, "run/datawait/spool"))
	if err != nil {
		t.Fatal(err)
	}
	if want := os.ModeDir | os.ModeSticky | 0o777; info.Mode() != want {
		t.Errorf("the spool has mode %v, want %v", info.Mode(), want)
	}
}
