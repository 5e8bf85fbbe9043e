package ledger

import (
	"math"
	"slices"
	"strings"

	"github.com/datawait/datawait/probe/recording"
)

// stream turns the records of one process into entries of a page.
//
// A fetch is told when the device's clock has measured it, which is some fetches later, and an iterator when its first fetch shows
// what it serves. Until then the page holds: it settles nothing from there on.
type stream struct {
	book        *Book
	declaration recording.Declaration
	gpus        map[uint16]*account // of an agent
	account     *account            // of a training process
	lane        int
	trains      bool   // it fetched or stepped
	early       []Span // told before the lane was known
	fetches     []held // not told yet, in order
	iterators   []held
	clocked     bool // a device clock was seen
	blind       int  // fetches seen before any
}

// held is a fetch or an iterator that is not told yet.
type held struct {
	Span
	seq    uint32
	loader uint16
	epoch  uint32
}

// patience is how many fetches a device clock may be late.
const patience = 64

func (s *stream) take(r *recording.Record) {
	switch r.Kind() {
	case recording.KindFetch:
		s.fetch(r.Seq(), r.Fetch())
	case recording.KindStep:
		if v := r.Step(); v.End < recording.Latest {
			s.trains = true
			s.add(Span{int64(v.End), int64(v.End), Busy})
		}
	case recording.KindExposed:
		s.exposed(r.Exposed())
	case recording.KindIterator:
		if v := r.Iterator(); v.Begin <= v.End && v.End < recording.Latest && (s.book.bound == 0 || len(s.iterators) < patience) {
			s.iterators = append(s.iterators, held{Span: Span{int64(v.Begin), int64(v.End), EpochOpens}, loader: v.Ref, epoch: v.Epoch})
		}
	case recording.KindMark:
		s.mark(r.Mark())
	case recording.KindBlock:
		s.block(r.Block())
	case recording.KindGPU:
		s.window(r.GPU())
	}
}

func (s *stream) add(x Span) {
	if s.account == nil {
		if s.book.bound == 0 || len(s.early) < s.book.bound {
			s.early = append(s.early, x)
		}
		return
	}
	s.account.page.Add(s.lane, x)
}

func (s *stream) fetch(seq uint32, f recording.Fetch) {
	if f.Enter > f.Exit || f.Exit >= recording.Latest || f.Flags&(recording.FetchNested|recording.FetchOffThread) != 0 {
		return
	}
	s.trains = true
	x := Span{int64(f.Enter), int64(f.Exit), Wait}
	switch {
	case f.Flags&recording.FetchNoGrad != 0:
		x.State = Validates
	case f.Flags&recording.FetchFirst != 0:
		x.State = EpochOpens
	}
	if f.Flags&recording.FetchFirst != 0 {
		s.serves(f.Ref, f.Epoch, x.State)
	}
	if f.Flags&recording.FetchCached != 0 {
		s.test(x.Begin)
	}
	if x.State != Wait {
		s.add(x)
		return
	}
	s.fetches = append(s.fetches, held{Span: x, seq: seq})
	if !s.clocked {
		s.blind++
	}
	late := 0
	for late < len(s.fetches) && (len(s.fetches)-late > patience || !s.clocked && s.blind > patience) {
		s.add(s.fetches[late].Span)
		late++
	}
	s.fetches = slices.Delete(s.fetches, 0, late)
}

// exposed tells the fetch that the device's clock measured.
func (s *stream) exposed(e recording.Exposed) {
	s.clocked = true
	for i, f := range s.fetches {
		if f.seq != e.Fetch {
			continue
		}
		s.fetches = slices.Delete(s.fetches, i, i+1)
		if e.Idle >= recording.Latest {
			s.add(f.Span)
			return
		}
		first, second := waited(f.Begin, f.End, min(int64(e.Idle), f.End-f.Begin))
		s.add(first)
		if second.End > second.Begin {
			s.add(second)
		}
		return
	}
}

// serves tells the iterator whose first fetch has come.
func (s *stream) serves(loader uint16, epoch uint32, state State) {
	for i, it := range s.iterators {
		if it.loader == loader && it.epoch == epoch {
			s.iterators = slices.Delete(s.iterators, i, i+1)
			it.State = state
			s.add(it.Span)
			return
		}
	}
}

func (s *stream) mark(m recording.Mark) {
	if m.Begin > m.End || m.End >= recording.Latest {
		return
	}
	x := Span{int64(m.Begin), int64(m.End), Busy}
	switch recording.MarkCode(m.Ref) {
	case recording.MarkValidation:
		x.State = Validates
		s.add(x)
	case recording.MarkCheckpoint:
		x.State = Saves
		s.add(x)
	case recording.MarkTestBegan:
		s.test(x.Begin)
	}
}

// test and block speak of the whole GPU, so they need its page at once.
func (s *stream) test(t int64) {
	if s.book.assign(); s.account != nil {
		s.account.page.Test(t)
	}
}

func (s *stream) block(b recording.Block) {
	if b.Begin >= b.End || b.End >= recording.Latest {
		return
	}
	if s.book.assign(); s.account == nil {
		return
	}
	if recording.Leg(b.Ref) != recording.LegLive {
		s.account.page.Test(int64(b.Begin))
	} else if b.Flags&recording.BlockVoid == 0 && b.Reason == 0 && b.Steps > 0 {
		s.account.page.Keep(int64(b.Begin), int64(b.End))
	}
}

func (s *stream) window(v recording.GPU) {
	if v.Begin >= v.End || v.End >= recording.Latest {
		return
	}
	a := s.gpus[v.Ref]
	if a == nil {
		a = s.book.open(recording.GPUNote{GPU: v.Ref, Emulated: v.Flags&recording.GPUEmulated != 0})
		s.gpus[v.Ref] = a
	}
	a.page.AddWindow(WindowOf(v))
}

// WindowOf returns what the ledger needs of a counter window. Ratios that no device can show make it untrusted; a little above 1
// is rounding.
func WindowOf(v recording.GPU) Window {
	w := Window{Begin: int64(v.Begin), End: int64(v.End), Resident: v.Resident, Copy: v.Copy, Untrusted: v.Flags&recording.GPUUntrusted != 0,
		HeldKnown: v.Flags&recording.GPUHeldKnown != 0, Held: v.Flags&recording.GPUHeld != 0}
	for _, r := range []float32{v.SM, v.Resident, v.Tensor, v.DRAM, v.Copy} {
		w.Untrusted = w.Untrusted || r < 0 || r > 1.02
	}
	w.Resident, w.Copy = min(w.Resident, 1), min(w.Copy, 1)
	return w
}

// SameGPU compares UUIDs: PyTorch leaves out the prefix that NVML writes, which is another one for a slice.
func SameGPU(a, b string) bool {
	strip := func(s string) string {
		return strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(s, "GPU-"), "MIG-"))
	}
	return a != "" && strip(a) == strip(b)
}

// settle gives up waiting for what is too late, and holds the page where something is still to come.
func (s *stream) settle(t int64) {
	hold := int64(math.MaxInt64)
	for len(s.iterators) > 0 && t-s.iterators[0].Begin > s.idleAfter() {
		s.add(s.iterators[0].Span)
		s.iterators = s.iterators[1:]
	}
	for limit := s.book.impatience; limit > 0 && !s.clocked && len(s.fetches) > 0 && t-s.fetches[0].Begin > limit; s.fetches = s.fetches[1:] {
		s.add(s.fetches[0].Span)
	}
	if t == math.MaxInt64 {
		for _, f := range s.fetches {
			s.add(f.Span)
		}
		s.fetches = nil
	}
	if len(s.fetches) > 0 {
		hold = s.fetches[0].Begin
	}
	if len(s.iterators) > 0 {
		hold = min(hold, s.iterators[0].Begin)
	}
	if s.account != nil {
		s.account.page.Hold(s.lane, hold)
	}
}

func (s *stream) idleAfter() int64 {
	if s.book.idleAfter > 0 {
		return s.book.idleAfter
	}
	return DefaultIdleAfter
}
