package sampler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/datawait/datawait/probe/recording"
)

// condition is what the last try of a source came to.
type condition uint8

const (
	untried condition = iota
	working
	failing
	unsupported
)

// source is a probe or an external source and what is known of its health.
type source struct {
	Probe
	ref   uint16
	quiet bool // the sampler's own: writes the health of the others and has none

	usage    Usage // of an external source; nil for a probe
	delivers bool  // an external source that is in good health only if something came

	next    uint64 // ns, of the next tick
	state   condition
	why     string // of the last failure
	skipped uint64 // ticks left out because it was late
	last    outcome

	window window
	cpu    uint64 // of an external process, at the end of the last window; unknown before

	named bool
	told  string // why, as the last note says it
	notes int
}

// window is what happened since health was last recorded.
type window struct {
	begin           uint64
	samples, errors uint32
	late            uint64 // ns, the most
	cpu             uint64 // ns
}

// outcome is one run of a probe.
type outcome struct {
	err      error
	late     uint64 // ns behind its tick
	cpu      uint64 // ns
	duration uint64 // ns
	at       uint64 // ns, when it ended
}

// pace is the time in ns between this run and the next.
func (s *source) pace() uint64 {
	if s.Hurries != nil && s.Hurries() {
		return uint64(s.Every) / hurry
	}
	return uint64(s.Every)
}

func (s *source) took(o outcome) {
	s.last = o
	s.window.late = max(s.window.late, o.late)
	s.window.cpu += o.cpu
	switch {
	case o.err == nil:
		s.state, s.why = working, ""
		s.window.samples++
	case errors.Is(o.err, errors.ErrUnsupported):
		s.state, s.why = unsupported, o.err.Error()
	default:
		s.fail(o.err)
	}
}

func (s *source) fail(err error) {
	s.state, s.why = failing, err.Error()
	s.window.errors++
}

// guard runs f and turns a panic into an error that names its place.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v%s", p, panicPlace())
		}
	}()
	return f()
}

// panicPlace returns " in function (file:line)" of the innermost frame below the panic that is not the runtime's own.
func panicPlace() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	panicked := false
	for {
		f, more := frames.Next()
		if f.Function == "runtime.gopanic" {
			panicked = true
		} else if panicked && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf(" in %s (%s:%d)", filepath.Base(f.Function), filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

// maxNotes bounds how often one source may change its reason in a recording: a reason may hold a number that changes.
const maxNotes = 50

// testify writes the health of every source over the time since it was last written.
func (s *Sampler) testify(_ context.Context, now uint64) (err error) {
	for _, src := range s.sources {
		if !src.quiet {
			err = errors.Join(err, s.testifyOf(src, now))
		}
	}
	return err
}

func (s *Sampler) testifyOf(src *source, now uint64) error {
	w := src.window
	if now <= w.begin {
		return nil
	}
	r := recording.Source{Ref: src.ref, Begin: w.begin, End: now, RSS: recording.Unknown64}
	r.CPU = float32(float64(w.cpu) / float64(now-w.begin))
	if src.usage != nil {
		src.ask(&r, now-w.begin)
		w = src.window
		s.board.post(src)
	}
	r.Lateness, r.Samples, r.Errors = w.late, w.samples, w.errors
	if w.errors == 0 && (w.samples > 0 || src.usage != nil && !src.delivers) {
		r.Flags = recording.SourceSuccess
	}
	src.window = window{begin: now}
	if err := s.name(src); err != nil {
		return err
	}
	return s.out.Append(r.Encode())
}

// ask reads what an external source uses. A counter that went back belongs to a process that was started anew.
func (s *source) ask(r *recording.Source, span uint64) {
	r.CPU = float32(math.NaN())
	cpu, rss, err := s.usage()
	if err != nil {
		s.fail(fmt.Errorf("reading what %s uses: %w", s.Name, err))
		s.cpu = recording.Unknown64
		return
	}
	if s.cpu != recording.Unknown64 && cpu != recording.Unknown64 && cpu >= s.cpu {
		r.CPU = float32(float64(cpu-s.cpu) / float64(span))
	}
	s.cpu, r.RSS = cpu, rss
	if !s.delivers || s.window.samples > 0 {
		s.state, s.why = working, ""
	}
}

// name says which source the ref is, and again whenever the reason changes why it has no data.
func (s *Sampler) name(src *source) error {
	if src.named && (src.told == src.why || src.notes >= maxNotes) {
		return nil
	}
	if err := s.out.Note(recording.DeviceNameNote{Class: recording.ClassSource, Ref: src.ref, Name: src.Name, Why: src.why}); err != nil {
		return err
	}
	src.named, src.told = true, src.why
	src.notes++
	return nil
}
