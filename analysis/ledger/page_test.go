package ledger

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var nan = float32(math.NaN())

// balance writes the accounts that are not zero, in their order.
func balance(t Totals) (text string) {
	for a, ns := range t.NS {
		if ns != 0 {
			text += fmt.Sprintf("%v %d ", Account(a), ns)
		}
	}
	return text + fmt.Sprintf("= %d, covered %d, wait ≤ %d", t.Allocated, t.Covered, t.WaitUpperBound)
}

func (s story) book() Totals {
	p := NewPage(s.begin, s.idleAfter)
	s.tell(p)
	p.Close(s.end)
	return p.Totals()
}

func (s story) tell(p *Page) {
	for _, lane := range s.lanes {
		n := p.Lane()
		for _, x := range lane {
			p.Add(n, x)
		}
	}
	for _, w := range s.windows {
		p.AddWindow(w)
	}
	if s.tested {
		p.Test(s.test)
	}
	for _, k := range s.kept {
		p.Keep(k.Begin, k.End)
	}
}

func TestPage(t *testing.T) {
	held := func(begin, end int64, resident float32) Window {
		return Window{Begin: begin, End: end, Resident: resident, Copy: nan, HeldKnown: true, Held: true}
	}
	free := held(0, 100, 0)
	free.Held = false
	tests := []struct {
		name  string
		story story
		want  string
	}{
		{"nothing is known", story{}, "unattributed 100 = 100, covered 0, wait ≤ 0"},
		{"no process, held", story{windows: []Window{held(0, 100, 0.2)}}, "compute 20 idle_held 80 = 100, covered 100, wait ≤ 0"},
		{"not held", story{windows: []Window{free}}, "not_held 100 = 100, covered 100, wait ≤ 0"},
		{"no counters: only the wait is known",
			story{lanes: [][]Span{{{10, 20, EpochOpens}, {30, 60, Exposed}}}},
			"startup 10 epoch_start 10 exposed_wait 30 unattributed 50 = 100, covered 0, wait ≤ 0"},
		{"a wait without a device clock is nobody's",
			story{lanes: [][]Span{{{0, 1, Busy}, {30, 60, Wait}}}, windows: []Window{held(0, 100, 0.5)}},
			"compute 50 host 20 unattributed 30 = 100, covered 100, wait ≤ 30"},
		{"resident time fills busy time, never the exposed wait",
			story{lanes: [][]Span{{{0, 1, Busy}, {30, 60, Exposed}}}, windows: []Window{held(0, 100, 0.9)}},
			"exposed_wait 30 compute 70 = 100, covered 100, wait ≤ 0"},
		{"validation runs on between its fetches, checkpoints win",
			story{lanes: [][]Span{{{0, 1, Busy}, {10, 20, Validates}, {30, 40, Validates}, {38, 50, Saves}}}, windows: []Window{held(0, 100, 0)}},
			"validation 28 checkpoint 12 host 60 = 100, covered 100, wait ≤ 0"},
		{"untrusted windows are never idle",
			story{lanes: [][]Span{{{0, 1, Busy}}}, idleAfter: 30, windows: []Window{{Begin: 0, End: 100, Resident: 0, Untrusted: true, HeldKnown: true, Held: true}}},
			"unattributed 100 = 100, covered 0, wait ≤ 0"},
		{"no step for long", story{lanes: [][]Span{{{0, 1, Busy}}}, idleAfter: 30, windows: []Window{held(0, 100, 0)}},
			"host 1 idle_held 99 = 100, covered 100, wait ≤ 0"},
		{"a first step that takes long is start-up: it compiles",
			story{lanes: [][]Span{{{5, 10, EpochOpens}, {90, 90, Busy}}}, idleAfter: 30, windows: []Window{held(0, 100, 0)}},
			"startup 85 epoch_start 5 host 10 = 100, covered 100, wait ≤ 0"},
		{"the test is not allocated, its live blocks are",
			story{lanes: [][]Span{{{0, 1, Busy}}}, tested: true, test: 40, kept: []Span{{Begin: 60, End: 70}}, windows: []Window{held(0, 100, 0.5)}},
			"compute 25 host 25 = 50, covered 50, wait ≤ 0"},
		{"copies are booked where nothing computes",
			story{lanes: [][]Span{{{0, 1, Busy}}}, windows: []Window{{Begin: 0, End: 100, Resident: 0.5, Copy: 0.3}}},
			"copy 30 compute 50 host 20 = 100, covered 100, wait ≤ 0"},
		{"of two processes on one GPU, the busier one counts",
			story{lanes: [][]Span{{{0, 1, Busy}, {20, 80, Exposed}}, {{0, 1, Busy}, {70, 90, Exposed}}}, windows: []Window{held(0, 100, 0)}},
			"exposed_wait 10 host 90 = 100, covered 100, wait ≤ 0"},
	}
	for _, test := range tests {
		test.story.end = 100
		test.story.idleAfter = cmp.Or(test.story.idleAfter, 1000)
		got := test.story.book()
		if text := balance(got); text != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, text, test.want)
		}
		if twin := test.story.twin(); got != twin {
			t.Errorf("%s: the twin says\n     %s", test.name, balance(twin))
		}
	}
}

func TestWaited(t *testing.T) {
	tests := []struct {
		idle int64
		want string
	}{
		{-1, "[{10 30 1}]"}, {0, "[{10 30 0}]"}, {5, "[{10 25 0} {25 30 2}]"}, {20, "[{10 30 2}]"}, {99, "[{10 30 2}]"},
	}
	for _, test := range tests {
		if got := fmt.Sprint(Waited(10, 30, test.idle)); got != test.want {
			t.Errorf("Waited(10, 30, %d) = %s, want %s", test.idle, got, test.want)
		}
	}
}

// random makes a story in which nearly everything can happen.
func random(r *rand.Rand) story {
	s := story{begin: r.Int64N(20), end: 100 + r.Int64N(200), idleAfter: 1 + r.Int64N(60)}
	for range r.IntN(3) {
		var lane []Span
		for range r.IntN(12) {
			begin := r.Int64N(s.end)
			lane = append(lane, Span{begin, min(s.end, begin+r.Int64N(1+r.Int64N(50))), State(r.IntN(int(spanStates)))})
		}
		s.lanes = append(s.lanes, lane)
	}
	for range r.IntN(8) {
		begin := r.Int64N(s.end)
		w := Window{Begin: begin, End: min(s.end, begin+1+r.Int64N(60)), Resident: r.Float32(), Copy: r.Float32(),
			Untrusted: r.IntN(6) == 0, HeldKnown: r.IntN(3) > 0, Held: r.IntN(3) > 0}
		switch r.IntN(6) {
		case 0:
			w.Resident = nan
		case 1:
			w.Resident = 0
		case 2:
			w.Copy = nan
		}
		s.windows = append(s.windows, w)
	}
	if r.IntN(3) == 0 {
		s.tested, s.test = true, r.Int64N(s.end)
		for at := s.test + r.Int64N(30); at < s.end; at += r.Int64N(40) {
			end := min(s.end, at+1+r.Int64N(30))
			s.kept = append(s.kept, Span{Begin: at, End: end})
			at = end
		}
	}
	return s
}

// TestTwin compares a page with its slow twin, and its accounts with their sum.
func TestTwin(t *testing.T) {
	for seed := range uint64(4000) {
		s := random(rand.New(rand.NewPCG(seed, 1)))
		got, want := s.book(), s.twin()
		got.Late = 0
		if got != want {
			t.Fatalf("seed %d: %+v\n got %s\nwant %s", seed, s, balance(got), balance(want))
		}
		if s.tested { // the view of that time alone is what is booked when nothing else is allocated
			p := NewPage(s.begin, s.idleAfter)
			s.tell(p)
			p.View(append([]Span{{Begin: s.begin, End: s.test}}, s.kept...))
			p.Close(s.end)
			if viewed := p.Viewed(); viewed.NS != got.NS || viewed.WaitUpperBound != got.WaitUpperBound {
				t.Fatalf("seed %d: the view says %s", seed, balance(viewed))
			}
		}
		sum := int64(0)
		for _, ns := range got.NS {
			sum += ns
		}
		if sum != got.Allocated {
			t.Fatalf("seed %d: accounts sum to %d, allocated %d", seed, sum, got.Allocated)
		}
	}
}

// TestStream feeds entries in random order and settles in random steps, keeping the promise of CloseUpTo and nothing more: the
// balance is that of a page that was told everything at once.
func TestStream(t *testing.T) {
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := random(r)
		s.begin = 0
		want := s.book()
		p := NewPage(0, s.idleAfter)
		type entry struct {
			due   int64 // it must be there before this time is settled
			tell  func()
			early bool // it may come before it is due
		}
		var entries []entry
		for _, lane := range s.lanes {
			n := p.Lane()
			for _, x := range lane {
				entries = append(entries, entry{x.Begin, func() { p.Add(n, x) }, true})
			}
		}
		for _, w := range s.windows {
			entries = append(entries, entry{w.Begin, func() { p.AddWindow(w) }, true})
		}
		if s.tested {
			entries = append(entries, entry{s.test, func() { p.Test(s.test) }, true})
		}
		for _, k := range s.kept {
			entries = append(entries, entry{k.End, func() { p.Keep(k.Begin, k.End) }, false}) // a block is written when it has ended
		}
		r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		for at := int64(0); at < s.end; at += r.Int64N(60) {
			entries = slices.DeleteFunc(entries, func(e entry) bool {
				if e.due < at || e.early && r.IntN(20) == 0 {
					e.tell()
					return true
				}
				return false
			})
			p.CloseUpTo(at)
			if p.Settled() > at {
				t.Fatalf("seed %d: settled %d of %d", seed, p.Settled(), at)
			}
		}
		for _, e := range entries {
			e.tell()
		}
		p.Close(s.end)
		if got := p.Totals(); got != want {
			t.Fatalf("seed %d: %+v\n got %s (late %d)\nwant %s", seed, s, balance(got), got.Late, balance(want))
		}
	}
}

func BenchmarkPage(b *testing.B) {
	b.ReportAllocs()
	p := NewPage(0, 0)
	lane := p.Lane()
	at := int64(0)
	for i := range b.N {
		for _, s := range Waited(at, at+5e6, 3e6) {
			p.Add(lane, s)
		}
		p.Add(lane, Span{at + 20e6, at + 20e6, Busy})
		at += 20e6
		if i%5 == 0 {
			p.AddWindow(Window{Begin: at - 20e6, End: at + 80e6, Resident: 0.7, Copy: nan})
		}
		if i%10000 == 0 {
			p.CloseUpTo(at)
		}
	}
	p.Close(at)
}
