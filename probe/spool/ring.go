package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/datawait/datawait/probe/recording"
)

// ring is one process's ring on its way into the sink.
type ring struct {
	pid    int
	ticks  uint64
	path   string
	reader *recording.Ring // nil until it could be opened

	id       recording.StreamID // 0 until declared in the sink
	header   recording.RingHeader
	polled   uint64 // ns, when it was last read; 0 = never
	due      uint64 // ns, not to be read before
	checked  uint64 // ns, when the process was last looked for
	outlives bool   // it still ran when it was read for the last time
	replaced bool   // its process became another program (execve), which has a ring of its own
	outside  int    // what its process is called here, if it lives in another pid namespace and was found; 0 = it was not
	moved    uint64 // head when the ring last moved, and when that was; of such a process
	movedAt  uint64 // ns
	silent   bool   // it counts as ended for that alone: its process may be there
	failures int    // polls in a row in which it could not be read
	paired   uint64 // monotonic time of the newest clock note in the sink
	told     recording.LostNote
	toldAt   uint64 // ns
	view     view

	hand func([]recording.Record) error // gives records to the sink; made once, for a ring is read for days
}

// main reports whether it is known to be the ring of a training process.
func (r *ring) main() bool {
	return r.reader != nil && r.reader.Declaration().Producer == recording.ProducerMain
}

// rank orders the polls: training processes first.
func (r *ring) rank() int {
	if r.main() {
		return 0
	}
	return 1
}

// mayRecover reports whether an unreadable ring should be tried again: it may still be in the making, and a reader that is out of files is no
// fault of the ring.
func (r *ring) mayRecover(err error) bool {
	r.failures++
	return errors.Is(err, recording.ErrNotReady) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM) ||
		r.failures < ringTries && !errors.Is(err, recording.ErrNewer) && !errors.Is(err, fs.ErrNotExist)
}

// pollRing reads what is new: the live view even when the sink is broken, then notes and records.
func (d *Drainer) pollRing(r *ring, now uint64, ended bool) error {
	h, err := r.reader.Header()
	if err != nil {
		return err
	}
	taken := h.Head - min(h.Head, r.header.Head)
	if most := d.options.MaxCapacity; most != 0 && h.Capacity > most {
		return fmt.Errorf("ring %s holds %d records, more than the hook's: %w", r.path, h.Capacity, recording.ErrNotRing)
	}
	d.taken += int(min(taken, uint64(h.Capacity)))
	r.header = h
	filling := r.fills(taken, now)
	d.filling = d.filling || filling
	r.polled, r.due = now, now
	if !r.main() && !filling {
		r.due += workerEvery
	}
	notes, err := r.reader.Notes(h)
	if err != nil {
		return err
	}
	var totals [recording.RingTotalSlots]recording.Totals
	if r.main() || ended {
		if totals, err = r.reader.Totals(); err != nil {
			return err
		}
		r.view.update(now, h, totals)
		r.view.notes(notes)
	}
	if err := d.drain(r, notes, ended); err != nil {
		return err
	}
	r.failures = 0
	d.tellLost(r, now, ended)
	if ended {
		d.end(r, now, totals)
	}
	return nil
}

// fills reports whether the ring would be overrun in less than fullSoon at the pace of the records taken since the last poll.
// Before the first one there is no pace, but a ring that is a quarter full.
func (r *ring) fills(taken, now uint64) bool {
	if r.polled == 0 {
		return taken > uint64(r.header.Capacity)/4
	}
	return float64(taken)*fullSoon > float64(r.header.Capacity)*float64(now-r.polled)
}

// open opens the ring the first time it can be.
func (d *Drainer) open(r *ring) error {
	if r.reader != nil {
		return nil
	}
	reader, err := recording.OpenRing(r.path)
	if err != nil {
		return err
	}
	if reader.Declaration().Producer == recording.ProducerAgent { // which speaks of all jobs and of the machine, and never through a ring
		reader.Close()
		return fmt.Errorf("ring %s says that it is an agent's: %w", r.path, recording.ErrNotRing)
	}
	r.reader = reader
	d.order = nil
	d.replace(r)
	if reader.Declaration().Producer == recording.ProducerMain {
		d.counts.Mains++
	} else {
		d.counts.Workers++
	}
	return nil
}

// replace finds the rings of the same process: the one that was opened last is its own, the others are what it was before.
func (d *Drainer) replace(r *ring) {
	own := r.reader.Declaration()
	if own.Opened == 0 {
		return
	}
	for _, o := range d.rings {
		if o == r || o.pid != r.pid || o.ticks != r.ticks || o.reader == nil {
			continue
		}
		other := o.reader.Declaration()
		if other.Namespace == own.Namespace && other.Opened != 0 {
			o.replaced = o.replaced || other.Opened < own.Opened
			r.replaced = r.replaced || other.Opened > own.Opened
		}
	}
}

// drain hands notes and records to the sink. Only an error of the ring is returned; the sink's is kept.
func (d *Drainer) drain(r *ring, notes []json.RawMessage, ended bool) error {
	if d.declare(r); d.sinkErr != nil {
		return nil
	}
	for _, note := range notes {
		d.note(r, note)
	}
	var err error
	if ended {
		err = r.reader.Finish(r.header, r.hand)
	} else {
		err = r.reader.Drain(r.header, r.hand)
	}
	if d.sinkErr != nil {
		return nil
	}
	return err
}

func (d *Drainer) declare(r *ring) {
	if r.id != 0 || d.sinkErr != nil {
		return
	}
	id, err := d.sink.Declare(r.reader.Declaration())
	d.keep(err)
	r.id = id
	r.hand = func(records []recording.Record) error {
		d.keep(d.sink.Records(id, records))
		return d.sinkErr
	}
}

// note writes one note and remembers the newest clock pair.
func (d *Drainer) note(r *ring, note json.RawMessage) {
	if d.sinkErr != nil {
		return
	}
	var pair struct {
		Note      string
		Monotonic uint64
	}
	if json.Unmarshal(note, &pair) == nil && pair.Note == "clock" {
		r.paired = max(r.paired, pair.Monotonic)
	}
	d.keep(d.sink.Note(r.id, note))
}

// keep remembers the first error of the sink.
func (d *Drainer) keep(err error) {
	if d.sinkErr == nil {
		d.sinkErr = err
	}
}

// tellEvery is how often, in ns, a lost note may be written while a ring lives. The notes of a ring add up.
const tellEvery = 60e9

// tellLost notes what was lost since the last lost note: at the end always, so that a recording can tell "nothing was lost"
// from "nobody counted", before that only when there is something to tell.
func (d *Drainer) tellLost(r *ring, now uint64, ended bool) {
	total := recording.LostNote{Records: r.reader.Lost(), Torn: r.reader.Torn()}
	fresh := recording.LostNote{Records: total.Records - r.told.Records, Torn: total.Torn - r.told.Torn}
	if !ended && (fresh == recording.LostNote{} || r.toldAt != 0 && now-r.toldAt < tellEvery) {
		return
	}
	r.told, r.toldAt = total, now
	d.counts.Lost += fresh.Records
	d.counts.Torn += fresh.Torn
	d.note(r, recording.EncodeNote(fresh))
}

// end writes what is known only at the end of a ring: the sums of its loaders, its newest clock pair, and when that was.
func (d *Drainer) end(r *ring, now uint64, totals [recording.RingTotalSlots]recording.Totals) {
	for _, sums := range recording.SumsOf(totals) {
		d.note(r, recording.EncodeNote(sums))
	}
	if r.main() {
		d.note(r, recording.EncodeNote(recording.EndedNote{T: now, Running: r.outlives}))
	}
	if cost, ok := r.header.Cost(); ok {
		d.note(r, recording.EncodeNote(cost))
	}
	if r.header.Monotonic > r.paired {
		d.note(r, recording.EncodeNote(recording.ClockNote{Monotonic: r.header.Monotonic, Realtime: r.header.Realtime}))
	}
}
