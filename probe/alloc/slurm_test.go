package alloc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// machine makes a /proc with GPUs: the first is /dev/nvidia0 and the last on the bus.
func machine(t *testing.T, byMinor ...string) string {
	t.Helper()
	proc := t.TempDir()
	for minor, uuid := range byMinor {
		address := fmt.Sprintf("0000:%02x:00.0", 0xc0-minor)
		write(t, filepath.Join(proc, "driver/nvidia/gpus", address, "information"), told(uuid, minor))
	}
	return proc
}

// straight is a machine whose device files are in the order of the bus.
func straight(t *testing.T, uuids ...string) string {
	t.Helper()
	proc := t.TempDir()
	for i, uuid := range uuids {
		write(t, filepath.Join(proc, "driver/nvidia/gpus", fmt.Sprintf("0000:%02x:00.0", 7+i), "information"), told(uuid, i))
	}
	return proc
}

func told(uuid string, minor int) string {
	return fmt.Sprintf("Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 345\nGPU UUID: \t %s\nBus Type: \t PCIe\nDevice Minor: \t %d\nGPU Excluded:\t No\n", uuid, minor)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// environ is an environment of pairs "NAME=value".
func environ(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if value, ok := strings.CutPrefix(p, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestWhatSlurmGaveThisJob(t *testing.T) {
	const ours = "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n"
	for _, c := range []struct {
		name   string
		env    []string
		cgroup string
		want   string // jobs of GPU a and GPU b
		why    string
	}{
		{"a batch script", []string{"SLURM_JOB_ID=77", "SLURM_JOB_GPUS=1", "SLURM_NODEID=0"}, ours, "- 77", ""},
		{"a step", []string{"SLURM_JOB_ID=77", "SLURM_STEP_GPUS=0,1"}, ours, "77 77", ""},
		{"a step with the script's environment of another node", []string{"SLURM_JOB_ID=77", "SLURM_JOB_GPUS=0", "SLURM_STEP_GPUS=1", "SLURM_NODEID=1"}, ours, "- 77", ""},
		{"the script's environment on another node", []string{"SLURM_JOB_ID=77", "SLURM_JOB_GPUS=0", "SLURM_NODEID=1"}, ours, "- -", ""},
		{"version 1", []string{"SLURM_JOB_ID=77", "SLURM_JOB_GPUS=0"}, "10:devices:/slurm/uid_1000/job_77/step_batch/task_0\n", "77 -", ""},
		{"no control groups, on the node", []string{"SLURM_JOB_ID=77", "SLURM_JOB_GPUS=0", "SLURMD_NODENAME=n1"}, "0::/\n", "77 -", ""},
		{"a shell on the login node", []string{"SLURM_JOB_ID=77", "SLURM_JOB_GPUS=0"}, "0::/user.slice\n", "- -", ""},
		{"the environment of another job", []string{"SLURM_JOB_ID=78", "SLURM_JOB_GPUS=0", "SLURMD_NODENAME=n1"}, ours, "- -", ""},
		{"only a request", []string{"SLURM_JOB_ID=77", "CUDA_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=" + gpuA}, ours, "- -", ""},
		{"no Slurm", []string{"CUDA_VISIBLE_DEVICES=" + gpuA}, "0::/\n", "- -", ""},
		{"UUIDs", []string{"SLURM_JOB_ID=77", "SLURM_JOB_GPUS=" + gpuB}, ours, "- 77", ""},
		{"nonsense", []string{"SLURM_JOB_ID=77", "SLURM_JOB_GPUS=0-1"}, ours, "- -", "is no number of a GPU"},
		{"a GPU too many", []string{"SLURM_JOB_ID=77", "SLURM_JOB_GPUS=7"}, ours, "- -", "no GPU 7"},
		{"an odd job id", []string{"SLURM_JOB_ID=7;rm", "SLURM_JOB_GPUS=0", "SLURMD_NODENAME=n1"}, "0::/\n", "- -", ""},
	} {
		proc := straight(t, gpuA, gpuB)
		write(t, filepath.Join(proc, "self/cgroup"), c.cgroup)
		got, err := (&slurm{env: environ(c.env...), numberer: numberer{proc: proc}}).look(context.Background(), View{})
		if text := jobs(got); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
	}
}

// jobs writes whose GPU a and GPU b are.
func jobs(c claims) string {
	var words []string
	for _, uuid := range []string{gpuA, gpuB} {
		switch one := c[uuid]; {
		case one == nil:
			words = append(words, "-")
		case len(one.holders) == 0:
			words = append(words, "free")
		default:
			var names []string
			for _, h := range one.holders {
				names = append(names, h.Job)
			}
			words = append(words, strings.Join(names, "+"))
		}
	}
	return strings.Join(words, " ")
}

func TestANumberCountsWhereAllOrdersAgree(t *testing.T) {
	index := func(i int64, uuid string) recording.GPUNote {
		return recording.GPUNote{UUID: uuid, Index: unit.Some(i)}
	}
	sliced := straight(t, gpuA, gpuB)
	write(t, filepath.Join(sliced, "driver/nvidia/capabilities/gpu1/mig/gi1/access"), "")
	closed := straight(t, "GPU-????????-????-????-????-????????????", gpuB)
	for _, c := range []struct {
		name, proc string
		gpus       []recording.GPUNote
		want, why  string
	}{
		{"one order", straight(t, gpuA, gpuB), nil, "", ""},
		{"two orders", machine(t, gpuA, gpuB), nil, "", "one order by device file and another along the PCI bus"},
		{"slices", sliced, nil, "", "a GPU or a slice"},
		{"slices that a source saw", straight(t, gpuA, gpuB), []recording.GPUNote{{UUID: "MIG-x", Parent: gpuA}}, "", "a GPU or a slice"},
		{"a GPU that nobody has opened", closed, nil, "", "nobody tells its UUID"},
		{"no driver here, and a source that numbers", t.TempDir(), []recording.GPUNote{index(0, gpuA)}, "", ""},
		{"nobody tells", t.TempDir(), nil, "", "nobody tells its UUID"},
		{"a driver and a source that counts otherwise, as in a container", machine(t, gpuB, gpuA), []recording.GPUNote{index(0, gpuA)}, "", "one order"},
	} {
		uuid, err := readNumbering(c.proc, c.gpus).whole(0)
		if c.why == "" && (err != nil || uuid != gpuA) || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %q %v", c.name, uuid, err)
		}
	}
}

// Its answer costs a lock that the job needs: it is asked while it has not told of every GPU, and not where there is no number to read.
func TestTheDriverIsAskedOnlyForWhatIsNotKnown(t *testing.T) {
	proc := straight(t, "GPU-????????-????-????-????-????????????", gpuB)
	n := numberer{proc: proc}
	if _, err := n.now(nil).whole(0); err == nil {
		t.Error("a GPU that nobody has opened is known")
	}
	write(t, filepath.Join(proc, "driver/nvidia/gpus/0000:07:00.0/information"), told(gpuA, 0))
	before, _ := n.now(nil).whole(0)
	os.RemoveAll(filepath.Join(proc, "driver"))
	after, err := n.now(nil).whole(0)
	if before != gpuA || after != gpuA || err != nil {
		t.Errorf("%q, then %q %v", before, after, err)
	}
	if _, err := n.now([]recording.GPUNote{{UUID: "MIG-x", Parent: gpuA}}).whole(0); err == nil {
		t.Error("slices that came later are not seen")
	}
	idle := &slurm{env: environ("CUDA_VISIBLE_DEVICES=0"), numberer: numberer{proc: straight(t, gpuA)}}
	if _, err := idle.look(context.Background(), View{}); err != nil || idle.told != nil {
		t.Errorf("asked although there is no Slurm: %v", err)
	}
}

func TestAJobMappingNamesTheJobsOfAGPU(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
		why   string
	}{
		{"one each", map[string]string{"0": "4711\n", "1": "4712\n"}, "4711 4712", ""},
		{"two jobs on one, and a free one", map[string]string{"0": "4711\n4713\n\n", "1": ""}, "4711+4713 free", ""},
		{"a GPU without a file", map[string]string{"1": "9"}, "- 9", ""},
		{"other files", map[string]string{"0": "1", "README": "x", "01": "2", "-1": "3", "1.txt": "4", "0x1": "5"}, "1 -", ""},
		{"a GPU that is not here", map[string]string{"0": "1", "7": "2"}, "1 -", "whose GPU 7 is"},
		{"control characters", map[string]string{"0": "a\x1b[2Jb\r\n"}, "a\uFFFD[2Jb -", ""},
		{"a file that is too long", map[string]string{"0": strings.Repeat("1\n", maxSmall), "1": "2"}, "- 2", "longer than"},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			write(t, filepath.Join(dir, name), text)
		}
		if err := os.Mkdir(filepath.Join(dir, "3"), 0o755); err != nil {
			t.Fatal(err)
		}
		got, err := (&slurm{folder: dir, env: environ(), numberer: numberer{proc: straight(t, gpuA, gpuB)}}).look(context.Background(), View{})
		got.sort()
		if text := jobs(got); text != c.want || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %s, want %s; %v", c.name, text, c.want, err)
		}
	}
}

func TestAMappedInstanceIsTheSliceThatASourceSaw(t *testing.T) {
	dir, proc := t.TempDir(), straight(t, gpuA, gpuB)
	write(t, filepath.Join(dir, "1.5"), "88\n")
	write(t, filepath.Join(dir, "1.6"), "89\n")
	v := View{GPUs: []recording.GPUNote{
		{UUID: "MIG-a", Parent: gpuA, GI: unit.Some[int64](5)}, {UUID: "MIG-b", Parent: gpuB, GI: unit.Some[int64](5)}, {UUID: "MIG-c", Parent: gpuB, GI: unit.Some[int64](1)}}}
	got, err := (&slurm{folder: dir, env: environ(), numberer: numberer{proc: proc}}).look(context.Background(), v)
	wantSaid(t, got, map[string]string{"MIG-b": "88"})
	if err == nil || !strings.Contains(err.Error(), "GPU instance 6") {
		t.Errorf("%v", err)
	}
}

func TestAFolderOfAMillionFilesIsNoJobMapping(t *testing.T) {
	dir := t.TempDir()
	for i := range maxFiles + 600 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("job-%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	got, err := (&slurm{folder: dir, env: environ(), numberer: numberer{proc: straight(t, gpuA)}}).look(context.Background(), View{})
	if got != nil || err == nil || !strings.Contains(err.Error(), "so it is none") {
		t.Errorf("%v %v", got, err)
	}
}

// A pipe that nobody writes to would hold up whoever opens it.
func TestWhatIsNoFileInAJobMappingIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "1")); err != nil {
		t.Fatal(err)
	}
	got, err := (&slurm{folder: dir, env: environ(), numberer: numberer{proc: straight(t, gpuA, gpuB)}}).look(context.Background(), View{})
	if len(got) != 0 || err != nil {
		t.Errorf("%v %v", got, err)
	}
}

func TestAMappingAndAnEnvironmentThatContradictAreNotBelieved(t *testing.T) {
	dir, proc := t.TempDir(), straight(t, gpuA, gpuB)
	write(t, filepath.Join(dir, "0"), "1\n")
	write(t, filepath.Join(dir, "1"), "77\n78\n")
	got, err := (&slurm{folder: dir, env: environ("SLURM_JOB_ID=77", "SLURM_JOB_GPUS=0,1", "SLURMD_NODENAME=n"), numberer: numberer{proc: proc}}).look(context.Background(), View{})
	got.sort()
	if jobs(got) != "- 77+78" || err == nil || !strings.Contains(err.Error(), "job 77 has GPU "+gpuA) {
		t.Errorf("%s %v", jobs(got), err)
	}
}
