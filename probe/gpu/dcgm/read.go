//go:build linux && cgo

package dcgm

import (
	"fmt"
	"time"

	bind "github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
)

// feed is what one read asks of one GPU: some of the fields that are watched.
type feed struct {
	mark
	handle  bind.FieldHandle
	fields  []uint16
	watched bool
}

// fieldsPerRead keeps what a read returns small. A poll after a hundred windows brings a hundred rows of each field, and go-dcgm takes
// over 4 KiB for each: room for 256 at once, and twice as much whenever that is too little. The engine is asked for each field by itself
// however many a read names.
func fieldsPerRead(interval time.Duration) int {
	const room, again = 256, 6 // rows that come once more, and some to spare
	return max(1, room/int(Pause(interval)/interval+again))
}

// sample reads one GPU. The error means that the engine as a whole is in trouble.
func (s *Source) sample(d *counted, until uint64, b *gpu.Batch) error {
	err := s.readAll(d, b)
	if err != nil && s.inTrouble(err, until) {
		return s.down
	}
	s.emit(d, until, b)
	if err != nil {
		b.Failures = append(b.Failures, gpu.Failure{Ref: d.Ref, Why: err.Error()})
		return nil
	}
	s.forget(d, until)
	if why := s.absence(d, int64(until)); why != "" {
		b.Failures = append(b.Failures, gpu.Failure{Ref: d.Ref, Why: why})
	}
	return nil
}

func (s *Source) readAll(d *counted, b *gpu.Batch) error {
	for _, f := range d.feeds {
		if !f.watched {
			continue
		}
		if err := s.read(d, f, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) forget(d *counted, until uint64) {
	for _, f := range d.feeds {
		d.windows.forget(f.fields, f.next, int64(until)-2*s.reach)
	}
}

// emit closes windows.
func (s *Source) emit(d *counted, until uint64, b *gpu.Batch) {
	windows, pipes := d.windows.close(d.Ref, int64(until))
	for i := range windows {
		why := gpu.Contradiction(windows[i], pipesOf(pipes, windows[i]))
		if why != "" {
			windows[i].Flags |= recording.GPUUntrusted
			b.Rejected++
		}
		if windows[i].SM == windows[i].SM {
			d.counted, d.doubt = int64(until), why
		}
	}
	b.Windows, b.Pipes = append(b.Windows, windows...), append(b.Pipes, pipes...)
}

func pipesOf(pipes []recording.GPUPipes, w recording.GPU) *recording.GPUPipes {
	for i := range pipes {
		if pipes[i].End == w.End {
			return &pipes[i]
		}
	}
	return nil
}

// absence says why a GPU has no SM activity to rely on, "" if it has or it is only a matter of time.
func (s *Source) absence(d *counted, now int64) string {
	const stale = 3e9
	if d.counted == now {
		return d.doubt
	}
	if d.why != "" {
		if s.lost(d) {
			return "the GPU is lost: the driver cannot reach it any more (the kernel log has an Xid)"
		}
		return d.why
	}
	if late := now - max(d.windows.newest, s.opened); late > max(stale, 5*d.windows.asked) {
		return fmt.Sprintf("no fresh sample of SM activity for %d s: the host engine has stopped counting this GPU", late/1e9)
	}
	return ""
}

// lost asks the engine whether the driver has lost the GPU: then it only gives blanks.
func (s *Source) lost(d *counted) bool {
	var status bind.EntityStatus
	err, recovered := s.guard.do(func() error {
		status = bind.GetGPUStatus(d.gpu)
		return nil
	})
	return err == nil && !recovered && status == bind.EntityStatusLost
}

// read takes the rows of one feed. They overlap with those read before.
func (s *Source) read(d *counted, f *feed, b *gpu.Batch) error {
	var rows []row
	var now int64
	asked := int64(clock.Mono())
	err, recovered := s.guard.do(func() (err error) {
		rows, now, err = s.engine.read(d.group, f.handle, f.next)
		return err
	})
	answered := int64(clock.Mono())
	if recovered {
		return errLost
	}
	if err != nil {
		return err
	}
	s.digest(d, &f.mark, answer{rows, now, asked, answered}, b)
	return nil
}

// answer is what one read brought: the engine's time at it in µs, our times before and after in ns.
type answer struct {
	rows            []row
	now             int64
	asked, answered int64
}

func (s *Source) digest(d *counted, m *mark, a answer, b *gpu.Batch) {
	s.clock.tick(a.now*1000, a.asked, a.answered)
	s.clock.settle(a.answered - s.reach)
	m.advance(a.rows, a.now, d.windows.overlap(), s.reach)
	s.take(d, a.rows, b)
}

// engineTime is what the engine's clock shows, µs: before it has told, it is taken for ours.
func (s *Source) engineTime(mono int64) int64 {
	if t := s.clock.engine(mono); t != 0 {
		return t / 1000
	}
	return int64(clock.Real() / 1000)
}

// take hands rows to the assembler. Rows without a value say why; of SM activity that is the device's reason.
func (s *Source) take(d *counted, rows []row, b *gpu.Batch) {
	for _, r := range rows {
		v := r.value()
		if r.us <= 0 {
			if r.field == fieldSM {
				d.why = "no sample of SM activity: " + v.why
			}
			continue
		}
		if d.windows.has(r.field, r.us) {
			continue
		}
		t, ok := s.clock.mono(r.us*1000, d.windows.emitted)
		if ok && t < s.opened {
			continue // another client's, or left from one
		}
		if !ok || v.impossible || !d.windows.add(r.field, sample{r.us, t, v.number}) {
			b.Rejected++
		}
		if ok && r.field == fieldSM {
			d.why = v.why
			if v.why != "" {
				d.why = "SM activity: " + v.why
			}
		}
	}
}
