package recording

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/datawait/datawait/probe/unit"
)

// Format is the format written into every manifest; a reader refuses a higher number (SPEC §6).
const Format = "datawait.recording/1"

const (
	formatName    = "datawait.recording/"
	formatVersion = 1
)

// Reasons Open refuses a folder; both are wrapped with the path.
var (
	// ErrNotRecording means that the path holds no recording and no spool.
	ErrNotRecording = errors.New("not a recording")
	// ErrNewer means that a later version of datawait wrote it.
	ErrNewer = errors.New("written by a newer datawait")
)

// Who ended a run (Manifest.EndedBy).
const (
	EndedByCommand  = "command"  // the training command ended by itself
	EndedByDatawait = "datawait" // the test was complete and datawait ended it
	EndedBySignal   = "signal"   // datawait was told to stop
	EndedBySlice    = "slice"    // the recording is one of several of a run that goes on
)

// Manifest is what the agent of one node says of the run (SPEC §6). The zero Manifest means that it wrote none.
type Manifest struct {
	Format           string                `json:"format"`
	Version          string                `json:"datawait_version"`
	Host             string                `json:"host"`
	BootID           string                `json:"boot_id"`
	Command          []string              `json:"command"`
	StartedAt        time.Time             `json:"started_at"`
	EndedAt          unit.Maybe[time.Time] `json:"ended_at"`          // unknown: the recording ends before the run
	StartedMonotonic uint64                `json:"started_monotonic"` // ns
	EndedMonotonic   unit.Maybe[uint64]    `json:"ended_monotonic"`   // ns
	EndedBy          unit.Maybe[string]    `json:"ended_by"`
	ExitCode         unit.Maybe[int]       `json:"exit_code"`
	Signal           unit.Maybe[string]    `json:"signal"` // name, as SIGKILL
	Options          map[string]any        `json:"options"`
	Hook             HookSummary           `json:"hook"`
	Warnings         []string              `json:"warnings"`
}

// HookSummary says whether the Python hook was seen at work.
type HookSummary struct {
	Attached bool `json:"attached"`
	Spools   int  `json:"spools"` // rings found
}

// Ending is what is known only when a run has ended; [Writer.Close] adds it to the manifest.
type Ending struct {
	At        time.Time
	Monotonic uint64 // ns
	By        string // EndedBy…
	ExitCode  unit.Maybe[int]
	Signal    unit.Maybe[string]
	Hook      HookSummary
	Warnings  []string
}

// ended returns the manifest with the ending filled in.
func (m Manifest) ended(e Ending) Manifest {
	m.EndedAt = unit.Some(e.At)
	m.EndedMonotonic = unit.Some(e.Monotonic)
	m.EndedBy = unit.Some(e.By)
	m.ExitCode, m.Signal = e.ExitCode, e.Signal
	m.Hook = e.Hook
	m.Warnings = append(append([]string{}, m.Warnings...), e.Warnings...)
	return m
}

// checkFormat accepts this version's format and older ones.
func checkFormat(format string) error {
	number, ok := strings.CutPrefix(format, formatName)
	if !ok {
		return fmt.Errorf("manifest has format %q: %w", format, ErrNotRecording)
	}
	version, err := strconv.Atoi(number)
	if err != nil || version < 1 {
		return fmt.Errorf("manifest has format %q: %w", format, ErrNotRecording)
	}
	if version > formatVersion {
		return fmt.Errorf("manifest has format %q, this version reads up to %q: %w", format, Format, ErrNewer)
	}
	return nil
}
