package analysis

import (
	"math"
	"testing"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// week is a run of a GPU and a rank for so many seconds: a window and a wait each, one window in a thousand a stall.
func week(seconds int) (*run, *device, *rank) {
	node := &load.Node{Begin: start, End: start + int64(seconds)*1000*ms}
	d := &device{GPU: &load.GPU{Node: node}}
	k := &rank{Rank: &load.Rank{Node: node, TestBegan: load.Unknown}}
	k.trains.add(0)
	for i := range int64(seconds) {
		begin := start + i*1000*ms
		w := load.Window{Begin: begin, End: begin + 1000*ms, SM: 0.75, Resident: 1}
		switch {
		case i%1000 == 500:
			w.SM = 0.125
		case i%1000 == 700:
			w.SM = float32(math.NaN())
		}
		d.Windows = append(d.Windows, w)
		f := load.Fetch{Enter: begin, Exit: begin + 250*ms, Batch: uint32(i)}
		if i == 0 {
			f.Flags = recording.FetchFirst
		}
		k.Fetches = append(k.Fetches, f)
	}
	return &run{begin: node.Begin, end: node.End, ranked: []*rank{k}, devices: []*device{d}}, d, k
}

// TestALongRunIsFoldedForPictures: few windows and waits are left, of which nothing is missing that a picture shows.
func TestALongRunIsFoldedForPictures(t *testing.T) {
	const seconds = 604_800
	r, d, k := week(seconds)
	r.drawDevice(d)
	r.drawRank(k)
	if n, m := len(d.drawn), len(k.drawn.waits); n > 2*drawnWindows || m > 2*drawnWaits {
		t.Errorf("%d windows and %d waits are left", n, m)
	}
	weighted, known, stalls, waited := 0.0, 0.0, 0, 0.0
	for i, w := range d.drawn {
		if i > 0 && math.Abs(w.Begin-d.drawn[i-1].End) > 1e-6 {
			t.Fatalf("window %d begins at %v, the one before ends at %v", i, w.Begin, d.drawn[i-1].End)
		}
		if w.SM == w.SM {
			weighted += w.SM * (w.End - w.Begin)
			known += w.End - w.Begin
		}
		if w.Folded > 0 && w.Low == 0.125 || w.SM == 0.125 {
			stalls++
		}
		if middle := seconds / 2.0; math.Abs(w.Begin-middle) < 12 && w.Folded > 0 {
			t.Errorf("the window at %v, in the middle, is folded", w.Begin)
		}
	}
	if want := (0.75*998 + 0.125) / 999; math.Abs(weighted/known-want) > 1e-4 {
		t.Errorf("mean activity %.5f, want %.5f", weighted/known, want)
	}
	if want := (seconds + 499) / 1000; stalls != want {
		t.Errorf("%d stalls are left of %d", stalls, want)
	}
	for i, w := range k.drawn.waits {
		if i > 0 && w.begin < k.drawn.waits[i-1].end {
			t.Fatalf("wait %d overlaps the one before", i)
		}
		waited += float64(w.end-w.begin) / 1e9
	}
	if math.Abs(waited-seconds/4.0) > 1e-6 || len(k.drawn.starts) != 1 {
		t.Errorf("%v s of waiting and %d epoch starts", waited, len(k.drawn.starts))
	}
}

func TestAShortRunIsDrawnAsItIs(t *testing.T) {
	r, d, k := week(3600)
	r.drawDevice(d)
	r.drawRank(k)
	if len(d.drawn) != 3600 || len(k.drawn.waits) != 3600 {
		t.Fatalf("%d windows and %d waits of an hour", len(d.drawn), len(k.drawn.waits))
	}
	if w := d.drawn[500]; w.SM != 0.125 || w.Folded != 0 || w.Begin != 500 || k.drawn.waits[500] != (span{start + 500_000*ms, start + 500_250*ms}) {
		t.Errorf("window %+v", w)
	}
}

// TestNothingIsFoldedOverALongGap: where counters were missing for an hour, the picture shows it.
func TestNothingIsFoldedOverALongGap(t *testing.T) {
	r, d, k := week(200_000)
	cut := func(from, to int) {
		d.Windows = append(d.Windows[:from:from], d.Windows[to:]...)
		k.Fetches = append(k.Fetches[:from:from], k.Fetches[to:]...)
	}
	cut(50_001, 53_601)
	r.drawDevice(d)
	r.drawRank(k)
	for _, w := range d.drawn {
		if w.End > 50_002 && w.Begin < 53_600 {
			t.Errorf("a window from %v to %v", w.Begin, w.End)
		}
	}
	for _, w := range k.drawn.waits {
		if w.end > start+50_001_000*ms && w.begin < start+53_601_000*ms {
			t.Errorf("a wait from %v to %v", w.begin, w.end)
		}
	}
}
