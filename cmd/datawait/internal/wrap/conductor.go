package wrap

import (
	"fmt"
	"os"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/plan"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/spool"
)

// conductor runs the cached-data test: it shows the planner what the ranks do, writes the plan to the control page, and
// tells when the run is over. It belongs to the agent's goroutine.
type conductor struct {
	planner *plan.Planner
	budget  time.Duration
	control control
	tap     *tap

	decision plan.Decision
	written  recording.Control
	progress progressWatch
	began    uint64 // ns, when the first rank was seen to train
	apart    bool   // some ranks are out of the test's reach: they train on other nodes, or fetch nothing
}

func newConductor(o plan.Options, page control, t *tap) *conductor {
	return &conductor{planner: plan.New(o), budget: o.Budget, control: page, tap: t, written: recording.Control{ParkAt: recording.Unknown64}}
}

// control is the page the ranks read.
type control interface {
	Write(recording.Control) error
}

// patience is how long ranks of the same job may stay apart: the last one to park, and, within a quarter of the budget,
// the last one to begin.
const patience = 20 * time.Second

// verdict is what a conductor says of the run as a whole.
type verdict struct {
	over bool
	why  string // a sentence, "" when the plan was simply done
}

// step looks at the ranks and acts. now is CLOCK_MONOTONIC, elapsed the time since the command was started, held whether a
// child of a rank waits before a save.
func (c *conductor) step(now uint64, elapsed time.Duration, live []spool.Process, held bool) (verdict, error) {
	for _, b := range c.tap.takeBlocks() {
		c.planner.Finished(b)
	}
	ranks := c.training(now, live)
	c.decision = c.planner.Next(c.view(elapsed, ranks))
	if err := c.write(len(live)); err != nil {
		return verdict{}, err
	}
	return c.verdict(now, live, held), nil
}

// training returns the processes that train, or none before all ranks of the job do.
func (c *conductor) training(now uint64, live []spool.Process) []spool.Process {
	var ranks []spool.Process
	want, unfed := 1, false
	for _, p := range live {
		if p.Training >= 0 && p.Step > 0 {
			ranks = append(ranks, p)
		}
		unfed = unfed || stepsUnfed(p)
		if p.Block > 0 && c.decision.Phase < plan.Testing {
			c.planner.Refuse("another datawait had begun one in this run and ended before it was done")
		}
		if w := p.Declaration.WorldSize; w != nil {
			want = max(want, *w)
		}
	}
	if unfed && c.decision.Phase < plan.Testing {
		c.apart = true
		c.planner.Refuse(whyUnfed(len(ranks)))
	}
	if len(ranks) == 0 {
		return nil
	}
	if c.began == 0 {
		c.began = now
	}
	if len(ranks) >= want {
		return ranks
	}
	if now-c.began > uint64(min(patience, c.budget/4)) && c.decision.Phase < plan.Testing {
		c.apart = true
		c.planner.Refuse(fmt.Sprintf("%d of the job's %d ranks train on this node, and the test runs on one node only", len(ranks), want))
	}
	return nil
}

// stepsUnfed reports a process that makes optimizer steps and was never seen to fetch a batch.
func stepsUnfed(p spool.Process) bool {
	const certain = 8 // steps: of a loader that is seen, a fetch comes before the first
	return p.Training < 0 && p.StepUnit == recording.StepOptimizer && p.Step >= certain
}

func whyUnfed(fed int) string {
	if fed == 0 {
		return "optimizer steps are made, but no fetch of a loader is seen"
	}
	return "some ranks make steps and fetch nothing, and the test has to serve every rank"
}

func (c *conductor) view(elapsed time.Duration, ranks []spool.Process) plan.View {
	v := plan.View{Now: elapsed}
	for _, p := range ranks {
		r := plan.Rank{Steps: p.Step, Fetches: p.Totals.Fetches, Wait: time.Duration(p.Totals.Wait), Parked: p.Parked != recording.NotParked}
		if it, ok := c.tap.loaders[loaderKey{p.Stream, uint16(p.Training)}]; ok {
			r.Workers, r.Prefetch = workers(it)
		}
		if p.EpochLength != recording.Unknown64 && p.EpochBatch != recording.Unknown64 {
			r.EpochLength, r.EpochIndex = p.EpochLength, p.EpochBatch
		}
		v.Ranks = append(v.Ranks, r)
	}
	return v
}

// workers returns how many workers a loader has, and how many batches each keeps ahead.
func workers(it recording.Iterator) (workers, prefetch int) {
	const usual, most = 2, 4096 // PyTorch's default prefetch_factor; what a sane loader has at most
	if it.Workers != recording.Unknown32 {
		workers = int(min(it.Workers, most))
	}
	prefetch = usual
	if it.Prefetch != recording.Unknown32 {
		prefetch = int(min(it.Prefetch, most))
	}
	return workers, prefetch
}

// write brings the control page up to date with the decision.
func (c *conductor) write(ranks int) error {
	d := c.decision
	page := recording.Control{Mode: recording.ControlObserve, AgentPID: uint32(os.Getpid()), ParkAt: d.Park, Cap: c.written.Cap, Plan: d.Blocks}
	switch {
	case d.Now:
		page.Mode = recording.ControlPark
	case d.Phase == plan.Testing || d.Phase == plan.Parking:
		page.Mode = recording.ControlTest
	}
	if page.Mode == c.written.Mode && page.ParkAt == c.written.ParkAt && len(page.Plan) == len(c.written.Plan) {
		return nil
	}
	if c.written.Cap == 0 {
		page.Cap = c.tap.cacheRoom(ranks)
	}
	if err := c.control.Write(page); err != nil {
		return err
	}
	c.written = page
	return nil
}

// verdict tells whether the run may be ended: all ranks are parked, or some are and the others make no step any more; or
// one is about to save and all are guarded. Without a cached block nothing guards a checkpoint that is being written, so
// then only a parked rank ends a run.
func (c *conductor) verdict(now uint64, live []spool.Process, saving bool) verdict {
	training, parked := 0, 0
	for _, p := range live {
		if p.Training >= 0 {
			training++
		}
		if p.Parked != recording.NotParked {
			parked++
		}
		saving = saving || p.Parked == recording.ParkedBySave
	}
	still := c.progress.still(now, live)
	why := ""
	if saving {
		why = "the script was about to save or delete files, and the run was ended before that: it had trained on repeated batches"
	}
	switch {
	case saving && c.guarded(live):
		return verdict{true, why}
	case parked > 0 && (parked >= training || still > patience):
		return verdict{true, why}
	case c.decision.Now && c.guarded(live) && still > patience:
		return verdict{true, "the job did not come to the end of a step, and was ended where it was"}
	}
	return verdict{}
}

// until says how long a run without a test goes on.
func (c *conductor) until(budget time.Duration) string {
	if c.began == 0 || c.apart {
		return " until the command ends or you press Ctrl-C"
	}
	return fmt.Sprintf(" and ended after %v", budget)
}

// guarded reports whether the save-guard is armed in every rank: from then on none saves or deletes anything.
func (c *conductor) guarded(live []spool.Process) bool {
	ranks := 0
	for _, p := range live {
		if !trains(p, live) {
			continue
		}
		if !c.tap.guarded[p.Stream] {
			return false
		}
		ranks++
	}
	return ranks > 0
}

// trains reports whether a process is a rank, and no child of one that has a loader of its own.
func trains(p spool.Process, live []spool.Process) bool {
	for _, other := range live {
		if other.PID == p.Declaration.PPID {
			return false
		}
	}
	return p.Training >= 0
}

// progressWatch tells for how long no rank has made a step.
type progressWatch struct {
	steps uint64 // of all ranks
	since uint64 // ns
}

func (w *progressWatch) still(now uint64, live []spool.Process) time.Duration {
	sum := uint64(0)
	for _, p := range live {
		sum += p.Step
	}
	if sum != w.steps || w.since == 0 {
		w.steps, w.since = sum, now
	}
	return time.Duration(now - w.since)
}
