package plan

import (
	"fmt"
	"time"

	"github.com/datawait/datawait/probe/recording"
)

const (
	minSteps   = 10              // counted steps of a block, at least
	minWindows = 10              // counter windows of a block, at least
	steadyFor  = 3 * time.Second // a run is steady after this time, or after
	steadyIn   = 30              // so many steps
	maxStretch = 4               // how many times its least length a block becomes when there is time
	maxCounted = 4 * time.Second // beyond it a block is not stretched
	soloBlocks = 2               // cached blocks that ask for solo builds
)

// Options is what the planner must know before the run.
type Options struct {
	Budget  time.Duration   // of the whole run, start and report included
	Reserve time.Duration   // of the budget, for ending and reporting
	MaxStep uint64          // the run is parked at this step at the latest; 0 = no limit
	Window  time.Duration   // one counter window
	Legs    []recording.Leg // cached legs to run, the most important first
	Pairs   int             // pairs wanted of the first leg
	Extra   int             // pairs wanted of every other leg
	Try     Trying          // whether to ask for loaders to try once the legs are planned
}

// Defaults returns the options of a diagnosis with this budget.
func Defaults(budget time.Duration) Options {
	return Options{
		Budget: budget, Reserve: min(max(budget/20, time.Second), 5*time.Second), Window: 100 * time.Millisecond,
		Legs:  []recording.Leg{recording.LegHostCached, recording.LegHostCachedBusy, recording.LegDeviceCached},
		Pairs: 4, Extra: 2,
	}
}

// View is what the rings say of themselves at one moment.
type View struct {
	Now   time.Duration // since the command was started
	Ranks []Rank        // the training processes seen so far
}

// Rank is one training process at one moment.
type Rank struct {
	Steps       uint64        // finished
	Fetches     uint64        // of the training loader
	Wait        time.Duration // sum of its waits
	Workers     int           // of the training loader; 0 = the main process builds batches
	Prefetch    int           // batches ahead per worker
	EpochLength uint64        // fetches of the current epoch, 0 = not known
	EpochIndex  uint64        // fetches of it so far
	Parked      bool
}

// Phase is where a diagnosis stands.
type Phase int

const (
	Waiting Phase = iota // no step seen yet
	Warming              // steps run, but not steadily yet
	Testing              // blocks are planned
	Parking              // the last block is planned, or the run must end
	Refused              // there will be no test; Decision.Why says why
)

// Decision is the plan as it stands.
type Decision struct {
	Phase  Phase
	Blocks []recording.PlannedBlock // all planned so far, in order
	Park   uint64                   // step to park at, recording.Unknown64 = not planned
	Now    bool                     // park at the next opportunity
	Why    string                   // a sentence, in Refused
	Asks   bool                     // for Try, once: which other loaders are to be tried
}

// Planner makes the plan of one run. Call Next with every view, and Finished with every block the hook reports.
type Planner struct {
	opt     Options
	history history
	legs    map[recording.Leg]*legState
	blocks  []recording.PlannedBlock
	park    uint64
	phase   Phase
	now     bool
	watch   bool // the run is never ended
	asks    bool // which loaders to try
	asked   bool
	trials  []recording.Trial
	coarse  bool // epochs or the budget made blocks shorter than ten windows

	lastBlock  uint32 // number and end of the block reported last
	lastEnd    uint64
	settled    time.Duration // see paces
	hasSettled bool
	why        string
}

// legState is what is known of one leg.
type legState struct {
	planned int           // pairs
	good    int           // finished blocks that count
	bad     int           // finished blocks that do not
	step    time.Duration // of the last block that counts, 0 = none yet
	settle  uint64        // factor on settling, doubled when a block was too short
	void    uint32        // reason of the last void block
	given   string        // why the leg was given up, "" = it was not
}

// New returns a planner for one run.
func New(o Options) *Planner {
	p := &Planner{opt: o, park: recording.Unknown64, legs: map[recording.Leg]*legState{}}
	for _, leg := range append([]recording.Leg{recording.LegLive}, o.Legs...) {
		p.legs[leg] = &legState{settle: 1}
	}
	return p
}

// Next takes one view and returns the plan. Views come in the order of time, a few in every second.
func (p *Planner) Next(v View) Decision {
	if len(v.Ranks) > 0 {
		p.history.add(v)
	}
	switch p.phase {
	case Waiting:
		if len(v.Ranks) > 0 && slowest(v).Steps > 0 {
			p.phase = Warming
		}
		p.checkBudget(v)
	case Warming:
		if p.steady(v) {
			p.extend(v)
		}
		p.checkBudget(v)
	case Testing:
		p.extend(v)
		p.ask(v)
	}
	if p.spent(v) {
		p.overrun()
	}
	return p.decision()
}

// spent reports whether a run must be ended that the plan does not end: the budget is over, or, where there is no plan,
// the steps are.
func (p *Planner) spent(v View) bool {
	switch {
	case p.watch || p.phase < Testing:
		return false
	case v.Now >= p.opt.Budget:
		return true
	}
	return p.phase == Refused && p.opt.MaxStep > 0 && len(v.Ranks) > 0 && furthest(v).Steps >= p.opt.MaxStep
}

// overrun ends a run whose budget is spent: the plan took longer than foreseen, or there was none.
func (p *Planner) overrun() {
	p.now = true
	if p.phase == Testing {
		p.phase = Parking
	}
}

func (p *Planner) decision() Decision {
	return Decision{Phase: p.phase, Blocks: p.blocks, Park: p.park, Now: p.now, Why: p.why, Asks: p.asks}
}

// checkBudget refuses a test when the budget is spent before one began.
func (p *Planner) checkBudget(v View) {
	if p.phase == Testing || p.phase == Parking || p.left(v) > 0 {
		return
	}
	if p.phase == Waiting {
		p.refuse("no training step was seen within the budget of %v", p.opt.Budget)
		return
	}
	p.refuse("the run was not steady within the budget of %v", p.opt.Budget)
}

// Refuse rules a test out, and that the run is ended: it is only watched. A test that has begun goes on.
func (p *Planner) Refuse(why string) {
	if p.phase < Testing {
		p.refuse("%s", why)
		p.watch = true
	}
}

func (p *Planner) refuse(format string, args ...any) {
	p.phase, p.why = Refused, fmt.Sprintf(format, args...)
}

// left is the time until the run must be parked.
func (p *Planner) left(v View) time.Duration { return p.opt.Budget - p.opt.Reserve - v.Now }

// steady reports whether every rank is past the filling of its loader's queue (2·W fetches) and has run long enough
// for a first estimate.
func (p *Planner) steady(v View) bool {
	for _, r := range v.Ranks {
		if r.Fetches < uint64(2*r.Workers) || r.Steps < 3 {
			return false
		}
	}
	return slowest(v).Steps >= steadyIn || v.Now-p.history.began() >= steadyFor
}

// Finished takes a block the hook reports as done, and learns how long its steps took or why it does not count.
func (p *Planner) Finished(b recording.Block) {
	s := p.legs[p.legOf(b)]
	if s == nil {
		return
	}
	if b.Flags&recording.BlockVoid == 0 && b.Steps > 0 && b.End > b.Begin {
		if recording.Leg(b.Ref) != recording.LegLive && b.Block == p.lastBlock+1 && b.Begin > p.lastEnd {
			p.settled, p.hasSettled = time.Duration(b.Begin-p.lastEnd), true
		}
		p.lastBlock, p.lastEnd = b.Block, b.End
		s.good++
		s.step = time.Duration((b.End - b.Begin) / uint64(b.Steps))
		return
	}
	s.bad++
	s.void = b.Reason
	switch b.Reason {
	case recording.VoidTooFewSteps:
		s.settle = min(2*s.settle, 8)
	case recording.VoidException:
		s.given = "this job's batches cannot be served that way"
	case recording.VoidTooLarge:
		s.given = "the batches are too large for the memory the test may use"
	}
}

// Skipped says for every wanted leg that has no good block why that is so; of a leg that raised, the hook has said why.
func (p *Planner) Skipped() (skipped []recording.LegSkippedNote) {
	for _, leg := range p.opt.Legs {
		if s := p.legs[leg]; s.good == 0 && s.void != recording.VoidException {
			note := recording.LegSkippedNote{Leg: leg, Reason: p.whySkipped(s)}
			if i, ok := trialIndex(leg); ok {
				note = recording.LegSkippedNote{Leg: recording.LegTrial, Reason: p.trials[i].String() + ": " + note.Reason}
			}
			skipped = append(skipped, note)
		}
	}
	return skipped
}

func (p *Planner) whySkipped(s *legState) string {
	switch {
	case p.phase == Refused:
		return p.why
	case s.given != "":
		return s.given
	case s.planned == 0:
		return fmt.Sprintf("no time was left in the budget of %v", p.opt.Budget)
	case s.void != 0:
		return "no block of it could be used: " + voidReason(s.void)
	}
	return "the run ended before a block of it was complete"
}

// Coarse reports whether short epochs or a short budget made blocks shorter than ten counter windows, so that SM activity per leg is
// coarse while step times still count.
func (p *Planner) Coarse() bool { return p.coarse }

func voidReason(reason uint32) string {
	switch reason {
	case recording.VoidEpochEnded:
		return "an epoch ended inside it"
	case recording.VoidTooFewSteps:
		return "too few steps remained after it had settled"
	case recording.VoidEndedEarly:
		return "the run ended inside it"
	case recording.VoidNeverIdle:
		return "the loader's workers never became idle"
	case recording.VoidNoBatch:
		return "there was no batch to replay"
	case recording.VoidOtherLoop:
		return "another loop over data ran inside it"
	case recording.VoidSaved:
		return "a checkpoint was saved inside it"
	}
	return "the hook gave no reason this version knows"
}
