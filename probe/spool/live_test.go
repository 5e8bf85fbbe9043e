package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

func TestTheLiveViewShowsTheLastSeconds(t *testing.T) {
	j := newJob(t, Options{})
	w := j.start(7, recording.ProducerMain, 1)
	w.Note(recording.LoaderNote{Loader: 2, Arguments: recording.LoaderArguments{Workers: unit.Some[int64](4)}})
	w.Note(recording.HookErrorNote{Reason: 1, Where: "fetch", Error: "boom"})
	j.start(8, recording.ProducerMain, 0)
	j.start(9, recording.ProducerWorker, 0)
	// 10 fetches a second, each 80 ms of waiting and 20 ms of work; loader 1 validates and is larger.
	for now := uint64(0); now <= 60*second; now += second / 5 {
		n := now / (second / 10)
		w.UpdateTotals(1, func(t *recording.Totals) { t.Fetches, t.NoGrad = 5*n, 5*n })
		w.UpdateTotals(2, func(t *recording.Totals) { t.Fetches, t.Wait, t.Between = n, n*80e6, n*20e6 })
		w.Update(func(h *recording.RingHeader) { h.Step, h.StepUnit, h.Fetches = n/2, recording.StepOptimizer, 6*n })
		j.poll(now)
	}
	live := j.Live()
	if len(live) != 2 || live[0].PID != 8 || live[1].PID != 7 {
		t.Fatalf("live %+v, want ranks 0 and 1", live)
	}
	if idle := live[0]; idle.Training != -1 || idle.Recent != (Pace{}) || idle.Error != "" || idle.Moved != 0 {
		t.Errorf("rank 0 has fetched nothing: %+v", idle)
	}
	p := live[1]
	if p.Training != 2 || p.Totals.Fetches != 600 || p.Step != 300 || p.Moved != 60*second || p.Error != "fetch: boom" {
		t.Errorf("rank 1: %+v", p)
	}
	if workers, ok := p.Loader.Arguments.Workers.Get(); !ok || workers != 4 {
		t.Errorf("loader %+v", p.Loader)
	}
	if share, ok := p.Recent.WaitShare(); !ok || share != 0.8 {
		t.Errorf("wait share %v, %v", share, ok)
	}
	if p.Recent.Span < 5*second || p.Recent.Span > 6*second || p.Recent.Fetches != p.Recent.Span/(second/10) || p.Recent.Steps*2 != p.Recent.Fetches {
		t.Errorf("pace %+v", p.Recent)
	}
	if n := len(j.rings[filepath.Base(j.path(7))].view.samples); n > 30 {
		t.Errorf("%d samples kept", n)
	}
}

func TestSlowPollsStillGiveAPace(t *testing.T) {
	v := newView()
	for i := range uint64(4) {
		totals := [recording.RingTotalSlots]recording.Totals{{Fetches: 1 + i, Wait: 10 * i, Between: 10 * i}}
		v.update(i*30*second, recording.RingHeader{}, totals)
	}
	if p := v.recent(); p.Span != 30*second && p.Span != 60*second || p.Fetches == 0 {
		t.Errorf("pace %+v", p)
	}
}

func TestSumsThatGoBackGiveNoPace(t *testing.T) {
	v := newView()
	for i, wait := range []uint64{100, 50} {
		v.update(uint64(i)*second, recording.RingHeader{}, [recording.RingTotalSlots]recording.Totals{{Fetches: 2, Wait: wait}})
	}
	if p := v.recent(); p != (Pace{}) {
		t.Errorf("pace %+v", p)
	}
	if _, ok := (Pace{}).WaitShare(); ok {
		t.Error("nothing was fetched, yet there is a share")
	}
}

func TestSeenFiles(t *testing.T) {
	j := newJob(t, Options{})
	for name, content := range map[string]string{"seen-12": "", "seen-13": "loader: ffcv.loader\nrefused: full\nloader: a.b\nrefused: spool is on nfs\n", "seen-x": "", "seen-014": "", "seen-15": "odd\n"} {
		os.WriteFile(filepath.Join(j.dir, name), []byte(content), 0o600)
	}
	os.Symlink("/etc/passwd", filepath.Join(j.dir, "seen-16"))
	j.poll(1)
	if n := j.Counts().Seen; n != 4 {
		t.Errorf("%d seen, want 4", n)
	}
	seen, err := ReadSeen(j.dir)
	want := []Seen{{PID: 12}, {13, "spool is on nfs", []string{"ffcv.loader", "a.b"}}, {PID: 15}, {PID: 16}}
	if err != nil || !reflect.DeepEqual(seen, want) {
		t.Errorf("got %+v, %v", seen, err)
	}
	if _, err := ReadSeen(filepath.Join(j.dir, "none")); err == nil {
		t.Error("a missing folder was read")
	}
}

func TestSignsOfEndedPythonsAreCountedAndTakenAway(t *testing.T) {
	j := newJob(t, Options{Remove: true})
	const nobody = 1 << 22 // beyond the highest pid (proc(5), pid_max)
	for n := range 1000 {
		os.WriteFile(filepath.Join(j.dir, fmt.Sprintf("seen-%d", nobody+n)), nil, 0o600)
	}
	os.WriteFile(filepath.Join(j.dir, fmt.Sprintf("seen-%d", os.Getpid())), nil, 0o600)
	os.WriteFile(filepath.Join(j.dir, fmt.Sprintf("seen-%d", nobody+1000)), []byte("refused: full\n"), 0o600)
	for now := range uint64(3) {
		j.poll((1 + 2*now) * second)
		if n := j.Counts().Seen; n != 1002 {
			t.Errorf("%d seen, want 1002", n)
		}
	}
	if left, _ := os.ReadDir(j.dir); len(left) != 2 {
		t.Errorf("%d files are left, want those of a living process and of one that was refused", len(left))
	}
}

func TestHeldChildren(t *testing.T) {
	j := newJob(t, Options{})
	if j.poll(1); len(j.Held()) != 0 {
		t.Errorf("held: %+v", j.Held())
	}
	for name, content := range map[string]string{
		"held-12": `{"call":"torch.save","target":"a.pt"}`, "held-13": "", "held-014": "{}", "held-x": "{}", "held-15.part": "{}",
		"held-16": "{" + strings.Repeat(" ", 1<<20) + "}",
	} {
		os.WriteFile(filepath.Join(j.dir, name), []byte(content), 0o600)
	}
	os.Symlink("/etc/passwd", filepath.Join(j.dir, "held-17"))
	j.poll(2)
	j.poll(3)
	want := []Held{{12, recording.SaveGuardNote{Call: "torch.save", Target: "a.pt"}}, {PID: 13}, {PID: 16}, {PID: 17}}
	if got := j.Held(); !slices.Equal(got, want) {
		t.Errorf("held: %+v, want %+v", got, want)
	}
}

func TestProcessLives(t *testing.T) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Skip(err)
	}
	_, ticks, ok := parseStat(stat)
	if !ok || !processLives(os.Getpid(), ticks) || processLives(os.Getpid(), ticks+1) || processLives(1<<30, ticks) {
		t.Errorf("own start %d, %v", ticks, ok)
	}
}

func TestParseStat(t *testing.T) {
	const rest = " 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 5 6"
	for _, c := range []struct {
		text  string
		state byte
		ticks uint64
		ok    bool
	}{
		{"7 (python) S" + rest, 'S', 4242, true},
		{"7 (a) b (c)) Z" + rest, 'Z', 4242, true},
		{"7 (python) S 1 2", 0, 0, false},
		{"", 0, 0, false},
		{"7 (p) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 x 5", 'S', 0, false},
	} {
		state, ticks, ok := parseStat([]byte(c.text))
		if ok != c.ok || ok && (state != c.state || ticks != c.ticks) {
			t.Errorf("%q: %c %d %v", c.text, state, ticks, ok)
		}
	}
}
