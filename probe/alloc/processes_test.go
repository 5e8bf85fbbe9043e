package alloc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

func TestControlGroupsTellWhoseAProcessIs(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		group string
		want  recording.Holder
	}{
		{"0::/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0", recording.Holder{Job: "1392969"}},
		{"0::/system.slice/node7_slurmstepd.scope/job_5/step_batch/user/task_special", recording.Holder{Job: "5"}},
		{"12:pids:/user.slice\n10:devices:/slurm/uid_2101171/job_280678/step_interactive/task_0\n1:name=systemd:/user.slice/x.scope", recording.Holder{Job: "280678"}},
		{"4:memory:/slurm_n1/uid_1/job_9/step_0", recording.Holder{Job: "9"}},
		{"0::/user.slice/job_9/x", recording.Holder{Job: "x"}},
		{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12345678_9abc_def0_1234_56789abcdef0.slice/cri-containerd-" + id + ".scope",
			recording.Holder{PodUID: "12345678-9abc-def0-1234-56789abcdef0"}},
		{"11:devices:/kubepods/besteffort/pod12345678-9abc-def0-1234-56789abcdef0/" + id, recording.Holder{PodUID: "12345678-9abc-def0-1234-56789abcdef0"}},
		{"0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" + id, recording.Holder{PodUID: "0123456789abcdef0123456789abcdef"}},
		{"0::/system.slice/docker-" + id + ".scope", recording.Holder{Job: "docker-0123456789ab"}},
		{"0::/docker/" + id, recording.Holder{Job: "container-0123456789ab"}},
		{"0::/user.slice/user-1000.slice/session-3.scope", recording.Holder{Job: "session-3.scope"}},
		{"0::/system.slice/train.service/payload", recording.Holder{Job: "train.service"}},
		{"0::/", recording.Holder{}},
		{"0::/a\x1b[2J", recording.Holder{Job: "a\uFFFD[2J"}},
		{"", recording.Holder{}},
		{"garbage", recording.Holder{}},
	} {
		if got := holderOf([]byte(c.group)); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%q: %+v, want %+v", c.group, got, c.want)
		}
	}
}

// crowd is a /proc of processes.
type crowd struct {
	t    testing.TB
	proc string
}

func newCrowd(t testing.TB, namespace string) crowd {
	proc := t.TempDir()
	write(t, filepath.Join(proc, "self/ns/x"), "")
	if err := os.Symlink(namespace, filepath.Join(proc, "self/ns/pid")); err != nil {
		t.Fatal(err)
	}
	return crowd{t, proc}
}

func (c crowd) run(pid int, name string, start int, group string) {
	dir := filepath.Join(c.proc, fmt.Sprint(pid))
	write(c.t, filepath.Join(dir, "stat"), fmt.Sprintf("%d (%s) S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 %d 1 1", pid, name, start))
	write(c.t, filepath.Join(dir, "cgroup"), group)
}

func (c crowd) end(pid int) { os.RemoveAll(filepath.Join(c.proc, fmt.Sprint(pid))) }

func (c crowd) teller(hidden ...int) *processes {
	return &processes{proc: c.proc, alive: func(pid int) bool {
		for _, h := range hidden {
			if h == pid {
				return true
			}
		}
		_, err := os.Stat(filepath.Join(c.proc, fmt.Sprint(pid)))
		return err == nil
	}}
}

const job5, job6 = "0::/system.slice/slurmstepd.scope/job_5/step_0", "0::/system.slice/slurmstepd.scope/job_6/step_0"

func TestProcessesAreTiedToTheirJobs(t *testing.T) {
	c := newCrowd(t, initialPIDs)
	c.run(12, "python) S (x", 100, job5)
	c.run(11, "python", 100, job5)
	c.run(13, "python", 100, job6)
	got, err := c.teller().look(context.Background(), View{Running: map[string][]int{gpuA: {12, 13, 11}}})
	if err != nil {
		t.Fatal(err)
	}
	got.sort()
	if text := fmt.Sprint(got[gpuA].holders); text != "[{5     [11 12] []} {6     [13] []}]" {
		t.Error(text)
	}
}

// In a container a process is called by another number, and that is what its ring declares.
func TestAProcessInAContainerIsKnownAsItCallsItself(t *testing.T) {
	for _, c := range []struct{ name, space, status, want string }{
		{"in a container", "pid:[4026532999]", "Name:\tpython\nNSpid:\t11\t7\n", "[{7 4026532999}]"},
		{"in one within one", "pid:[4026532999]", "NSpid:\t11\t70\t1\n", "[{1 4026532999}]"},
		{"on the machine", initialPIDs, "NSpid:\t11\n", "[]"},
		{"of a kernel that does not tell", "pid:[4026532999]", "Name:\tpython\n", "[]"},
		{"of one that tells nonsense", "pid:[x]", "NSpid:\n", "[]"},
		{"of somebody else", "", "NSpid:\t11\t7\n", "[]"},
	} {
		crowd := newCrowd(t, initialPIDs)
		crowd.run(11, "python", 100, job5)
		write(t, filepath.Join(crowd.proc, "11/status"), c.status)
		if c.space != "" {
			write(t, filepath.Join(crowd.proc, "11/ns/x"), "")
			if err := os.Symlink(c.space, filepath.Join(crowd.proc, "11/ns/pid")); err != nil {
				t.Fatal(err)
			}
		}
		got, err := crowd.teller().look(context.Background(), View{Running: map[string][]int{gpuA: {11}}})
		if err != nil || fmt.Sprint(got[gpuA].holders[0].Inside) != c.want {
			t.Errorf("%s: %+v %v", c.name, got[gpuA], err)
		}
	}
}

func TestThePodOfAProcessIsNamedByTheFolderOfItsLogs(t *testing.T) {
	const uid = "12345678-9abc-def0-1234-56789abcdef0"
	c := newCrowd(t, initialPIDs)
	c.run(11, "python", 100, "0::/kubepods/besteffort/pod"+uid)
	p := c.teller()
	p.pods = t.TempDir()
	for _, name := range []string{"team-a_train-0_" + uid, "team-a_train-1_00000000-9abc-def0-1234-56789abcdef0", "odd", "x_" + uid} {
		write(t, filepath.Join(p.pods, name, "0.log"), "")
	}
	got, err := p.look(context.Background(), View{Running: map[string][]int{gpuA: {11}}})
	if err != nil {
		t.Fatal(err)
	}
	wantSaid(t, got, map[string]string{gpuA: "team-a/train-0///" + uid})
}

func TestOfAGPUWhoseProcessesHaveEndedNothingIsSaid(t *testing.T) {
	c := newCrowd(t, initialPIDs)
	c.run(11, "python", 100, job5)
	p, v := c.teller(), View{Running: map[string][]int{gpuA: {11}}}
	first, _ := p.look(context.Background(), v)
	c.end(11)
	second, err := p.look(context.Background(), v)
	c.run(11, "bash", 900, job6)
	p.look(context.Background(), v)
	c.run(11, "python", 1200, job5)
	third, _ := p.look(context.Background(), v) // another process by the same number
	if jobs(third) != "5 -" {
		t.Errorf("at last %s", jobs(third))
	}
	if jobs(first) != "5 -" || second == nil || len(second) != 0 || err != nil {
		t.Errorf("%s, then %v %v", jobs(first), second, err)
	}
}

func TestAnEmptyListOfProcessesCallsNoGPUFree(t *testing.T) {
	got, err := newCrowd(t, initialPIDs).teller().look(context.Background(), View{Running: map[string][]int{gpuA: {0}}})
	if got == nil || len(got) != 0 || err != nil {
		t.Errorf("%v %v", got, err)
	}
}

func TestAProcessThatIsHiddenIsThereAllTheSame(t *testing.T) {
	c := newCrowd(t, initialPIDs)
	got, err := c.teller(11).look(context.Background(), View{Running: map[string][]int{gpuA: {11}}})
	if err != nil || len(got[gpuA].holders) != 1 || got[gpuA].holders[0].PIDs[0] != 11 || got[gpuA].holders[0].Job != "" {
		t.Errorf("%+v %v", got[gpuA], err)
	}
}

func TestTheServerOfMPSSharesAndHoldsNothing(t *testing.T) {
	c := newCrowd(t, initialPIDs)
	c.run(9, "nvidia-cuda-mps", 1, "0::/system.slice/mps.service")
	c.run(11, "python", 100, job5)
	got, _ := c.teller().look(context.Background(), View{Running: map[string][]int{gpuA: {9, 11}}})
	wantSaid(t, got, map[string]string{gpuA: "5 (mps)"})
}

func TestInANamespaceOfItsOwnPidsOfTheDriverMeanNothing(t *testing.T) {
	c := newCrowd(t, "pid:[4026532999]")
	c.run(11, "python", 100, job5)
	got, err := c.teller().look(context.Background(), View{Running: map[string][]int{gpuA: {11}}})
	if got != nil || err == nil || !strings.Contains(err.Error(), "PID namespace of its own") {
		t.Errorf("%v %v", got, err)
	}
	if got, err := c.teller().look(context.Background(), View{}); got != nil || err != nil {
		t.Errorf("without a process: %v %v", got, err)
	}
}

func FuzzNamesOfOthers(f *testing.F) {
	f.Add("GPU-a::2", "0::/system.slice/slurmstepd.scope/job_5/step_0")
	f.Add("nvidia0/gi1", "11:devices:/kubepods/besteffort/pod12345678-9abc-def0-1234-56789abcdef0/x")
	f.Add("MIG-GPU-a/1/0", "0::/\xff\x1b")
	f.Fuzz(func(t *testing.T, id, group string) {
		if d, ok := parseDeviceID(id); ok && (d.uuid == "") == (d.number < 0) {
			t.Errorf("%q is %+v", id, d)
		}
		h := holderOf([]byte(group))
		for _, s := range []string{h.Job, h.PodUID, recording.Name(group)} {
			if len(s) > 3*recording.MaxName || strings.ContainsAny(s, "\x00\x1b\n\u202e") {
				t.Errorf("%q names %q", group, s)
			}
		}
	})
}
