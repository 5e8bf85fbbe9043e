package spool

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// Process is what a training process says of itself right now: enough for a progress line and for planning a test. It comes
// from the ring's header and sums, so it costs nothing in proportion to the records.
type Process struct {
	PID         int
	Stream      recording.StreamID // 0 if the sink refused it
	Declaration recording.Declaration
	recording.RingHeader

	// Training is the loader with the most fetches outside validation; -1 before any fetch. Loaders from 31 on are one.
	Training int
	Totals   recording.Totals // of the training loader
	Recent   Pace
	Loader   recording.LoaderNote // of the training loader; the zero note if the hook told none
	Moved    uint64               // ns, the poll that last saw a fetch, step or record
	Error    string               // the hook's last own error, "" if it had none

	OtherLoaders []string // modules of loaders that were imported and that the hook does not see
}

// Pace is what happened between two polls some seconds apart. All zero until two polls saw something.
type Pace struct {
	Span    uint64 // ns between the polls
	Fetches uint64 // of the training loader
	Steps   uint64
	Wait    uint64 // ns inside next()
	Between uint64 // ns between two fetches
}

// WaitShare returns the share of time spent inside next(), 0–1; ok is false if nothing was fetched.
func (p Pace) WaitShare() (share float64, ok bool) {
	if p.Fetches == 0 || p.Wait+p.Between == 0 {
		return 0, false
	}
	return float64(p.Wait) / float64(p.Wait+p.Between), true
}

const (
	paceOver  = 5e9   // ns: Recent looks back this far
	paceEvery = 250e6 // ns between two kept samples
)

// view keeps the live view of one ring.
type view struct {
	header   recording.RingHeader
	totals   recording.Totals
	training int
	samples  []sample // the last paceOver, oldest first
	moved    uint64
	told     recording.Notes // loaders and errors; the note area bounds them
}

func newView() view { return view{training: -1} }

type sample struct {
	at, fetches, steps, wait, between uint64
}

func (v *view) update(now uint64, h recording.RingHeader, totals [recording.RingTotalSlots]recording.Totals) {
	if h.Fetches != v.header.Fetches || h.Step != v.header.Step || h.Head != v.header.Head {
		v.moved = now
	}
	v.header = h
	training := trainingLoader(totals)
	if training != v.training {
		v.samples = nil // sums of another loader do not compare
	}
	v.training = training
	if training < 0 {
		return
	}
	v.totals = totals[training]
	v.sample(sample{now, v.totals.Fetches, h.Step, v.totals.Wait, v.totals.Between})
}

// trainingLoader returns the slot with the most fetches outside validation, -1 if there is none.
func trainingLoader(totals [recording.RingTotalSlots]recording.Totals) int {
	best, most := -1, uint64(0)
	for i, t := range totals {
		if t.Fetches > t.NoGrad && t.Fetches-t.NoGrad > most {
			best, most = i, t.Fetches-t.NoGrad
		}
	}
	return best
}

// sample keeps the newest sample always, older ones paceEvery apart.
func (v *view) sample(s sample) {
	if n := len(v.samples); n >= 2 && s.at-v.samples[n-2].at < paceEvery {
		v.samples[n-1] = s
	} else {
		v.samples = append(v.samples, s)
	}
	for len(v.samples) > 2 && s.at-v.samples[1].at >= paceOver {
		v.samples = v.samples[1:]
	}
}

// recent compares the newest sample with the oldest kept one. Sums that went back (no process does that, a hostile file may)
// give no pace.
func (v *view) recent() Pace {
	if len(v.samples) < 2 {
		return Pace{}
	}
	a, b := v.samples[0], v.samples[len(v.samples)-1]
	if b.fetches < a.fetches || b.steps < a.steps || b.wait < a.wait || b.between < a.between {
		return Pace{}
	}
	return Pace{Span: b.at - a.at, Fetches: b.fetches - a.fetches, Steps: b.steps - a.steps, Wait: b.wait - a.wait, Between: b.between - a.between}
}

// notes keeps what the hook tells of its loaders and of itself.
func (v *view) notes(notes []json.RawMessage) {
	for _, raw := range notes {
		v.told.Add(raw)
	}
}

// loader returns the note of the training loader.
func (v *view) loader() recording.LoaderNote {
	for _, l := range v.told.Loaders {
		if int(l.Loader) == v.training {
			return l
		}
	}
	return recording.LoaderNote{}
}

func (v *view) lastError() string {
	n := len(v.told.HookErrors)
	if n == 0 {
		return ""
	}
	return v.told.HookErrors[n-1].Where + ": " + v.told.HookErrors[n-1].Error
}

func (v *view) otherLoaders() (modules []string) {
	for _, n := range v.told.OtherLoaders {
		modules = append(modules, n.Module)
	}
	return modules
}

// Live returns the training processes followed now, by rank and then pid. Processes that have ended are left out.
func (d *Drainer) Live() []Process {
	var live []Process
	for _, r := range d.rings {
		if !r.main() {
			continue
		}
		v := &r.view
		live = append(live, Process{PID: r.pid, Stream: r.id, Declaration: r.reader.Declaration(), RingHeader: v.header,
			Training: v.training, Totals: v.totals, Recent: v.recent(), Loader: v.loader(), Moved: v.moved, Error: v.lastError(), OtherLoaders: v.otherLoaders()})
	}
	slices.SortFunc(live, byRank)
	return live
}

// byRank puts processes that know no rank last.
func byRank(a, b Process) int {
	rank := func(p Process) int {
		if p.Declaration.Rank == nil {
			return math.MaxInt
		}
		return *p.Declaration.Rank
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.PID, b.PID))
}
