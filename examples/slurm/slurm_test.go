// Package slurm runs the prologs and the epilog as Slurm would.
package slurm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/hook"
)

var scripts = []string{"prolog.sh", "task-prolog.sh", "epilog.sh"}

// user is who jobs belong to, and neighbour somebody else on the node.
const user, neighbour = 65534, 65533

// node is a machine of the cluster.
type node struct {
	t    *testing.T
	run  string // stands for /run/datawait
	hook string
}

func newNode(t *testing.T) node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: prolog and epilog are root's, and this is not root")
	}
	dir, err := os.MkdirTemp("/dev/shm", "datawait-slurm-") // where rings may lie
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := node{t, filepath.Join(dir, "run"), filepath.Join(dir, "hook")}
	for path, mode := range map[string]os.FileMode{dir: 0o755, n.run: 0o755, filepath.Join(n.run, "spool"): os.ModeSticky | 0o777} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := hook.Install(n.hook); err != nil {
		t.Fatal(err)
	}
	return n
}

// start runs a script with the environment that slurmd gives it and nothing else; a script that does not succeed drains the node.
func (n node) start(script string, uid int, env ...string) string {
	n.t.Helper()
	path, err := filepath.Abs(script)
	if err != nil {
		n.t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("/bin/bash", "-c", string(text)) // the folder of the repository may be closed to the user
	cmd.Env = append(env, "DATAWAIT_RUN="+n.run, "DATAWAIT_HOOK_DIR="+n.hook)
	cmd.Dir, cmd.Stderr = "/", &stderr
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		n.t.Fatalf("%s: %v, and says %q", script, err, stderr.String())
	}
	return string(out)
}

// root is what slurmd tells prologs and epilogs of a job (Prolog and Epilog Guide).
func root(job string, more ...string) []string {
	return append([]string{"SLURM_JOB_ID=" + job, "SLURM_JOB_USER=nobody", fmt.Sprint("SLURM_JOB_UID=", user), "SLURM_CLUSTER_NAME=lab"}, more...)
}

func (n node) spool(name string) string { return filepath.Join(n.run, "spool", name) }

func (n node) mapped(gpu string) string {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.run, "gpus", gpu))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(text)
}

func (n node) inSpool() (names []string) {
	n.t.Helper()
	entries, err := os.ReadDir(n.spool(""))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// exported reads what a task prolog prints as Slurm does.
func exported(t *testing.T, out string) (env []string) {
	t.Helper()
	for line := range strings.Lines(out) {
		set, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "export ")
		if !ok {
			t.Fatalf("Slurm makes nothing of %q", line)
		}
		env = append(env, set)
	}
	return env
}

func TestAJobFromPrologToEpilog(t *testing.T) {
	n := newNode(t)
	n.start("prolog.sh", 0, root("4711", "SLURM_JOB_GPUS=0,2")...)
	n.start("prolog.sh", 0, root("4711", "SLURM_JOB_GPUS=0,2")...) // for another step, as without PrologFlags=Alloc
	n.start("prolog.sh", 0, root("4712", "SLURM_JOB_GPUS=2")...)   // shares a GPU

	folder := n.spool("4711")
	info, err := os.Lstat(folder)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; info.Mode() != os.ModeDir|0o700 || owner != user {
		t.Errorf("the job's folder has mode %v and belongs to %d", info.Mode(), owner)
	}
	if a, b := n.mapped("0"), n.mapped("2"); a != "4711\n" || b != "4711\n4712\n" {
		t.Errorf("mapped GPU 0 to %q and GPU 2 to %q", a, b)
	}

	job := []string{"SLURM_JOB_ID=4711", "SLURM_JOB_NAME=resnet", "PATH=" + os.Getenv("PATH"), "PYTHONPATH=/home/nobody/lib", "PYTHONDONTWRITEBYTECODE=1"}
	env := exported(t, n.start("task-prolog.sh", user, job...))
	if want := []string{"DATAWAIT_SPOOL=" + folder, "PYTHONPATH=" + n.hook + ":/home/nobody/lib"}; !slices.Equal(env, want) {
		t.Errorf("a task gets %v, want %v", env, want)
	}
	n.train(append(job, env...))
	rings, _ := filepath.Glob(filepath.Join(folder, "ring-*.dwr"))
	if len(rings) != 1 {
		t.Fatalf("the job left the rings %v", rings)
	}

	go func() { // an agent that reads the end
		time.Sleep(500 * time.Millisecond)
		os.Remove(rings[0])
	}()
	began := time.Now()
	n.start("epilog.sh", 0, root("4711")...)
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("the epilog waited %v for the agent", took)
	}
	if a, b := n.mapped("0"), n.mapped("2"); a != "" || b != "4712\n" {
		t.Errorf("then GPU 0 is mapped to %q and GPU 2 to %q", a, b)
	}
	n.start("epilog.sh", 0, root("4712")...)
	if left := n.inSpool(); len(left) > 0 || n.mapped("2") != "" {
		t.Errorf("left in the spool: %v; GPU 2 is mapped to %q", left, n.mapped("2"))
	}
}

// train runs a Python of the job's user that fetches three batches.
func (n node) train(env []string) {
	n.t.Helper()
	const script = "import datawait; datawait.install(); print(list(datawait.watch([1, 2, 3])))"
	if out, err := asUser(env, python(n.t), "-c", script).CombinedOutput(); err != nil || string(out) != "[1, 2, 3]\n" {
		n.t.Fatalf("training: %v, and says %q", err, out)
	}
}

func asUser(env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	return cmd
}

// python is one that the job's user may run: root's own may be in a folder that is closed to others.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("DATAWAIT_PYTHON"), "python3", "/usr/bin/python3"} {
		if path, err := exec.LookPath(name); err == nil && asUser(nil, path, "-c", "").Run() == nil {
			return path
		}
	}
	t.Skip("NOT TESTED: no python3 that other users may run")
	return ""
}

// Nobody reads the spool any more: rings go with their job all the same.
func TestAnEpilogWithoutAnAgentLeavesNoLitter(t *testing.T) {
	n := newNode(t)
	n.start("prolog.sh", 0, root("1")...)
	if err := os.WriteFile(filepath.Join(n.spool("1"), "ring-1-1.dwr"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.start("epilog.sh", 0, root("1")...)
	if left := n.inSpool(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A neighbour took the name of the next job's folder.
func TestANameThatIsTakenIsLeftAlone(t *testing.T) {
	for name, take := range map[string]func(path, elsewhere string) error{
		"a link": func(path, elsewhere string) error { return os.Symlink(elsewhere, path) },
		"a file": func(path, _ string) error { return os.WriteFile(path, []byte("theirs"), 0o666) },
		"a folder": func(path, _ string) error {
			if err := os.Mkdir(path, 0o777); err != nil {
				return err
			}
			return os.Chmod(path, 0o777)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			elsewhere := filepath.Join(filepath.Dir(n.run), "etc")
			if err := os.MkdirAll(elsewhere, 0o755); err != nil {
				t.Fatal(err)
			}
			path := n.spool("9")
			if err := take(path, elsewhere); err != nil {
				t.Fatal(err)
			}
			if err := os.Lchown(path, neighbour, neighbour); err != nil {
				t.Fatal(err)
			}
			n.start("prolog.sh", 0, root("9", "SLURM_JOB_GPUS=0")...)
			if info, err := os.Lstat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != neighbour {
				t.Errorf("it now belongs to somebody else (%v)", err)
			}
			env := exported(t, n.start("task-prolog.sh", user, "SLURM_JOB_ID=9", "PATH="+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1"))
			if want := "DATAWAIT_SPOOL=" + n.spool(""); len(env) != 2 || env[0] != want {
				t.Errorf("a task gets %v, want %s", env, want)
			}
			n.train(append(env, "PATH="+os.Getenv("PATH")))
			if rings, _ := filepath.Glob(n.spool(fmt.Sprintf("uid-%d/ring-*", user))); len(rings) != 1 {
				t.Errorf("rings in the user's folder: %v", rings)
			}
			n.start("epilog.sh", 0, root("9")...)
			if info, err := os.Stat(elsewhere); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
				t.Errorf("where the link led: %v", err)
			}
		})
	}
}

func TestNothingHappensWhereNothingIsToBeDone(t *testing.T) {
	n := newNode(t)
	for _, env := range [][]string{nil, {"SLURM_JOB_ID="}, root("../../etc"), root("7; touch x"), {"SLURM_JOB_ID=7", "SLURM_JOB_UID=root"}} {
		for _, script := range []string{"prolog.sh", "epilog.sh"} {
			if out := n.start(script, 0, env...); out != "" {
				t.Errorf("%s with %v says %q", script, env, out)
			}
		}
	}
	if left := n.inSpool(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for _, env := range [][]string{{"DATAWAIT_HOOK=off"}, {"DATAWAIT_SPOOL=/mine"}} {
		if out := n.start("task-prolog.sh", user, append(env, "SLURM_JOB_ID=7")...); out != "" {
			t.Errorf("a task with %v gets %q", env, out)
		}
	}

	bare := node{t, filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "none")} // without an agent
	for _, script := range scripts {
		if out := bare.start(script, 0, root("7", "SLURM_JOB_GPUS=0")...); out != "" {
			t.Errorf("%s without an agent says %q", script, out)
		}
	}
	if _, err := os.Lstat(bare.run); err == nil {
		t.Error("a prolog made the agent's folder")
	}
}

func TestScriptsAreCleanShell(t *testing.T) {
	for _, script := range scripts {
		if out, err := exec.Command("bash", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", script, out)
		}
	}
	shellcheck, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("NOT TESTED: no shellcheck here; bash reads the scripts")
	}
	if out, err := exec.Command(shellcheck, scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
