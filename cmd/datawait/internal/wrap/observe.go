package wrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/datawait/datawait/cmd/datawait/internal/plan"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/spool"
)

// showEvery is slow on purpose: the command may write to the same terminal. A command that ends at once is not talked
// about at all.
const (
	showEvery = 500 * time.Millisecond
	showAfter = time.Second
)

// drain takes what the rings hold, and acts on what they say.
func (a *agent) drain(_ context.Context, now uint64) error {
	err := a.drainer.Poll(now)
	live := a.drainer.Live()
	a.remember(live)
	elapsed := time.Duration(now - a.began)
	if elapsed >= showAfter && now >= a.showAt {
		a.showAt = now + uint64(showEvery-a.pace.view/2) // the tick nearest to it, not the one after
		a.session.line.Show(status(a.session.options, elapsed, live, a.trained, a.test, a.tap.sm))
	}
	a.tellTrouble(elapsed, live)
	a.tellUnseen(now, live)
	if a.test == nil {
		return err
	}
	held := a.drainer.Held()
	for _, h := range held[a.heldTold:] {
		_ = a.own.Note(h.Note) // the tap keeps the error
	}
	a.heldTold = len(held)
	v, terr := a.test.step(now, elapsed, live, len(held) > 0)
	a.tellPlan(now)
	a.tryOut()
	if v.over {
		a.finished(v.why)
	}
	return errors.Join(err, terr)
}

// remember keeps the training processes for the end of the run.
func (a *agent) remember(live []spool.Process) {
	now := &crew{ranks: make([]rank, len(live))}
	for i, p := range live {
		now.ranks[i] = rank{p.PID, p.Declaration.StartTicks}
		now.steps += p.Step
		a.trained = a.trained || p.Step > 0
	}
	a.ranks.Store(now)
}

// crew returns the training processes as they were seen last.
func (a *agent) crew() crew {
	if seen := a.ranks.Load(); seen != nil {
		return *seen
	}
	return crew{}
}

// finished says once that the run may be ended.
func (a *agent) finished(why string) {
	select {
	case a.over <- why:
	default:
	}
}

// tellPlan notes the phases of the run, and says why there will be no test.
func (a *agent) tellPlan(now uint64) {
	d := a.test.decision
	switch d.Phase {
	case plan.Testing:
		a.phase(now, "test")
	case plan.Parking:
		a.phase(now, "finish")
	case plan.Refused:
		a.tell("no cached-data test: "+d.Why+"; the run is watched"+a.test.until(a.session.options.Duration), "")
	}
}

// phase notes once that a phase began.
func (a *agent) phase(now uint64, name string) {
	if !a.said["phase "+name] {
		a.said["phase "+name] = true
		_ = a.own.Note(recording.PhaseNote{T: now, Phase: name}) // the tap keeps the error
	}
}

// tell says a sentence, and a hint with it, once.
func (a *agent) tell(sentence, hint string) {
	if a.said[sentence] {
		return
	}
	a.said[sentence] = true
	a.session.say(sentence)
	if hint != "" {
		a.session.hint(hint)
	}
}

// tellTrouble says what keeps the run from being observed, as soon as it is known. None of it touches the job.
func (a *agent) tellTrouble(elapsed time.Duration, live []spool.Process) {
	for _, p := range live {
		switch {
		case p.Hook == recording.HookDisabled:
			a.tell(fmt.Sprintf("the hook in process %d switched itself off (%s); the report covers what was seen before", p.PID, p.Error), "")
		case p.Error != "":
			a.tell(fmt.Sprintf("the hook in process %d caught an error of its own: %s", p.PID, p.Error), "")
		}
	}
	if a.tap.err != nil {
		a.tell(fmt.Sprintf("the recording ends here: %v; the job goes on", a.tap.err), "")
	}
	if o := a.session.options; a.test != nil && a.test.decision.Now && elapsed > o.Duration+patience {
		a.tell(fmt.Sprintf("the budget of %v is spent, but the job comes to no step at which it can be ended without harm", o.Duration),
			"press Ctrl-C to end it")
	}
}

// watchGPU takes what the GPU child sent.
func (a *agent) watchGPU(ctx context.Context, _ uint64) error { return a.gpu.Poll(ctx, a.tap) }

// flush brings what was gathered onto the disk when it is time again, and takes away the rings that hold nothing else. In memory
// they may not pile up: a job can start workers every second.
func (a *agent) flush(_ context.Context, now uint64) error {
	if now < a.flushAt && a.drainer.Ended() < mostEnded {
		return nil
	}
	after := flushAfter(time.Duration(now - a.began))
	a.flushAt = now + uint64(after-flushEvery/2) // the tick nearest to it, not the one after
	err := a.writer.Flush()
	if err == nil {
		a.drainer.RemoveEnded()
	}
	return err
}

// flushAfter is how long an agent gathers records before it writes them: what one that is killed loses of a run so long. It grows
// with the run, because a report of a long one is read in large pieces or slowly.
func flushAfter(elapsed time.Duration) time.Duration {
	return min(max(elapsed/100, flushEvery), flushMost)
}

// finish stops observing, drains the rings for the last time and closes the recording.
func (a *agent) finish(e ended) error {
	a.stop()
	a.loop.Wait()
	now := clock.Mono()
	err := errors.Join(a.gpu.Finish(a.tap), a.drainer.Finish(now))
	counts := a.drainer.Counts()
	a.drainer.Close()
	a.page.Close()
	a.notesAtEnd(counts)
	ending := recording.Ending{At: time.Now(), Monotonic: now, By: e.by, Warnings: a.warnings(counts),
		Hook: recording.HookSummary{Attached: counts.Mains > 0 || counts.Seen > 0, Spools: counts.Mains + counts.Workers}}
	if e.known {
		ending.ExitCode, ending.Signal = e.exitCode(), e.signal()
	}
	err = errors.Join(err, a.writer.Close(ending))
	if a.tap.err != nil {
		return a.tap.err // what follows from it would only repeat it
	}
	return err
}

// notesAtEnd writes what is known only now. The tap keeps the errors.
func (a *agent) notesAtEnd(counts spool.Counts) {
	_ = a.pairClocks()
	a.phase(clock.Mono(), "finish")
	_ = a.own.Note(a.jobNote(counts))
	if a.test == nil {
		return
	}
	for _, skipped := range a.test.planner.Skipped() {
		_ = a.own.Note(skipped)
	}
}

// warnings are sentences for the report.
func (a *agent) warnings(counts spool.Counts) (w []string) {
	if why := a.gpu.Warning(); why != "" {
		w = append(w, why)
	}
	if why := a.holders.warning(&a.tap.gpus); why != "" {
		w = append(w, why)
	}
	if counts.Bad > 0 {
		w = append(w, fmt.Sprintf("%d rings could not be read: %v", counts.Bad, counts.LastBad))
	}
	if counts.Waiting > 0 {
		w = append(w, fmt.Sprintf("%d processes were not followed: too many at once", counts.Waiting))
	}
	if a.test != nil && a.test.planner.Coarse() {
		w = append(w, "blocks of the cached-data test were shorter than ten counter windows: SM activity per leg is coarse")
	}
	return w
}
