package analysis

import (
	"slices"

	"github.com/datawait/datawait/analysis/loader"
)

const (
	stallFirst  = 31        // steps from which a usual one is known
	stallTimes  = 3         // as long as a usual one
	stallLeast  = 50e6      // ns longer than a usual one
	stallCap    = 1 << 14   // that are kept
	regularPart = 2.0 / 3.0 // of the distances between them that must be alike …
	regularBy   = 0.25      // … to within this part
)

// stalls finds steps that take far longer outside next() than others do: a checkpoint, what a validation loop waits for its data, a
// collector of garbage. The cost of epoch starts is no part of them.
type stalls struct {
	steps int // live ones so far
	usual int64
	early []stall // before the usual step was known
	all   []stall
}

// stall is one such step.
type stall struct {
	number           int
	outside          int64 // ns outside next()
	aside            int64 // ns waiting for loaders that do not train
	validates, saves bool
}

func (st *stalls) see(s *step) {
	if !s.live || s.gap || s.end <= s.begin {
		return
	}
	st.steps++
	outside := s.end - s.begin - s.wait - s.made
	if st.usual != 0 && !st.long(outside) { // nearly every step; keep takes from outside and adds nothing to it
		return
	}
	this := stall{st.steps, outside, s.aside, s.validates, s.saves}
	if st.usual == 0 {
		if st.early = append(st.early, this); len(st.early) == stallFirst {
			st.settle()
		}
		return
	}
	st.keep(this)
}

// settle finds what is usual among the first steps, and which of them were stalls.
func (st *stalls) settle() {
	if len(st.early) == 0 {
		return
	}
	var outside []int64
	for _, s := range st.early {
		outside = append(outside, s.outside)
	}
	slices.Sort(outside)
	st.usual = max(1, outside[len(outside)/2])
	for _, s := range st.early {
		st.keep(s)
	}
	st.early = nil
}

func (st *stalls) keep(s stall) {
	if s.validates && !s.saves { // validating is work; waiting for its data is not
		s.outside = min(s.outside, st.usual+s.aside)
	}
	if st.long(s.outside) && len(st.all) < stallCap {
		st.all = append(st.all, s)
	}
}

// long reports a time outside next() that is far longer than usual.
func (st *stalls) long(outside int64) bool {
	return outside > stallTimes*st.usual && outside > st.usual+stallLeast
}

// found adds them up over so much live time, ns.
func (st *stalls) found(live int64) (f loader.Stalls) {
	if st.usual == 0 {
		st.settle()
	}
	if len(st.all) == 0 || live <= 0 {
		return f
	}
	var sum int64
	var apart []int
	for i, s := range st.all {
		sum += s.outside - st.usual
		f.N++
		if s.validates {
			f.Validation++
		}
		if s.saves {
			f.Saves++
		}
		if i > 0 {
			apart = append(apart, s.number-st.all[i-1].number)
		}
	}
	f.Seconds = float64(sum) / 1e9 / float64(f.N)
	f.PerStep, f.Share = float64(sum)/1e9/float64(st.steps), float64(sum)/float64(live)
	f.Every, f.Regular = regular(apart)
	return f
}

// regular is the median distance, and whether most are near it.
func regular(apart []int) (every float64, yes bool) {
	if len(apart) == 0 {
		return 0, false
	}
	slices.Sort(apart)
	every = float64(apart[len(apart)/2])
	alike := 0
	for _, n := range apart {
		if d := float64(n) - every; max(d, -d) <= regularBy*every {
			alike++
		}
	}
	return every, len(apart) >= 2 && float64(alike) >= regularPart*float64(len(apart))
}
