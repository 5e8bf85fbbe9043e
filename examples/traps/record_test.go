// Package traps runs small jobs in which an observer is easily wrong, or easily in the way, and holds the report against the clock
// that each script keeps for itself. README.md lists the traps; a test holds that list against the tests.
package traps

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/examples/internal/trial"
)

func TestMain(m *testing.M) { os.Exit(trial.Main(m)) }

// run is one observed job.
type run struct {
	stdout, stderr string
	status         int
	report         report
	truth          truth
	out            string // folder of the reports
}

// report is what the tests read of report.json, by its published names. A null is a nil.
type report struct {
	Job struct {
		Steps int `json:"steps"`
		Ranks int `json:"ranks"`
	} `json:"job"`
	Step struct {
		Mean        *estimate `json:"mean_seconds"`
		Share       *estimate `json:"data_wait_share"`
		Exposed     *estimate `json:"exposed_wait_share"`
		Handoff     *float64  `json:"handoff_share"`
		EpochStart  *float64  `json:"epoch_start_share"`
		P50         *float64  `json:"p50_wait_seconds"`
		P99         *float64  `json:"p99_wait_seconds"`
		WallSeconds *float64  `json:"wall_seconds"`
	} `json:"step"`
	Ranks []struct {
		Rank  int      `json:"rank"`
		Steps int      `json:"steps"`
		Share *float64 `json:"data_wait_share"`
		Ended string   `json:"ended"`
	} `json:"ranks"`
	Loaders []loader `json:"loaders"`
	GPUs    []struct {
		SMActive   *estimate        `json:"sm_active_ratio"`
		Accounts   map[string]int64 `json:"accounts_ns"`
		Collective *int64           `json:"collective_ns"`
	} `json:"gpus"`
	Verdicts []struct {
		ID string `json:"id"`
	} `json:"verdicts"`
	Fixes []struct {
		ID string `json:"id"`
	} `json:"fixes"`
	Model struct {
		Trusted bool   `json:"trusted"`
		Reason  string `json:"reason"`
	} `json:"model"`
	Quality struct {
		Hook struct {
			Dropped  uint64   `json:"dropped"`
			Disabled bool     `json:"disabled"`
			Errors   []string `json:"errors"`
			Added    *float64 `json:"added_seconds_per_fetch"`
		} `json:"hook"`
		Clock struct {
			Residual *float64 `json:"residual_seconds"`
		} `json:"clock"`
		Cost struct {
			Cores *float64 `json:"agent_cores"`
			RSS   *float64 `json:"agent_rss_bytes"`
		} `json:"own_cost"`
		Damage struct {
			Lost uint64 `json:"lost_records"`
		} `json:"damage"`
		Warnings []string `json:"warnings"`
	} `json:"quality"`
	Reasons map[string]struct {
		Kind, Text string
	} `json:"reasons"`
}

type estimate struct {
	Value float64 `json:"value"`
	N     int     `json:"n"`
}

type loader struct {
	Role        string    `json:"role"`
	Workers     int       `json:"workers_seen"`
	Fetches     int       `json:"fetches"`
	WaitSeconds float64   `json:"wait_seconds"`
	Build       *estimate `json:"build_seconds_per_batch"`
	CPU         *float64  `json:"cpu_seconds_per_batch"`
	OffCPU      *float64  `json:"off_cpu_seconds_per_batch"`
	Bytes       *float64  `json:"bytes_per_batch"`
	BytesSource string    `json:"bytes_source"`
	EpochStart  *estimate `json:"epoch_start_seconds"`
	Epochs      int       `json:"epochs"`
}

// truth is what a script saw with its own clock (own.py).
type truth struct {
	Steps           int       `json:"steps"`
	Fetches         int       `json:"fetches"`
	Share           float64   `json:"share"` // Σ wait / Σ step
	Step            float64   `json:"step"`  // seconds
	Validated       float64   `json:"validated"`
	Seconds         float64   `json:"seconds"`
	LastMillisecond int       `json:"last_millisecond"`
	Bytes           float64   `json:"bytes"`
	CPU             float64   `json:"cpu"`
	Waits           []float64 `json:"waits"`
	Starts          []float64 `json:"starts"`
	Footprint       string    `json:"footprint"`
}

// patience ends a job that hangs: everything here takes seconds, also on a machine that others keep busy.
const patience = 3 * time.Minute

// recorded runs a script under `datawait record` with these flags; "--" is put between.
func recorded(t *testing.T, flags []string, script string, arguments ...string) run {
	t.Helper()
	r := start(t, append([]string{"record"}, flags...), script, arguments...)
	return r.wait(t)
}

// shared returns the run of a script that several tests look at: importing PyTorch is most of what a run costs.
func shared(t *testing.T, flags []string, script string, arguments ...string) run {
	t.Helper()
	key := strings.Join(append(append([]string{script}, flags...), arguments...), " ")
	if r, ok := kept[key]; ok {
		return r
	}
	kept[key] = recorded(t, flags, script, arguments...)
	return kept[key]
}

var kept = map[string]run{}

// job is a run that goes on.
type job struct {
	command        *exec.Cmd
	stdout, stderr bytes.Buffer
	out, own       string
	hung           *time.Timer
}

// start starts a script under datawait.
func start(t *testing.T, command []string, script string, arguments ...string) *job {
	t.Helper()
	dir := t.TempDir()
	j := &job{out: filepath.Join(dir, "out"), own: filepath.Join(dir, "truth.json")}
	line := append(command[:1:1], "--out", j.out, "--format", "json")
	line = append(append(line, command[1:]...), "--", trial.Python(t, "torch"), script, "--truth", j.own)
	j.command = exec.Command(trial.Binary, append(line, arguments...)...)
	j.command.Stdout, j.command.Stderr = &j.stdout, &j.stderr
	if err := j.command.Start(); err != nil {
		t.Fatal(err)
	}
	j.hung = time.AfterFunc(patience, func() { j.command.Process.Kill() })
	return j
}

// wait ends with the job and reads what both sides say of it.
func (j *job) wait(t *testing.T) run {
	t.Helper()
	err := j.command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if !j.hung.Stop() {
		t.Fatalf("the job hung\n%s", j.stderr.String())
	}
	r := run{stdout: j.stdout.String(), stderr: j.stderr.String(), status: j.command.ProcessState.ExitCode(), out: j.out}
	read(t, filepath.Join(j.out, "report.json"), &r.report)
	if _, err := os.Stat(j.own); err == nil {
		read(t, j.own, &r.truth)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("status %d, stderr:\n%s", r.status, r.stderr)
		}
	})
	return r
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// bare runs a script with nobody watching.
func bare(t *testing.T, script string, arguments ...string) (stdout string, seen truth) {
	t.Helper()
	own := filepath.Join(t.TempDir(), "truth.json")
	output, err := exec.Command(trial.Python(t, "torch"), append([]string{script, "--truth", own}, arguments...)...).Output()
	if err != nil {
		t.Fatalf("%s without datawait: %v", script, err)
	}
	read(t, own, &seen)
	return string(output), seen
}

// near fails unless an estimate is known and no further from the script's own than that.
func near(t *testing.T, what string, got *estimate, own, within float64) {
	t.Helper()
	switch {
	case got == nil:
		t.Errorf("%s is unknown; the script's own clock says %.4f", what, own)
	case math.Abs(got.Value-own) > within:
		t.Errorf("%s is %.4f; the script's own clock says %.4f (tolerance %.4f)", what, got.Value, own, within)
	}
}
