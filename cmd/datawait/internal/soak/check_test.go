package soak

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

// check holds everything that is left against the training's own account.
func (s *scene) check(t *testing.T, j *soaked) {
	t.Helper()
	acc, _ := j.readAccount()
	recorded, spool := j.recorded(t, acc), j.spooled(t, acc)
	j.contaminated = recorded.tested || spool.tested
	j.parked = recorded.parked || spool.parked
	s.checkTotals(t, j, acc, recorded, spool)
	j.checkBuilds(t, acc, recorded, spool)
	j.checkReport(t, acc, recorded)
	s.checkJob(t, j, acc)
	s.checkModel(t, j, acc)
	s.checkNext(t, j)
	if t.Failed() || os.Getenv("SOAK_TELL") != "" {
		t.Logf("status %d, hit %d, account %+v\nrecorded %+v\nspool %+v\nstdout %q\nstderr %s", j.status(), j.struck, acc, recorded, spool, j.text("stdout"), j.text("stderr"))
	}
}

// told is what a recording or a spool tells of the training.
type told struct {
	there             bool // the training made a ring, and it is in here
	fetches           uint64
	cached, discarded uint64
	lost              uint64
	wait              uint64 // ns, of the records
	summed            bool
	sums, sumWait     uint64
	lastEnd           uint64
	builds            map[int]uint64 // batches recorded, by worker pid
	built             map[int]uint64 // the same by the workers' sums
	tested            bool           // batches were repeated or left out: from there nothing may be saved
	parked            bool           // it waited to be ended
	finished          bool           // the agent closed the recording
}

func (j *soaked) recorded(t *testing.T, acc account) told {
	t.Helper()
	if _, err := os.Stat(j.out); err != nil {
		return told{}
	}
	return read(t, j.out, acc)
}

// spooled reads what an agent that was killed left behind.
func (j *soaked) spooled(t *testing.T, acc account) told {
	t.Helper()
	dir := j.spool()
	if dir == "" {
		return told{}
	}
	return read(t, dir, acc)
}

// spool is the run folder of this run's agent, "" if it is gone.
func (j *soaked) spool() string {
	for _, dir := range runFolders(j.command.Process.Pid) {
		if info, err := os.Stat(dir); err == nil && info.ModTime().After(j.began.Add(-time.Second)) {
			return dir
		}
	}
	return ""
}

// spoolParents are the folders in which datawait may make its own.
func spoolParents() []string { return []string{"/dev/shm", os.TempDir(), "/tmp"} }

// read opens a recording. One in which there was nothing to record yet is none.
func read(t *testing.T, dir string, acc account) (r told) {
	t.Helper()
	opened, err := recording.Open(dir)
	if err != nil {
		if !strings.Contains(err.Error(), recording.ErrNotRecording.Error()) {
			t.Errorf("%s: %v", dir, err)
		}
		return told{}
	}
	r.builds, r.built = map[int]uint64{}, map[int]uint64{}
	for _, node := range opened.Nodes() {
		r.finished = node.Manifest().EndedAt.IsKnown()
		ids, workers := map[recording.StreamID]bool{}, map[recording.StreamID]int{}
		for _, stream := range node.Streams() {
			if stream.Declaration.Producer == recording.ProducerMain && stream.Declaration.PID == int(acc.pid) {
				ids[stream.ID] = true
				r.there = true
				r.notes(&stream.Notes)
			}
			if stream.Declaration.Producer == recording.ProducerWorker {
				workers[stream.ID] = stream.Declaration.PID
				for _, sums := range stream.Notes.Sums {
					r.built[stream.Declaration.PID] += sums.Batches.Or(0)
				}
			}
		}
		found, err := recording.Scan(node, func(id recording.StreamID, records []recording.Record) error {
			if ids[id] {
				r.take(records)
			}
			if pid, ok := workers[id]; ok {
				for i := range records {
					if records[i].Kind() == recording.KindBatch {
						r.builds[pid]++
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		if d := node.Damage().Add(found); d.BadFrames+d.UnknownFrames+d.Undeclared+d.BadNotes+d.BadFiles > 0 {
			t.Errorf("%s is damaged: %v", dir, d)
		}
	}
	return r
}

func (r *told) notes(n *recording.Notes) {
	for _, s := range n.Sums {
		r.summed = true
		r.sums, r.sumWait = r.sums+s.Fetches.Or(0), r.sumWait+s.WaitNS.Or(0)
		r.lastEnd = max(r.lastEnd, s.LastEnd.Or(0))
	}
	for _, l := range n.Lost {
		r.lost += l.Records
	}
}

func (r *told) take(records []recording.Record) {
	for i := range records {
		switch records[i].Kind() {
		case recording.KindFetch:
			r.fetch(records[i].Fetch())
		case recording.KindMark:
			code := recording.MarkCode(records[i].Mark().Ref)
			r.tested = r.tested || code == recording.MarkTestBegan
			r.parked = r.parked || code == recording.MarkParked
		}
	}
}

func (r *told) fetch(f recording.Fetch) {
	switch {
	case f.Flags&recording.FetchCached != 0:
		r.cached++
	case f.Flags&recording.FetchDiscarded != 0:
		r.discarded++
	default:
		r.wait += f.Exit - f.Enter
		if f.Flags&(recording.FetchEnd|recording.FetchError) == 0 {
			r.fetches++
		}
	}
}

// late is what a hook may keep back: records of the last millisecond of a loop.
const late = uint64(time.Millisecond)

// checkTotals: nothing is counted that did not happen, and nothing that did is missing but the last millisecond.
func (s *scene) checkTotals(t *testing.T, j *soaked, acc account, recorded, spool told) {
	t.Helper()
	for name, r := range map[string]told{"recording": recorded, "spool": spool} {
		if r.fetches > acc.begun || r.sums+r.cached > acc.begun {
			t.Errorf("%s: %d fetches (%d in the sums, %d cached), the script began %d", name, r.fetches, r.sums, r.cached, acc.begun)
		}
		if inFlight := acc.lastBegin; r.summed {
			most := acc.wait
			if r.lastEnd > inFlight && acc.begun > acc.done { // the last one had returned, and was not accounted for yet
				most += r.lastEnd - inFlight
			}
			if r.sumWait > most {
				t.Errorf("%s: waited %d ns, by the script's clock at most %d", name, r.sumWait, most)
			}
		}
		if r.summed && r.lost == 0 && (recorded.finished || name == "spool") && r.fetches != r.sums {
			t.Errorf("%s: %d fetches recorded, %d in the sums, and none lost", name, r.fetches, r.sums)
		}
	}
	whole := recorded
	if !recorded.summed { // the ring has it all
		whole = spool
	}
	if acc.done == 0 {
		return
	}
	counted := whole.sums + whole.cached // sums survive an overrun, what was served from memory is in records only
	if whole.cached > 0 {
		counted += whole.lost
	}
	if counted < acc.done && !(whole.there && acc.doneBegin <= whole.lastEnd+late) {
		t.Errorf("%d fetches counted of %d, the last at %d; the script began its last at %d", counted, acc.done, whole.lastEnd, acc.doneBegin)
	}
	if s.command == "record" && whole.sums == acc.done && whole.sumWait < acc.inside {
		t.Errorf("waited %d ns, and the loader took %d", whole.sumWait, acc.inside)
	}
}

// checkBuilds: a worker's batches are as many as it says, but for the one it was at. One whose training was killed goes on a
// little, unobserved.
func (j *soaked) checkBuilds(t *testing.T, acc account, recorded, spool told) {
	t.Helper()
	for name, r := range map[string]told{"recording": recorded, "spool": spool} {
		for pid, n := range r.builds {
			if begun, _ := j.builds(pid); begun > 0 && n > begun {
				t.Errorf("%s: %d batches of worker %d, which began %d", name, n, pid, begun)
			}
		}
		for pid, n := range r.built {
			if begun, built := j.builds(pid); begun > 0 && (n > begun || acc.state == finished && n < built) {
				t.Errorf("%s: %d batches in the sums of worker %d, which began %d and built %d", name, n, pid, begun, built)
			}
		}
	}
}

// checkReport: `datawait report` reads it, or says in a sentence that there is nothing yet.
func (j *soaked) checkReport(t *testing.T, acc account, recorded told) {
	t.Helper()
	var out, errs bytes.Buffer
	command := exec.Command("datawait", "report", "--format", "json", j.out)
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		manifests, _ := filepath.Glob(filepath.Join(j.out, "node-*", "manifest.json"))
		if len(manifests) > 0 || !strings.HasPrefix(errs.String(), "error: ") || strings.Contains(errs.String(), "goroutine ") {
			t.Errorf("datawait report: %v\n%s", err, &errs)
		}
		return
	}
	var r struct {
		Job struct {
			Steps uint64
		}
		Loaders []struct {
			Fetches uint64
			Wait    float64 `json:"wait_seconds"`
		}
		Quality struct {
			Damage struct {
				Lost uint64 `json:"lost_records"`
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Errorf("the report is no JSON: %v", err)
		return
	}
	fetches, wait := uint64(0), 0.0
	for _, l := range r.Loaders {
		fetches, wait = fetches+l.Fetches, wait+l.Wait
	}
	want, waited := recorded.fetches, float64(recorded.wait)/1e9
	if recorded.lost > 0 && recorded.summed { // without the process's own sums, as where the agent was killed, what was recorded is all there is
		want, waited = recorded.sums, float64(recorded.sumWait)/1e9
	}
	if fetches != want || wait > waited*1.000001 || wait < waited*0.999999 {
		t.Errorf("the report tells of %d fetches and %.9f s, recorded are %d and %.9f", fetches, wait, want, waited)
	}
	if got := r.Quality.Damage.Lost; got != recorded.lost {
		t.Errorf("the report tells of %d lost records, of %d the recording", got, recorded.lost)
	}
	if r.Job.Steps > acc.begun {
		t.Errorf("the report tells of %d steps, the script began %d", r.Job.Steps, acc.begun)
	}
}

const finished = 1 // state of an account

// checkJob: the training ended as it would have without datawait, and said nothing else.
func (s *scene) checkJob(t *testing.T, j *soaked, acc account) {
	t.Helper()
	status, stdout := j.status(), j.text("stdout")
	if strings.Contains(j.text("stderr"), "SIGBUS") || status == 128+int(syscall.SIGBUS) {
		t.Errorf("SIGBUS")
	}
	if want := map[bool]string{false: "began\n", true: "began\nended\n"}[acc.state == finished]; stdout != want && acc.pid != 0 && !(stdout == "" && acc.begun == 0) && !(stdout == "began\n" && acc.state == finished) {
		t.Errorf("stdout %q, want %q", stdout, want)
	}
	if text := j.text("stderr"); strings.Contains(text, "panic:") || strings.Contains(text, "DATA RACE") {
		t.Errorf("datawait crashed:\n%s", text)
	}
	if want := s.statuses(j, acc); !want[status] {
		t.Errorf("status %d, want one of %v", status, want)
	}
	if s.victim == agent && s.blow.signal == syscall.SIGKILL && j.struck != 0 && acc.pid != 0 && acc.state != finished && !j.contaminated && !j.parked && !j.endedByDatawait() {
		t.Errorf("the agent was killed, and the training did not come to its end")
	}
}

// endedByDatawait reports whether datawait had ended the run by itself.
func (j *soaked) endedByDatawait() bool {
	manifests, _ := filepath.Glob(filepath.Join(j.out, "node-*", "manifest.json"))
	for _, path := range manifests {
		text, _ := os.ReadFile(path)
		return strings.Contains(string(text), `"ended_by": "datawait"`)
	}
	return false
}

// statuses are those that datawait may end with.
func (s *scene) statuses(j *soaked, acc account) map[int]bool {
	killed := 128 + int(s.blow.signal)
	switch {
	case j.struck == 0 || s.blow.signal == syscall.SIGSTOP || s.victim == gpuChild:
		return map[int]bool{0: true}
	case s.victim == agent && s.blow.signal == syscall.SIGKILL:
		return map[int]bool{killed: true}
	case s.command == "diagnose" && j.endedByDatawait() || acc.state == finished:
		return map[int]bool{0: true, killed: true}
	case s.victim == worker:
		return map[int]bool{1: true}
	}
	return map[int]bool{killed: true}
}

// checkModel: what was trained on repeated batches is never saved.
func (s *scene) checkModel(t *testing.T, j *soaked, acc account) {
	t.Helper()
	text, err := os.ReadFile(j.model)
	switch {
	case err != nil:
		t.Error(err)
	case j.contaminated && string(text) != "old":
		t.Errorf("the model was trained on repeated batches, and saved: %q", text)
	case acc.state == finished && string(text) != "saved":
		t.Errorf("the training is over, and the model is %q", text)
	}
}

// checkNext: a later run is not disturbed, and takes away what is left after a day.
func (s *scene) checkNext(t *testing.T, j *soaked) {
	t.Helper()
	left := j.spool()
	killedAgent := s.victim == agent && s.blow.signal == syscall.SIGKILL
	if left != "" && !killedAgent {
		t.Errorf("%s is left over", left)
	}
	old := time.Now().Add(-25 * time.Hour)
	if left != "" {
		if err := os.Chtimes(left, old, old); err != nil {
			t.Error(err)
		}
	}
	out := filepath.Join(j.dir, "next")
	if s.again {
		out = j.out
	}
	for _, arguments := range [][]string{
		{"record", "-q", "--force", "--format", "json", "--out", out, "--", "true"},
		{"report", "--format", "json", "-o", "-", out},
	} {
		if text, err := exec.Command("datawait", arguments...).CombinedOutput(); err != nil {
			t.Errorf("datawait %v: %v\n%s", arguments, err, text)
		}
	}
	if _, err := os.Stat(left); left != "" && err == nil {
		t.Errorf("%s was not taken away after a day", left)
	}
}
