package lab

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/datawait/datawait/examples/internal/trial"
	"github.com/datawait/datawait/probe/recording"
)

// budget is the --duration of a scenario that names no other.
const budget = "24s"

func TestMain(m *testing.M) { os.Exit(trial.Main(m)) }

// run is one diagnosed scenario.
type run struct {
	stdout       string
	report       report
	truth        truth
	foreignCores float64
}

// report is what the checks read of report.json, by its published names.
type report struct {
	Step struct {
		DataWaitShare *estimate `json:"data_wait_share"`
		MeanSeconds   *estimate `json:"mean_seconds"`
	} `json:"step"`
	Baseline *struct {
		Legs map[string]struct {
			SMActive *estimate `json:"sm_active_ratio"`
		} `json:"legs"`
	} `json:"baseline"`
	GPUs []struct {
		SMActive  *estimate        `json:"sm_active_ratio"`
		Held      *float64         `json:"held_ratio"`
		Allocated int64            `json:"allocated_ns"`
		Accounts  map[string]int64 `json:"accounts_ns"`
	} `json:"gpus"`
	Verdicts []struct {
		ID    string   `json:"id"`
		Share *float64 `json:"share"`
	} `json:"verdicts"`
	Fixes  []fix `json:"fixes"`
	NoHelp []struct {
		ID string `json:"id"`
	} `json:"no_help"`
	Model struct {
		Trusted bool     `json:"trusted"`
		Error   *float64 `json:"replay_error"`
		Reason  string   `json:"reason"`
	} `json:"model"`
	Host struct {
		Foreign *float64 `json:"foreign_cores"`
	} `json:"host"`
}

type estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

type fix struct {
	ID        string `json:"id"`
	How       string `json:"how"`
	Predicted struct {
		Saved *estimate `json:"step_time_saved_share"`
	} `json:"predicted"`
}

// firstFix is the name of the fix that is ranked first; "" if none is offered.
func (r run) firstFix() string {
	if len(r.report.Fixes) == 0 {
		return ""
	}
	return r.report.Fixes[0].ID
}

func (r run) liveActivity() (float64, bool) {
	if b := r.report.Baseline; b != nil && b.Legs["live"].SMActive != nil {
		return b.Legs["live"].SMActive.Value, true
	}
	if len(r.report.GPUs) == 1 {
		if g := r.report.GPUs[0]; g.SMActive != nil && g.Held != nil && *g.Held > 0 {
			return g.SMActive.Value / *g.Held, true
		}
	}
	return 0, false
}

func (r run) verdicts() string {
	var ids []string
	for _, v := range r.report.Verdicts {
		ids = append(ids, v.ID)
	}
	return strings.Join(ids, ", ")
}

func (r run) fixes() string {
	var ids []string
	for _, f := range r.report.Fixes {
		ids = append(ids, f.ID)
	}
	return "[" + strings.Join(ids, ", ") + "]"
}

// diagnose runs one scenario under datawait and reads what both sides say.
func diagnose(t *testing.T, s scenario) run {
	t.Helper()
	dir := t.TempDir()
	out, own := filepath.Join(dir, "out"), filepath.Join(dir, "truth")
	arguments := []string{"diagnose", "--gpu", "emulated", "--throwaway", "--duration", cmp.Or(s.budget, budget), "--out", out, "--",
		trial.Python(t, "torch"), s.script, "--truth", own}
	var stdout, stderr bytes.Buffer
	command := exec.Command(trial.Binary, append(arguments, s.arguments...)...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("datawait diagnose: %v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	r := run{stdout: stdout.String()}
	text, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err == nil {
		err = json.Unmarshal(text, &r.report)
	}
	if err != nil {
		t.Fatalf("reading the report: %v\n%s", err, stderr.String())
	}
	if r.report.Host.Foreign != nil {
		r.foreignCores = *r.report.Host.Foreign
	}
	began, live := legs(t, out)
	r.truth = readTruth(t, own, began, live)
	return r
}

// truth is what the script's own clock says of its live steps; zero where it made too few.
type truth struct {
	steps     int
	waitShare float64 // Σ wait / Σ step before the cached-data test, the first steps apart
	pace      float64 // seconds from one step to the next, epoch starts and whatever else lies between them included
	smActive  float64 // device busy time × 0.9 over the live blocks; without blocks, over the same steps
}

// warmup steps are left out of the truth as the report leaves out its first fetches.
const warmup = 8

// line is one step as the script saw it: into next(), out of it, end of the step, and the device's busy seconds by then.
type line struct {
	enter, leave, end uint64
	busy              float64
}

// span is a piece of time, CLOCK_MONOTONIC ns.
type span struct{ begin, end uint64 }

// readTruth adds up the steps that ended before the cached-data test began, and the device's work in the live blocks.
func readTruth(t *testing.T, path string, began uint64, live []span) truth {
	t.Helper()
	lines := readLines(t, path)
	var result truth
	var wait, step float64
	var steady span
	for n, l := range lines {
		if n < warmup || l.end > began {
			continue
		}
		if steady.begin == 0 {
			steady.begin = l.enter
		}
		wait += float64(l.leave - l.enter)
		step += float64(l.end - l.enter)
		steady.end = l.end
		result.steps++
	}
	if result.steps < 10 {
		return truth{}
	}
	result.waitShare, result.pace = wait/step, float64(steady.end-steady.begin)/float64(result.steps)/1e9
	if len(live) == 0 {
		live = []span{steady}
	}
	result.smActive = 0.9 * busyShare(lines, live)
	return result
}

// busyShare is the share of these spans in which the device worked. A span begins when the device is idle, before a step.
func busyShare(lines []line, spans []span) float64 {
	var busy, length float64
	for _, s := range spans {
		last, before := -1, 0.0
		for i, l := range lines {
			if l.end < s.begin {
				before = l.busy
			} else if l.end <= s.end {
				last = i
			}
		}
		if last >= 0 {
			busy += lines[last].busy - before
			length += float64(lines[last].end-s.begin) / 1e9
		}
	}
	return busy / length
}

func readLines(t *testing.T, path string) (lines []line) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text := bufio.NewScanner(file)
	for text.Scan() {
		var l line
		if _, err := fmt.Sscanf(text.Text(), "%d %d %d %f", &l.enter, &l.leave, &l.end, &l.busy); err != nil {
			break // the last line may be cut: the run is ended by SIGKILL
		}
		lines = append(lines, l)
	}
	return lines
}

// legs returns when the cached-data test first touched the run (the greatest time when it never did), and the live blocks.
func legs(t *testing.T, out string) (began uint64, live []span) {
	t.Helper()
	began = recording.Unknown64
	opened, err := recording.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range opened.Nodes() {
		_, err := recording.Scan(node, func(_ recording.StreamID, records []recording.Record) error {
			for i := range records {
				switch r := &records[i]; r.Kind() {
				case recording.KindMark:
					if recording.MarkCode(r.Ref()) == recording.MarkTestBegan {
						began = min(began, r.Mark().Begin)
					}
				case recording.KindBlock:
					if b := r.Block(); recording.Leg(b.Ref) == recording.LegLive && b.Flags&recording.BlockVoid == 0 {
						live = append(live, span{b.Begin, b.End})
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return began, live
}
