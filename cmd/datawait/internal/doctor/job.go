package doctor

import (
	"fmt"
	"strings"

	"github.com/datawait/datawait/probe/recording"
)

// lookAtJob says what is seen of a training process and its workers.
func lookAtJob(p python, s seen) []Finding {
	if p.Path == "" {
		return []Finding{{ID: "python", Subject: Job, State: Missing, Says: p.why,
			Raise: "install Python 3.8 or newer, or name one: datawait doctor --python /path/to/python3"}}
	}
	return []Finding{trains(p), hook(p, s), runQueue(p, s)}
}

func trains(p python) Finding {
	f := Finding{ID: "python", Subject: Job, State: Good, Says: p.String()}
	if p.Torch == "" {
		f.State = Limited
		f.Says += " has no PyTorch: only loaders inside datawait.watch() can be seen"
		f.Raise = "name the interpreter that trains: datawait doctor --python /path/to/python3"
	} else if p.CUDA != "" {
		f.Says += ", built for CUDA " + p.CUDA
	}
	return f
}

// hook says whether the hook attached by itself, as it would to any script that this Python runs.
func hook(p python, s seen) Finding {
	f := Finding{ID: "hook", Subject: Job, State: Good, Grade: "A"}
	var errors []string
	for _, m := range s.mains {
		for _, e := range m.Notes.HookErrors {
			errors = append(errors, e.Where+": "+e.Error)
		}
	}
	switch {
	case s.fetches > 0 && (s.batches > 0 || p.Torch == "") && len(errors) == 0:
		f.Says = fmt.Sprintf("the hook attaches by itself: %d fetches were seen", s.fetches)
		if s.batches > 0 {
			f.Says += fmt.Sprintf(", and %d batches built by a worker", s.batches)
		}
	case s.fetches > 0:
		f.State, f.Grade = Limited, "B"
		f.Says = sentence(fmt.Sprintf("the hook attaches, and sees a part: %d fetches, %d batches of workers", s.fetches, s.batches), strings.Join(errors, "; "))
	default:
		f.State, f.Grade = Missing, ""
		why := s.keptOut()
		f.Says = sentence("the hook does not attach: nothing of the training process is seen", strings.Join(append(why, append(errors, s.warnings...)...), "; "))
		f.Raise = raise(f.Says)
	}
	return f
}

// keptOut names what kept the hook out of a Python.
func (s *seen) keptOut() (why []string) {
	for _, k := range s.kept() {
		why = append(why, kept(k))
	}
	return why
}

// kept says in words why the hook did not run; what has no words is a reason already.
func kept(why string) string {
	switch why {
	case recording.KeptOutIsolated, recording.KeptOutNoEnv, recording.KeptOutNoSite:
		return "python " + why + " ignores what attaches it"
	case recording.KeptOutNoSpool, recording.KeptOutNoPath:
		return "the launcher drops environment variables"
	case recording.KeptOutOff:
		return "DATAWAIT_HOOK=off"
	case recording.KeptOutOld:
		return "Python is older than 3.8"
	case recording.KeptOutUser:
		return "it runs as another user"
	case recording.KeptOutUnreadable, recording.KeptOutUnknown:
		return "it is not known why"
	}
	return why
}

// runQueue says whether a worker that computes is told from one that waits for a core.
func runQueue(p python, s seen) Finding {
	f := Finding{ID: "run-queue", Subject: Job, State: Good, Grade: "A",
		Says: "how long a worker waits for a core is told by /proc/thread-self/schedstat"}
	switch {
	case s.runQueue:
	case p.Torch == "":
		f.State, f.Grade, f.Says = Missing, "", "how long a worker waits for a core was not tried: there was no worker"
	default:
		f.State, f.Grade = Limited, ""
		f.Says = "how long a worker waits for a core is not known: this kernel does not fill schedstat, so a crowded machine is told by its load alone"
		f.Raise = "a kernel with CONFIG_SCHED_INFO (all distributions have it; sandboxes such as gVisor do not)"
	}
	return f
}
