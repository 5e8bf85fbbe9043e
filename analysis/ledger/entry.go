package ledger

import (
	"cmp"
	"math"
)

// State is what a training process did for a while.
type State uint8

// States of a process. Where several hold at once, the highest of the first six wins; Idle and Startup are what a page makes
// of gaps. On a GPU that several processes share, the lowest wins: the process that keeps the GPU busiest.
const (
	Busy       State = iota // anything else: preparing, launching, computing, or a wait that the device did not notice
	Wait                    // inside next(), exposure unknown
	Exposed                 // inside next(), the device had nothing to run
	EpochOpens              // making an iterator, or inside its first next()
	Validates               // a validation loop
	Saves                   // a checkpoint
	Idle                    // no sign of life for long
	Starts                  // before any of the above
	states
	spanStates = Idle // spans carry a state below this
)

// Span is what a process did from Begin to End. An instant is a sign of life.
type Span struct {
	Begin, End int64 // ns
	State      State
}

// compare orders spans by begin; what begins together is taken together.
func (s Span) compare(o Span) int { return cmp.Compare(s.Begin, o.Begin) }

// Waited returns the spans of one wait for data.
//
//	enter                     exit
//	  |<-- device still busy -->|<-- idle -->|
//	  Busy                      Exposed
//
// The device's clock counts from the moment it ran dry, so the exposed part is the last part of the wait. A negative idle is
// one that no device clock measured.
func Waited(enter, exit, idle int64) []Span {
	first, second := waited(enter, exit, idle)
	if second.End == second.Begin {
		return []Span{first}
	}
	return []Span{first, second}
}

func waited(enter, exit, idle int64) (first, second Span) {
	switch {
	case idle < 0:
		return Span{enter, exit, Wait}, Span{}
	case idle == 0:
		return Span{enter, exit, Busy}, Span{}
	case idle >= exit-enter:
		return Span{enter, exit, Exposed}, Span{}
	}
	return Span{enter, exit - idle, Busy}, Span{exit - idle, exit, Exposed}
}

// Window is one window of a GPU's counters.
type Window struct {
	Begin, End int64   // ns
	Resident   float32 // 0–1, any kernel resident; NaN if not read
	Copy       float32 // 0–1, copy engine busy; NaN if not read
	Untrusted  bool    // the counters contradict one another
	HeldKnown  bool    // it is known whether a process holds the GPU
	Held       bool
}

func (w Window) compare(o Window) int {
	return cmp.Or(cmp.Compare(w.Begin, o.Begin), cmp.Compare(w.End, o.End),
		cmp.Compare(math.Float32bits(w.Resident), math.Float32bits(o.Resident)),
		cmp.Compare(math.Float32bits(w.Copy), math.Float32bits(o.Copy)),
		cmp.Compare(w.flags(), o.flags()))
}

func (w Window) flags() (f int) {
	for i, b := range [...]bool{w.Untrusted, w.HeldKnown, w.Held} {
		if b {
			f |= 1 << i
		}
	}
	return f
}

// trusted reports whether the window says how long kernels were resident.
func (w Window) trusted() bool { return !w.Untrusted && w.Resident >= 0 && w.Resident <= 1 }
