package prometheus

import (
	"time"

	"github.com/datawait/datawait/probe/unit"
)

// Agent is how the agent itself does.
type Agent struct {
	Version   string
	Started   time.Time
	Sources   []Source // everything it was told to look at, in a fixed order
	Spools    Spools
	Processes []Process // its own
}

// Source is one thing that the agent observes: "gpu", "spool", "holders", "host/limits", …
type Source struct {
	Name   string
	Up     bool                // it delivers
	Why    string              // why it does not, for people: one sentence, with what to do about it where that is known
	Took   unit.Maybe[float64] // s, its last run
	Runs   uint64
	Errors uint64 // of Runs: failed
}

// Spools counts the rings of hooks in the spool folder.
type Spools struct {
	Followed int // read
	Waiting  int // found and not read yet, because too many are
	Refused  int // not trustworthy: another owner, a link, no ring
}

// Process is one of the agent's own processes: "agent", "gpu-child" or "host-engine".
type Process struct {
	Name     string
	CPU      unit.Maybe[float64] // s, user and system, since it started
	Resident unit.Maybe[uint64]  // bytes
}
