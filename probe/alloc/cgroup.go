package alloc

import (
	"bufio"
	"bytes"
	"cmp"
	"regexp"
	"strings"

	"github.com/datawait/datawait/probe/recording"
)

// Names of control groups, as those who make them give them.
var (
	// job_280678 below a group of slurmd's: /slurm/uid_1000/job_280678/step_0/task_0 in version 1,
	// /system.slice/slurmstepd.scope/job_280678/step_0/user/task_0 in version 2 (Slurm 23.02, src/plugins/cgroup/v1 and v2).
	slurmJob = regexp.MustCompile(`^job_([0-9]{1,10})$`)
	// pod<uid>, in systemd's names with underscores; the UID of a static pod is a hash (kubelet/cm/pod_container_manager_linux.go).
	podGroup = regexp.MustCompile(`(?:^|-)pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$`)
	// <id>, docker-<id>.scope, libpod-<id>.scope: a container's
	container = regexp.MustCompile(`^(?:([a-z-]+)-)?([0-9a-f]{64})(?:\.scope)?$`)
)

// holderOf reads from the control groups of a process (/proc/PID/cgroup, cgroups(7)) whose it is.
func holderOf(cgroup []byte) recording.Holder {
	other := ""
	for lines := bufio.NewScanner(bytes.NewReader(cgroup)); lines.Scan(); {
		_, rest, _ := strings.Cut(lines.Text(), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		if job := jobOf(group); job != "" {
			return recording.Holder{Job: job}
		}
		if uid := podOf(group); uid != "" {
			return recording.Holder{PodUID: uid}
		}
		if controllers == "" || controllers == "name=systemd" { // the hierarchy that names sessions and services
			other = cmp.Or(other, nameOf(group))
		}
	}
	return recording.Holder{Job: other}
}

func jobOf(group string) string {
	under := false
	for part := range strings.SplitSeq(group, "/") {
		if m := slurmJob.FindStringSubmatch(part); m != nil && under {
			return m[1]
		}
		under = under || part == "slurm" || strings.HasPrefix(part, "slurm_") || strings.HasSuffix(part, "slurmstepd.scope")
	}
	return ""
}

func podOf(group string) string {
	for part := range strings.SplitSeq(group, "/") {
		if m := podGroup.FindStringSubmatch(part); m != nil {
			return strings.ReplaceAll(m[1], "_", "-")
		}
	}
	return ""
}

// nameOf makes a name of a control group that is no scheduler's: its container, or its innermost service, scope or folder.
func nameOf(group string) string {
	name := ""
	for part := range strings.SplitSeq(group, "/") {
		if m := container.FindStringSubmatch(part); m != nil {
			return cmp.Or(m[1], "container") + "-" + m[2][:12]
		}
		if part != "" && !strings.HasSuffix(part, ".slice") && !strings.HasSuffix(name, ".service") && !strings.HasSuffix(name, ".scope") {
			name = part
		}
	}
	return recording.Name(name)
}
