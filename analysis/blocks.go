package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis/baseline"
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// baseline hands the blocks of the cached-data test to its judge.
func (r *run) baseline() {
	blocks := r.blocks()
	skipped := r.skippedLegs()
	if len(blocks) > 0 && r.beside() {
		r.warn = append(r.warn, "the cached-data test says nothing: the batches that another thread reads were not in memory")
		return
	}
	if len(blocks) == 0 {
		for _, s := range skipped {
			r.warn = append(r.warn, fmt.Sprintf("no cached-data test (%s): %s", s.Leg, s.Reason))
		}
		return
	}
	o := baseline.Judge(blocks, r.setup())
	r.test = &o
	b := &Baseline{Legs: map[string]Leg{}, Ceiling: o.Ceiling, SavedSeconds: o.Saved, CopyShare: valueOf(o.Copy), InterferenceShare: o.Interference,
		UnexplainedShare: o.Unexplained, Pairs: o.Pairs, Conclusion: o.Conclusion, Why: o.Why, Skipped: []SkippedLeg{}}
	for name, leg := range o.Legs {
		b.Legs[name] = Leg{StepSeconds: leg.Seconds, SMActiveRatio: leg.SM, Blocks: leg.Blocks, Steps: leg.Steps}
	}
	for _, s := range o.Skipped {
		b.Skipped = append(b.Skipped, SkippedLeg{Leg: s.Leg, Reason: s.Reason})
	}
	b.Skipped = append(b.Skipped, skipped...)
	r.out.Baseline = b
	r.tried(blocks)
}

// setup says what the judge must know of the job's devices.
func (r *run) setup() baseline.Setup {
	s := baseline.Setup{Grade: stat.GradeA}
	for _, k := range r.ranked {
		if k.device != nil || k.Exposures > 0 || k.GPU() != "" || len(k.Notes.Devices) > 0 {
			s.Device = true
		}
		for _, m := range k.Marks {
			s.Device = s.Device || m.Code == recording.MarkCUDA
		}
		s.Emulated = s.Emulated || k.Emulated
		if k.device != nil {
			s.Emulated = s.Emulated || emulated(k.device)
			s.Grade = stat.Worse(s.Grade, k.device.grade)
			s.Counters = k.device.counters()
		}
	}
	return s
}

// blocks joins the ranks' accounts of each block: the mean of their steps, void where it is void for one.
func (r *run) blocks() []baseline.Block {
	all := map[uint32]*baseline.Block{}
	ranks := map[uint32]float64{}
	for _, k := range r.ranked {
		for i := range k.Blocks {
			b := &k.Blocks[i]
			j := all[b.Block]
			if j == nil {
				j = &baseline.Block{Number: int(b.Block), Leg: recording.Leg(b.Ref), DeviceTimed: true}
				all[b.Block] = j
			}
			if !k.join(j, b, &k.seen[i]) {
				continue
			}
			ranks[b.Block]++
		}
	}
	var blocks []baseline.Block
	for number, b := range all {
		if n := ranks[number]; n > 0 {
			b.Seconds /= n
		}
		blocks = append(blocks, *b)
	}
	slices.SortFunc(blocks, func(a, b baseline.Block) int { return a.Number - b.Number })
	return blocks
}

// join adds one rank's block, and what its GPU did inside; false if it is void there.
func (k *rank) join(j *baseline.Block, b *recording.Block, s *seen) bool {
	leg := recording.Leg(b.Ref)
	if !counted(b, leg) || leg != j.Leg {
		j.Void = max(b.Reason, recording.VoidTooFewSteps)
		return false
	}
	if why := k.interrupted(int64(b.Begin), int64(b.End)); why != 0 {
		j.Void = why
		return false
	}
	steps := float64(b.Steps)
	j.Steps = max(j.Steps, int(b.Steps))
	j.Seconds += float64(b.End-b.Begin) / 1e9 / steps
	// Ranks wait for one another, so a step is longer by the longest of their waits.
	j.Wait = max(j.Wait, float64(b.Wait)/1e9/steps)
	j.Exposed = max(j.Exposed, s.exposed/steps) // NaN if one does not know
	j.DeviceTimed = j.DeviceTimed && b.Flags&recording.BlockDevice != 0
	j.SM += s.sm
	j.SMSeconds += s.seconds
	j.Windows += s.windows
	return true
}

// interrupted says why the time between begin and end is not all training, 0 if it is. The hook makes such blocks void itself;
// this is for what it did not see in time, and for recordings of older ones.
func (k *rank) interrupted(begin, end int64) uint32 {
	for i := range k.Marks {
		m := &k.Marks[i]
		if m.Begin >= end {
			break
		}
		if m.End <= begin {
			continue
		}
		switch m.Code {
		case recording.MarkCheckpoint:
			return recording.VoidSaved
		case recording.MarkValidation:
			return recording.VoidOtherLoop
		}
	}
	return 0
}

// seen is what a rank's GPU showed in a block.
type seen struct {
	exposed float64 // wait, in seconds; NaN where it is not known
	sm      float64 // Σ activity × seconds, over the windows inside
	seconds float64 // Σ of theirs
	windows int
}

// look finds what the GPU showed in every block.
func (k *rank) look() {
	for i := range k.Blocks {
		b := &k.Blocks[i]
		s := seen{exposed: k.exposedIn(int64(b.Begin), int64(b.End))}
		if k.device != nil {
			s.watch(k.device.Windows, int64(b.Begin), int64(b.End))
		}
		k.seen = append(k.seen, s)
	}
}

// watch adds up the windows that lie between two times.
func (s *seen) watch(windows []load.Window, begin, end int64) {
	for i := firstWindow(windows, begin); i < len(windows) && windows[i].End <= end; i++ {
		w := &windows[i]
		if w.Begin < begin || w.Untrusted || w.SM != w.SM {
			continue
		}
		seconds := float64(w.End-w.Begin) / 1e9
		s.sm += float64(w.SM) * seconds
		s.seconds += seconds
		s.windows++
	}
}

// exposedIn is the exposed wait in seconds inside a stretch. A few fetches whose device clock was not read, as at the end of a
// block, are taken to be like the others; NaN if there are more.
func (k *rank) exposedIn(begin, end int64) float64 {
	i := firstFetch(k.Fetches, begin)
	var idle, wait, blind int64
	for ; i < len(k.Fetches) && k.Fetches[i].Enter < end; i++ {
		f := &k.Fetches[i]
		switch {
		case f.Upstream():
		case f.Idle == load.Unknown:
			blind += f.Wait()
		default:
			idle += f.Idle
			wait += f.Wait()
		}
	}
	if 4*blind > wait {
		return math.NaN()
	}
	if wait == 0 {
		return 0
	}
	return float64(idle) / 1e9 * float64(wait+blind) / float64(wait)
}

// firstFetch returns the index of the first fetch that begins at t or later.
func firstFetch(fetches []load.Fetch, t int64) int {
	i, _ := slices.BinarySearchFunc(fetches, t, func(f load.Fetch, t int64) int { return cmp.Or(cmp.Compare(f.Enter, t), 1) })
	return i
}

// firstWindow returns the index of the first window that ends after t.
func firstWindow(windows []load.Window, t int64) int {
	i, _ := slices.BinarySearchFunc(windows, t, func(w load.Window, t int64) int { return cmp.Or(cmp.Compare(w.End, t+1), 1) })
	return i
}

// skippedLegs lists what the test says it left out, each once.
func (r *run) skippedLegs() (skipped []SkippedLeg) {
	seen := map[SkippedLeg]bool{}
	add := func(notes []recording.LegSkippedNote) {
		for _, n := range notes {
			s := SkippedLeg{Leg: n.Leg.String(), Reason: n.Reason}
			if !seen[s] && len(skipped) < 64 {
				seen[s] = true
				skipped = append(skipped, s)
			}
		}
	}
	for _, n := range r.job.Nodes {
		for i := range n.Notes {
			add(n.Notes[i].LegsSkipped)
		}
	}
	for _, k := range r.ranked {
		add(k.Notes.LegsSkipped)
	}
	return skipped
}

// valueOf drops what a ratio of the contract has no room for.
func valueOf(e Est) Ratio {
	v, ok := e.Get()
	if !ok {
		return unit.None[float64](e.Why())
	}
	return unit.Some(v.Value)
}
