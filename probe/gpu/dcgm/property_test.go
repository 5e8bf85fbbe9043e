//go:build linux && cgo

package dcgm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

// engineTale is an engine that exists only as a list of samples, each of which becomes visible some time after it was taken. The value
// of a sample tells its number, so that every window shows which sample it was made of.
type engineTale struct {
	offset  int64 // ns, of its wall clock to ours
	samples []told
}

type told struct {
	row     row
	visible int64 // ns, ours
}

const taleInterval = int64(100 * time.Millisecond)

// tale draws an engine that samples for a while: SM activity and tensor by one loop, power by another, each late by up to most.
// During the pauses it takes no samples.
func tale(r *rand.Rand, length, most int64, pauses [][2]int64) *engineTale {
	e := &engineTale{offset: r.Int64N(4e18) - 2e18 + 2e18}
	begin := int64(1000e9)
	for k := int64(0); k*taleInterval < length; k++ {
		t := begin + k*taleInterval + r.Int64N(taleInterval/10)
		paused := false
		for _, p := range pauses {
			paused = paused || t >= begin+p[0] && t < begin+p[1]
		}
		if paused {
			continue
		}
		for _, field := range []uint16{fieldSM, fieldTensor, fieldPower} {
			at := t
			if field == fieldPower {
				at -= 30e6
			}
			stamp := (at + e.offset) / 1000
			v := row{field: field, us: stamp, double: true, bits: math.Float64bits(number(k))}
			e.samples = append(e.samples, told{v, at + r.Int64N(most)})
		}
	}
	return e
}

// number is the value of the kth sample: a ratio, exact as a float32.
func number(k int64) float64 { return float64(k+1) / 8192 }

// since returns the rows of some fields that are visible now, in any order, with the row that says NO_DATA where there is none.
func (e *engineTale) since(r *rand.Rand, from, now int64, fields ...uint16) (rows []row) {
	for _, f := range fields {
		n := len(rows)
		for _, s := range e.samples {
			if s.row.field == f && s.row.us >= from && s.visible <= now {
				rows = append(rows, s.row)
			}
		}
		if len(rows) == n {
			rows = append(rows, row{field: f, status: -14})
		}
	}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

// polled reads the tale as Source does, at these times of ours, and returns every window and how many samples were rejected.
func (e *engineTale) polled(r *rand.Rand, polls []int64) (windows []recording.GPU, rejected uint64) {
	s := &Source{options: Options{Interval: time.Duration(taleInterval)}, reach: reach(time.Duration(taleInterval))}
	s.clock.tick(e.offset, 0, 0)
	d := &counted{windows: newAssembler(taleInterval), feeds: []*feed{{fields: []uint16{fieldSM}}, {fields: []uint16{fieldTensor}}, {fields: []uint16{fieldPower}}}}
	if r.IntN(2) == 0 {
		d.feeds = []*feed{{fields: []uint16{fieldTensor, fieldSM}}, {fields: []uint16{fieldPower}}}
	}
	for _, now := range polls {
		var b gpu.Batch
		for _, f := range d.feeds {
			engine := (now + e.offset) / 1000
			s.digest(d, &f.mark, answer{e.since(r, f.next, now, f.fields...), engine, now, now}, &b)
		}
		s.emit(d, uint64(now), &b)
		s.forget(d, uint64(now))
		windows, rejected = append(windows, b.Windows...), rejected+b.Rejected
	}
	return windows, rejected
}

// pollTimes are at random distances up to most, the last one long after the end.
func pollTimes(r *rand.Rand, length, most int64) (polls []int64) {
	t := int64(1000e9)
	for t < int64(1000e9)+length {
		t += 50e6 + r.Int64N(most)
		polls = append(polls, t)
	}
	return append(polls, t+60e9)
}

// sampleOf is the number of the sample that a window was made of.
func sampleOf(w recording.GPU) int64 { return int64(math.Round(float64(w.SM)*8192)) - 1 }

func disjoint(windows []recording.GPU) error {
	for i, w := range windows {
		if w.Begin >= w.End || i > 0 && w.Begin < windows[i-1].End {
			return fmt.Errorf("window %d overlaps the one before or is empty: %d to %d", i, w.Begin, w.End)
		}
	}
	return nil
}

func TestNoSampleIsLostOrCountedTwiceInWhateverOrderTheyCome(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		settle := newAssembler(taleInterval).settle
		length := 10e9 + r.Int64N(30e9)
		e := tale(r, length, settle, nil)
		windows, rejected := e.polled(r, pollTimes(r, length, []int64{300e6, 2e9, 9e9, 25e9}[seed%4]))
		if rejected != 0 {
			t.Fatalf("seed %d: %d samples were rejected", seed, rejected)
		}
		if err := disjoint(windows); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if want := (length + taleInterval - 1) / taleInterval; int64(len(windows)) != want-1 {
			t.Fatalf("seed %d: %d windows of %d samples, the first of which makes none", seed, len(windows), want)
		}
		for i, w := range windows {
			if got := sampleOf(w); got != int64(i)+1 || w.Tensor != w.SM || w.Power != w.SM {
				t.Fatalf("seed %d: window %d holds sample %d, tensor %v of %v, power %v", seed, i, got, w.Tensor, w.SM, w.Power)
			}
		}
	}
}

func TestWhatComesLaterThanItMayIsCountedOnceOrNotAtAll(t *testing.T) {
	dropped := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		e := tale(r, 20e9, 5e9, nil)
		windows, _ := e.polled(r, pollTimes(r, 20e9, 2e9))
		if err := disjoint(windows); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := 1; i < len(windows); i++ {
			if sampleOf(windows[i]) <= sampleOf(windows[i-1]) {
				t.Fatalf("seed %d: sample %d after sample %d", seed, sampleOf(windows[i]), sampleOf(windows[i-1]))
			}
		}
		dropped += 199 - len(windows)
	}
	if dropped == 0 {
		t.Error("nothing came too late: this test shows nothing")
	}
}

func TestSamplesThatAllComeSecondsLateAreAllCounted(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		e := tale(r, 20e9, newAssembler(taleInterval).settle, nil)
		for i, s := range e.samples {
			if s.row.field != fieldPower {
				e.samples[i].visible += 3e9 + int64(seed)*10e6
			}
		}
		windows, rejected := e.polled(r, pollTimes(r, 20e9, 2e9))
		if len(windows) != 199 || rejected != 0 {
			t.Fatalf("seed %d: %d windows of 200 samples, %d rejected", seed, len(windows), rejected)
		}
		for i, w := range windows {
			if sampleOf(w) != int64(i)+1 || w.Tensor != w.SM || w.Power != w.SM {
				t.Fatalf("seed %d: window %d holds sample %d, tensor %v of %v, power %v", seed, i, sampleOf(w), w.Tensor, w.SM, w.Power)
			}
		}
	}
}

func TestALostEngineLeavesAGapAndNothingElse(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		from := 5e9 + r.Int64N(5e9)
		pause := [2]int64{from, from + 1e9 + r.Int64N(20e9)}
		e := tale(r, 40e9, 200e6, [][2]int64{pause})
		var polls []int64
		for _, at := range pollTimes(r, 40e9, 2e9) { // none is answered while it is away
			if at < 1000e9+pause[0] || at > 1000e9+pause[1] {
				polls = append(polls, at)
			}
		}
		windows, rejected := e.polled(r, polls)
		if err := disjoint(windows); err != nil || rejected != 0 {
			t.Fatalf("seed %d: %v, %d rejected", seed, err, rejected)
		}
		if want := len(e.samples)/3 - 1; len(windows) != want {
			t.Fatalf("seed %d: %d windows of %d", seed, len(windows), want)
		}
		for _, w := range windows {
			if w.End-w.Begin > uint64(taleInterval*5/4) {
				t.Fatalf("seed %d: a window of %v claims the gap", seed, time.Duration(w.End-w.Begin))
			}
		}
	}
}

// TestWhatWasCountedBeforeTheRunIsNotOfIt: another client may have left samples.
func TestWhatWasCountedBeforeTheRunIsNotOfIt(t *testing.T) {
	s := &Source{opened: 1000e9, reach: 10e9}
	d := &counted{windows: newAssembler(taleInterval)}
	var b gpu.Batch
	var rows []row
	for us := int64(998e6); us <= 1002e6; us += 100e3 {
		rows = append(rows, row{field: fieldSM, us: us, double: true, bits: math.Float64bits(0.5)})
	}
	s.digest(d, &mark{}, answer{rows, 1002e6, 1002e9, 1002e9}, &b)
	s.emit(d, 1002e9, &b)
	if len(b.Windows) == 0 || b.Windows[0].Begin < 1000e9 || b.Rejected != 0 {
		t.Errorf("%d windows, the first %+v, %d rejected", len(b.Windows), b.Windows[:1], b.Rejected)
	}
}
