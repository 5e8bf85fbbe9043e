package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/promserver"
)

// codeBlock matches a fenced block of the README with its language.
var codeBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// TestReadme runs what the README tells a reader to type: every command line of datawait, the container's command, and
// the Python. `make` lines are CI's own. Eight ranks become two, because the tests run on two cores.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t)
	for _, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		switch language, code := block[1], block[2]; language {
		case "sh":
			if strings.Contains(code, "DATAWAIT_SPOOL=") {
				r.hooked(code)
				continue
			}
			for line := range strings.Lines(code) {
				if strings.HasPrefix(line, "datawait ") {
					r.shell(line)
				}
			}
		case "yaml":
			r.container(code)
		case "python":
			r.python(code)
		default:
			t.Errorf("nothing runs a block of %q", language)
		}
	}
	if r.ran < 6 {
		t.Errorf("only %d pieces of the README were run", r.ran)
	}
}

// reader does what a reader of the README does, in a folder with a train.py.
type reader struct {
	t   *testing.T
	env []string
	dir string // of the command before; `datawait report` reads what that left
	ran int

	agent  *exec.Cmd // a datawait serve that runs
	served string    // its folders

	first string // folder of the first command that left a report
}

func newReader(t *testing.T) *reader {
	t.Helper()
	bin := t.TempDir()
	if output, err := exec.Command("go", "build", "-o", filepath.Join(bin, "datawait"), ".").CombinedOutput(); err != nil {
		t.Fatalf("building datawait: %v\n%s", err, output)
	}
	path, err := exec.LookPath(python())
	if err != nil {
		t.Fatal(err)
	}
	torchrun, err := os.ReadFile("testdata/readme/torchrun")
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"python3": "#!/bin/sh\nexec " + path + ` "$@"` + "\n", "torchrun": string(torchrun)} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &reader{t: t, env: append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "OMP_NUM_THREADS=1", "XDG_STATE_HOME="+t.TempDir())}
}

// fresh moves to a new folder that holds only train.py.
func (r *reader) fresh() {
	r.dir = r.t.TempDir()
	script, err := os.ReadFile("testdata/readme/train.py")
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "train.py"), script, 0o644)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) run(what string, command *exec.Cmd) {
	r.ran++
	command.Dir, command.Env = r.dir, r.env
	if output, err := command.CombinedOutput(); err != nil {
		r.t.Errorf("%s: %v\n%s", what, err, output)
	}
}

func (r *reader) shell(line string) {
	line = strings.ReplaceAll(line, "--nproc_per_node 8", "--nproc_per_node 2")
	if strings.HasPrefix(line, "datawait compare") { // the two runs are the one that the first command left, twice
		r.dir = r.first
		r.run(strings.TrimSpace(line), exec.Command("sh", "-c", "cp -r report before && cp -r report after && "+line))
		return
	}
	switch {
	case strings.HasPrefix(line, "datawait fleet"):
		r.fleet(line)
		return
	case strings.HasPrefix(line, "datawait serve"):
		r.serve(line)
		return
	case strings.Contains(line, "--job"):
		r.reportOfServe(line)
		return
	}
	if !strings.HasPrefix(line, "datawait report") {
		r.fresh()
	}
	r.run(strings.TrimSpace(line), exec.Command("sh", "-c", line))
	if strings.HasPrefix(line, "datawait doctor") {
		return // it shows what it found, and leaves nothing
	}
	if r.first == "" {
		r.first = r.dir
	}
	if _, err := os.Stat(filepath.Join(r.dir, "report", "report.json")); err != nil {
		r.t.Errorf("%s: it left no report: %v", strings.TrimSpace(line), err)
	}
}

// serve leaves an agent running, on folders of this test's, until its report was made.
func (r *reader) serve(line string) {
	r.fresh()
	r.served = r.t.TempDir()
	r.agent = exec.Command("sh", "-c", "exec "+line)
	r.agent.Dir = r.dir
	r.agent.Env = append(slices.Clone(r.env), "DATAWAIT_SERVE_LISTEN=127.0.0.1:0", "DATAWAIT_SERVE_SPOOL="+r.served+"/spool", "DATAWAIT_SERVE_STATE="+r.served+"/state",
		"DATAWAIT_SERVE_SOCKET="+r.served+"/gpu.sock", "DATAWAIT_SERVE_GPU=none", "DATAWAIT_SERVE_SCRAPE_INTERVAL=1s")
	if err := r.agent.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.agent.Process.Kill() })
	r.ran++
}

// hooked runs a job with the hook that was unpacked for it.
func (r *reader) hooked(code string) {
	code = strings.NewReplacer("/opt/datawait/hook", r.served+"/hook", "DATAWAIT_JOB=", "DATAWAIT_SPOOL="+r.served+"/spool DATAWAIT_JOB=").Replace(code)
	r.run("a job with the hook", exec.Command("sh", "-ec", code))
}

// reportOfServe makes the report of the job that the agent saw, and ends the agent.
func (r *reader) reportOfServe(line string) {
	line = strings.Replace(line, "/var/lib/datawait", r.served+"/state", 1)
	seen := time.Now().Add(30 * time.Second)
	for {
		command := exec.Command("sh", "-c", line)
		command.Dir, command.Env = r.dir, r.env
		output, err := command.CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(seen) {
			r.t.Errorf("%s: %v\n%s", strings.TrimSpace(line), err, output)
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	r.ran++
	if _, err := os.Stat(filepath.Join(r.dir, "report", "report.json")); err != nil {
		r.t.Errorf("%s: it left no report: %v", strings.TrimSpace(line), err)
	}
	r.agent.Process.Signal(syscall.SIGTERM)
	if err := r.agent.Wait(); err != nil {
		r.t.Errorf("the agent ended with %v", err)
	}
}

// fleet asks a real server, which knows one job of the last hours, in place of the reader's.
func (r *reader) fleet(line string) {
	r.fresh()
	from := time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339)
	job := `{training_job="train.py",training_namespace="",training_pod="",gpu_uuid="GPU-a"`
	history, err := promserver.Expand("every 1m from " + from + `
datawait_gpu_info{gpu_uuid="GPU-a",name="A100",source="dcgm",grade="A",emulated="false",index="0"} 1+0x170
datawait_gpu_allocated_seconds_total` + job + `} 0+60x170
datawait_gpu_account_seconds_total` + job + `,account="compute"} 0+60x170
`)
	if err != nil {
		r.t.Fatal(err)
	}
	server, err := promserver.Start(r.t.TempDir(), history)
	if err != nil {
		r.t.Fatal(err)
	}
	defer server.Stop()
	r.run(strings.TrimSpace(line), exec.Command("sh", "-c", strings.ReplaceAll(line, "http://prometheus:9090", server.URL)))
}

// container runs the command of a pod as the container's runtime would, its volume being a folder here.
func (r *reader) container(code string) {
	var arguments []string
	_, list, found := strings.Cut(code, "command:")
	if err := json.Unmarshal([]byte(list), &arguments); !found || err != nil {
		r.t.Errorf("not a container's command: %v\n%s", err, code)
		return
	}
	r.fresh()
	for i := range arguments {
		arguments[i] = strings.Replace(arguments[i], "/results", r.dir, 1)
	}
	r.run("the container's command", exec.Command("env", arguments...))
}

// python runs the lines on other loaders around a loader and a builder of one batch.
func (r *reader) python(code string) {
	r.fresh()
	prelude := "my_loader = [1, 2, 3]\nindex, samples = 0, [1]\nbuild = list\n"
	if err := os.WriteFile(filepath.Join(r.dir, "own.py"), []byte(prelude+code), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.run("the Python of other loaders", exec.Command("sh", "-c", "datawait record --out report -- python3 own.py"))
	text, err := os.ReadFile(filepath.Join(r.dir, "report", "report.json"))
	if err != nil || !strings.Contains(string(text), `"watch"`) {
		r.t.Errorf("the watched loader is not in the report: %v", err)
	}
}
