package soak

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// A rank that waits to be ended, and whose datawait dies instead, trains on: it holds a GPU. What it then wants to save was
// trained on repeated batches and is refused. In a pid namespace of its own it cannot see the pid that the control page names.
func TestAParkedRankTrainsOnWhenItsAgentDies(t *testing.T) {
	for name, around := range map[string]string{"the agent's pid namespace": "", "a pid namespace of its own": "unshare --fork --pid --mount-proc"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if around != "" && os.Geteuid() != 0 {
				t.Skip("a pid namespace needs root: not tested here")
			}
			s := &scene{seed: uint64(len(around)), command: "diagnose", loader: "plain", seconds: 10, build: 0.003, compute: 0.002, length: 1 << 20,
				more: []string{"--duration", "60s", "--steps", "400"}, around: strings.Fields(around)}
			j := s.start(t)
			ring := j.await(t, "a plan to park", func(page recording.Control, _ recording.RingHeader) bool { return page.ParkAt != recording.Unknown64 })
			j.signal(t, syscall.SIGSTOP) // it will not end the run
			j.await(t, "a parked rank", func(_ recording.Control, h recording.RingHeader) bool { return h.Parked == recording.ParkedAtEnd })
			steps := j.header(t, ring).Step
			time.Sleep(time.Second)
			if h := j.header(t, ring); h.Step != steps || h.Parked != recording.ParkedAtEnd {
				t.Fatalf("the rank does not wait for an agent that is only slow: %+v", h)
			}
			j.signal(t, syscall.SIGKILL)
			j.await(t, "steps after that", func(_ recording.Control, h recording.RingHeader) bool {
				return h.Step > steps+5 && h.Parked == recording.NotParked
			})
			j.wait(t)
			if text, _ := os.ReadFile(j.model); string(text) != "old" {
				t.Errorf("the model is %q", text)
			}
			if !strings.Contains(j.text("stderr"), "refused: this run trained on repeated batches") {
				t.Errorf("stderr %s", j.text("stderr"))
			}
			os.RemoveAll(j.spool())
		})
	}
}

// await waits until the control page and the header of the training's ring are as wanted, and returns the ring.
func (j *soaked) await(t *testing.T, what string, wanted func(recording.Control, recording.RingHeader) bool) (ring string) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		rings, _ := filepath.Glob(filepath.Join(j.spool(), "ring-*.dwr"))
		page, err := recording.ReadControl(j.spool())
		if len(rings) != 1 || err != nil {
			continue
		}
		if r, err := recording.OpenRing(rings[0]); err == nil {
			h, err := r.Header()
			r.Close()
			if err == nil && wanted(page, h) {
				return rings[0]
			}
		}
	}
	t.Fatalf("no %s\n%s", what, j.text("stderr"))
	return ""
}

func (j *soaked) header(t *testing.T, ring string) recording.RingHeader {
	t.Helper()
	r, err := recording.OpenRing(ring)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h, err := r.Header()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (j *soaked) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := j.command.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// A training that restarts by replacing itself is a rank as before: it is tested, and a throw-away run ends in time.
func TestAScriptThatReplacesItselfIsTestedOn(t *testing.T) {
	t.Parallel()
	s := &scene{seed: 98, command: "diagnose", loader: "plain", seconds: 5, build: 0.004, compute: 0.002, length: 1 << 20,
		more: []string{"--duration", "14s", "--gpu", "none"}, replace: true}
	j := s.start(t)
	j.wait(t)
	acc, _ := j.readAccount()
	if j.status() != 0 || !j.endedByDatawait() || acc.state == finished {
		t.Errorf("status %d, ended by datawait: %v, account %+v\n%s", j.status(), j.endedByDatawait(), acc, j.text("stderr"))
	}
	programs, tested := 0, 0
	opened, err := recording.Open(j.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range opened.Nodes() {
		for _, stream := range node.Streams() {
			if stream.Declaration.PID != int(acc.pid) {
				continue
			}
			programs++
			cached := 0
			_, err := node.Stream(stream.ID, func(records []recording.Record) error {
				var r told
				r.take(records)
				cached += int(r.cached)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if cached > 0 {
				tested++
			}
		}
	}
	if programs < 2 || tested < 2 {
		t.Errorf("%d programs, %d of them were tested", programs, tested)
	}
}

// The training never waits for datawait: while that is stopped no step takes as long. What the ring could not hold meanwhile is
// counted and said, and no total suffers.
func TestAStoppedAgentDelaysNoStep(t *testing.T) {
	t.Parallel()
	const stopped = 4 * time.Second
	s := &scene{seed: 99, command: "record", loader: "plain", seconds: 6, length: 1 << 30}
	j := s.start(t)
	j.await(t, "first steps", func(_ recording.Control, h recording.RingHeader) bool { return h.Fetches > 100 })
	j.signal(t, syscall.SIGSTOP)
	time.Sleep(stopped)
	j.signal(t, syscall.SIGCONT)
	j.wait(t)
	acc, _ := j.readAccount()
	if longest := time.Duration(acc.longest); longest > stopped/2 {
		t.Errorf("a step took %v while datawait was stopped for %v", longest, stopped)
	}
	r := j.recorded(t, acc)
	if r.lost == 0 || r.fetches+r.lost < r.sums || r.sums != acc.done {
		t.Errorf("%d fetches, %d recorded, %d records lost, %d in the sums", acc.done, r.fetches, r.lost, r.sums)
	}
	j.checkReport(t, acc, r)
	text, err := exec.Command("datawait", "report", "--format", "json", j.out).CombinedOutput()
	if err != nil || !strings.Contains(string(text), "were overwritten before they were read") {
		t.Errorf("the report does not tell of the loss: %v\n%s", err, text)
	}
}
