package wrap

import (
	"context"
	"fmt"
	"slices"
	"time"

	findings "github.com/datawait/datawait/analysis/verdict"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/spool"
)

// unfedWait is how long a job may step without a fetch before that is told.
const unfedWait = 10 * time.Second

// tellUnseen says, while the job runs, what of it is not seen and how it would be: Pythons that the hook was kept out of, as long as
// nothing trains, and steps on batches whose loader is not seen.
func (a *agent) tellUnseen(now uint64, live []spool.Process) {
	fetching, stepping := false, false
	var modules []string
	for _, p := range live {
		fetching = fetching || p.Fetches > 0
		stepping = stepping || stepsUnfed(p)
		modules = append(modules, p.OtherLoaders...)
	}
	switch {
	case fetching:
	case stepping:
		if a.unfedSince == 0 {
			a.unfedSince = now
		}
		if now-a.unfedSince >= uint64(unfedWait) {
			a.tell("optimizer steps are seen, but no fetch of a batch for them"+findings.Origin(modules), findings.WatchLine(modules))
		}
	default:
		if p := a.pythons.overdue(now, a.hookedSome()); p != nil {
			why, do := findings.Obstacle(p.why)
			a.tell(fmt.Sprintf("the hook did not run in process %d, `%s`: %s", p.PID, p.command, why), do)
		}
	}
}

// hookedSome reports whether the hook ran in any process of the job.
func (a *agent) hookedSome() bool {
	counts := a.drainer.Counts()
	return counts.Mains > 0 || counts.Seen > 0
}

// lookForPythons follows the Python processes, for hook-not-loaded. It becomes seldom in a run that is long under way.
func (a *agent) lookForPythons(_ context.Context, now uint64) error {
	if now < a.lookAt {
		return nil
	}
	elapsed := time.Duration(now - min(now, a.began))
	a.lookAt = now + uint64(min(elapsed/60, lookMost))
	members, err := a.machine.Members()
	a.pythons.look(now, members)
	return err
}

const lookMost = 10 * time.Second

// jobNote is what the recording keeps of the job's Python processes.
func (a *agent) jobNote(counts spool.Counts) recording.JobNote {
	note := recording.JobNote{PythonChildren: int64(a.pythons.count()), Spools: int64(counts.Mains + counts.Workers),
		KeptOut: a.pythons.noted(a.hookedSome())}
	seen, _ := spool.ReadSeen(a.session.folder.Dir) // what cannot be read has nothing to say
	for _, s := range seen {
		note.Refused = appendNew(note.Refused, s.Refused)
		for _, module := range s.Loaders {
			note.OtherLoaders = appendNew(note.OtherLoaders, module)
		}
	}
	return note
}

// mostTold is how many of the same kind a note of the job holds.
const mostTold = 16

func appendNew(list []string, s string) []string {
	if s == "" || len(list) >= mostTold || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
