package emulated

import (
	"errors"
	"math"

	"github.com/datawait/datawait/probe/recording"
)

// maxQueued bounds how many entries wait for windows that are not closed yet: 2 MiB per device. What does not fit stays in
// the file until there is room.
const maxQueued = 1 << 16

// device turns one log into windows.
type device struct {
	index    uint32
	header   recording.BusyHeader
	log      *busyLog
	lockKey  string // of the log, in the kernel's table
	lockSeen bool   // it was in the table once
	nameless bool   // the log lost its name
	interval uint64 // ns
	first    uint64 // number of the first window: it begins at first·interval
	window   uint64 // number of the next window to close

	lanes    [2]lane // kernels, copies
	doubts   []span  // where something is wrong: windows that touch one are untrusted
	number   uint32  // of the last entry read
	rejected uint64
}

// lane is one engine: its entries that reach into windows not closed yet, in order and without overlap.
type lane struct {
	queued []recording.BusyEntry
	end    uint64 // of the last entry
}

type span struct{ from, to uint64 }

func openDevice(path string, index uint32, o Options) (*device, error) {
	log, header, err := openLog(path)
	if err != nil {
		return nil, err
	}
	interval := uint64(o.Interval)
	first := (firstMoment(o.Since, min(header.Created, math.MaxInt64)) + interval - 1) / interval
	return &device{index: index, header: header, log: log, lockKey: lockKey(log.f), interval: interval, first: first, window: first}, nil
}

// firstMoment is where a device's windows begin. An observer that was there before the device knows that nobody held it
// until it was made: those windows are told too, as a real GPU is allocated before a process opens it.
func firstMoment(since, created uint64) uint64 {
	if since == 0 {
		return created
	}
	return since
}

func (d *device) ref() uint16 { return uint16(d.index) }

// begin is where the next window to close begins, in ns.
func (d *device) begin() uint64 { return d.window * d.interval }

// read queues what was appended to the log up to now. It reports whether entries had to stay in the file.
func (d *device) read(now uint64) (backlog bool, err error) {
	for {
		room := maxQueued - len(d.lanes[0].queued) - len(d.lanes[1].queued)
		if room <= 0 {
			return true, nil
		}
		b, err := d.log.next(room)
		if err != nil || len(b) == 0 {
			return false, err
		}
		for ; len(b) > 0; b = b[recording.BusyEntryBytes:] {
			d.queue(recording.ParseBusyEntry(b), now)
		}
	}
}

// queue checks one entry against what a log may hold, and puts it into its lane.
func (d *device) queue(e recording.BusyEntry, now uint64) {
	d.number++
	if e.Number != d.number { // entries are missing before it
		d.reject(span{d.begin(), now})
		d.number = e.Number
	}
	if !e.Sane() {
		d.rejectEntry(e, now)
		return
	}
	l := &d.lanes[e.Kind-1]
	if e.Start < l.end { // two at a time on one engine
		d.rejectEntry(e, now)
		l.end = max(l.end, e.End)
		return
	}
	l.end = e.End
	if e.Start < d.begin() && d.window > d.first {
		d.rejected++ // too late for windows that were closed without it
	}
	if e.End > d.begin() {
		l.queued = append(l.queued, e)
	}
}

// rejectEntry leaves an entry out and doubts the windows it speaks of, or all until now if it does not say which.
func (d *device) rejectEntry(e recording.BusyEntry, now uint64) {
	if e.Start <= e.End && e.End < math.MaxInt64 {
		d.reject(span{e.Start, e.End})
	} else {
		d.reject(span{d.begin(), now})
	}
}

// reject counts something that cannot be true. Doubts beyond counting are merged into one.
func (d *device) reject(s span) {
	d.rejected++
	if len(d.doubts) < 1024 {
		d.doubts = append(d.doubts, s)
		return
	}
	last := &d.doubts[len(d.doubts)-1]
	*last = span{min(last.from, s.from), max(last.to, s.to)}
}

var (
	errShrunk   = errors.New("the busy log became shorter")
	errNameless = errors.New("the busy log was given up: what the device does from then on is not known")
)

// checkName doubts everything from a log's loss of its name on: what is not written any more is not idleness.
func (d *device) checkName() error {
	if d.nameless {
		return errNameless
	}
	if !d.log.nameless() {
		return nil
	}
	d.nameless = true
	d.reject(span{d.begin(), math.MaxUint64})
	return errNameless
}

// checkLength starts anew behind the end of a log that was cut.
func (d *device) checkLength(now uint64) error {
	if !d.log.shrunk() {
		return nil
	}
	d.reject(span{d.begin(), now})
	d.lanes = [2]lane{}
	d.number = uint32((d.log.offset - recording.BusyHeaderBytes) / recording.BusyEntryBytes)
	return errShrunk
}
