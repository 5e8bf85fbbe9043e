// Package shelf keeps the recordings of jobs that are watched for weeks: of each job the last hour or so, in slices, so that a report
// of what just happened can be made without touching the job.
//
//	STATE/recordings/train.py-1f0c2a/            a job
//	    job.json                                 what it is called
//	    20261130T201500Z/node-host/…             a slice: a recording of its own
//	    20261130T203000Z/node-host/…
//
// It decides what of the machine belongs to a job (its processes, and the GPUs it has), when a slice is cut, and which are thrown away.
// A disk that is full or gone costs the recordings, never the counters or the job: it is told, and tried again with the next slice.
//
// Read [Shelf] and [Find] first.
package shelf

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/recording"
)

// Options of a Shelf.
type Options struct {
	Dir     string        // where jobs have their folders
	Slice   time.Duration // 0 = 15 min
	Keep    int64         // bytes of one job; 0 = 64 MiB
	All     int64         // bytes of all jobs; 0 = 2 GiB
	Jobs    int           // folders of jobs; 0 = 1000
	Age     time.Duration // a job that has written nothing for so long is thrown away; 0 = 7 days
	Host    string
	BootID  string
	Version string
}

func (o Options) complete() Options {
	o.Slice = cmp.Or(o.Slice, 15*time.Minute)
	o.Keep = cmp.Or(o.Keep, 64<<20)
	o.All = cmp.Or(o.All, 2<<30)
	o.Jobs = cmp.Or(o.Jobs, 1000)
	o.Age = cmp.Or(o.Age, 7*24*time.Hour)
	return o
}

// Books is what a shelf asks of the live book.
type Books interface {
	TenantOf(recording.StreamID) (live.Tenant, bool)
	Has(t live.Tenant, uuid string) bool
}

// Shelf writes recordings. It is for one goroutine.
type Shelf struct {
	options Options
	books   Books
	streams map[recording.StreamID]*stream
	volumes map[live.Tenant]*volume
	tidied  time.Time
	quiet   map[string]quiet // jobs, by folder, as the last tidying found them
	err     error            // of what failed since the last Tick
}

// stream is what is remembered of a stream, to tell it at the begin of every slice.
type stream struct {
	declaration recording.Declaration
	notes       []json.RawMessage
	bytes       int
	distinct    int               // notes that were left when they were looked through last
	gpus        map[uint16]string // UUIDs, by what an agent's records call them
	ended       uint64            // ns, the newest that a training process told of
	only        *live.Tenant      // an agent's stream that speaks of one job
}

// mostNotes bounds what is remembered of one stream, in bytes: as much as a ring holds.
const mostNotes = 1 << 20

// New returns a shelf that has written nothing yet.
func New(o Options, b Books) *Shelf {
	return &Shelf{options: o.complete(), books: b, streams: map[recording.StreamID]*stream{}, volumes: map[live.Tenant]*volume{}}
}

// Over returns a sink that passes everything to another and shelves it. only, if not nil, is the one job the streams speak of.
func (s *Shelf) Over(next recording.Sink, only *live.Tenant) recording.Sink {
	return &over{s, next, only}
}

type over struct {
	shelf *Shelf
	recording.Sink
	only *live.Tenant
}

func (o *over) Declare(d recording.Declaration) (recording.StreamID, error) {
	id, err := o.Sink.Declare(d)
	if err == nil {
		o.shelf.streams[id] = &stream{declaration: d, gpus: map[uint16]string{}, only: o.only}
	}
	return id, err
}

func (o *over) Records(id recording.StreamID, records []recording.Record) error {
	err := o.Sink.Records(id, records)
	o.shelf.records(id, records)
	return err
}

func (o *over) Note(id recording.StreamID, raw json.RawMessage) error {
	err := o.Sink.Note(id, raw)
	o.shelf.note(id, raw)
	return err
}

func (o *over) End(id recording.StreamID) {
	if s := o.shelf.streams[id]; s != nil {
		t, _ := o.shelf.books.TenantOf(id)
		for _, v := range o.shelf.volumes {
			v.end(id)
		}
		delete(o.shelf.streams, id)
		if v := o.shelf.volumes[t]; v != nil && s.declaration.Producer == recording.ProducerMain && !o.shelf.running(t) {
			v.ended = max(s.ended, s.declaration.Opened)
		}
	}
	if sink, ok := o.Sink.(recording.Ender); ok {
		sink.End(id)
	}
}

// agent reports whether a stream speaks of the machine.
func (s *stream) agent() bool { return s.declaration.Producer == recording.ProducerAgent }

func (s *Shelf) records(id recording.StreamID, records []recording.Record) {
	st := s.streams[id]
	if st == nil {
		return
	}
	if st.agent() {
		for t, v := range s.volumes {
			if v.writer != nil && (st.only == nil || *st.only == t) {
				s.keep(v.records(id, st, s.ofJob(st, v, records)))
			}
		}
		return
	}
	t, ok := s.books.TenantOf(id)
	if !ok {
		return
	}
	for i := range records {
		if _, end := records[i].Times(); records[i].Kind() < recording.KindExposed && end < recording.Latest {
			st.ended = max(st.ended, end)
		}
	}
	v := s.volumes[t]
	if v == nil {
		if len(s.volumes) >= 2*mostVolumes {
			return // of the next Tick's, perhaps
		}
		v = &volume{tenant: t, ids: map[recording.StreamID]recording.StreamID{}, told: map[gpuKey]bool{}}
		s.volumes[t] = v
	}
	if st.declaration.Producer == recording.ProducerMain {
		v.ended = 0
	}
	if v.writer == nil && v.failed == nil {
		v.failed = s.open(v, st)
	}
	s.keep(v.records(id, st, records))
}

// ofJob returns the records that are no GPU's, and those of the GPUs that the job has, up to its end.
func (s *Shelf) ofJob(st *stream, v *volume, records []recording.Record) []recording.Record {
	foreign := func(r recording.Record) bool {
		if begin, _ := r.Times(); begin < v.from || v.ended != 0 && begin >= v.ended {
			return true
		}
		return ofGPU(r.Kind()) && !s.books.Has(v.tenant, st.gpus[r.Ref()])
	}
	if !slices.ContainsFunc(records, foreign) {
		return records
	}
	return slices.DeleteFunc(slices.Clone(records), foreign)
}

// ofGPU reports whether records of a kind are about one GPU.
func ofGPU(k recording.Kind) bool {
	switch k {
	case recording.KindGPU, recording.KindGPUPipes, recording.KindGPUState, recording.KindGPUProcess, recording.KindGPUEvent:
		return true
	}
	return false
}

func (s *Shelf) note(id recording.StreamID, raw json.RawMessage) {
	st := s.streams[id]
	if st == nil {
		return
	}
	var told recording.Notes
	told.Add(raw)
	for _, g := range told.GPUs {
		st.gpus[g.GPU] = g.UUID
	}
	for _, v := range s.volumes {
		if v.ids[id] != 0 && v.knows(id, raw) {
			s.keep(v.note(id, raw))
		}
	}
	if len(told.Lost)+len(told.Sums)+len(told.Ended)+len(told.HookCosts) > 0 {
		return // told once: of the whole life of a process
	}
	if st.agent() && (len(st.notes) >= max(fewNotes, 2*st.distinct) || st.bytes+len(raw) > mostNotes) {
		st.renew()
	}
	if st.bytes+len(raw) <= mostNotes {
		st.bytes += len(raw)
		st.notes = append(st.notes, slices.Clone(raw))
	}
}

// knows reports whether a note is about no GPU, or about one of which the slice knows.
func (v *volume) knows(id recording.StreamID, raw json.RawMessage) bool {
	for _, uuid := range gpusOf(raw) {
		if !v.told[gpuKey{id, uuid}] {
			return false
		}
	}
	return true
}

// fewNotes of an agent are kept as they came; of more, and again of twice as many as were left, what said the same of the same thing is
// replaced by what was said last.
const fewNotes = 256

func (st *stream) renew() {
	last := map[string]int{}
	for i, raw := range st.notes {
		var n struct {
			Note, Class, UUID, By string
			GPU, Ref              int
		}
		_ = json.Unmarshal(raw, &n) // it was a note when it came
		key, _ := json.Marshal(n)
		last[string(key)] = i
	}
	kept := make([]json.RawMessage, 0, len(last))
	st.bytes = 0
	for _, i := range slices.Sorted(maps.Values(last)) {
		kept = append(kept, st.notes[i])
		st.bytes += len(st.notes[i])
	}
	st.notes, st.distinct = kept, len(kept)
}

// keep remembers what failed.
func (s *Shelf) keep(err error) {
	if err != nil {
		s.err = err
	}
}

// Tick cuts slices that are long enough, closes those of jobs that have ended, brings what was gathered onto the disk, and throws away
// what is too old or too much. The error says why some recording is not written.
func (s *Shelf) Tick(now time.Time) error {
	var failed []error
	run := map[live.Tenant]bool{}
	for id, st := range s.streams {
		if t, ok := s.books.TenantOf(id); ok && st.declaration.Producer == recording.ProducerMain {
			run[t] = true
		}
	}
	for t, v := range s.volumes {
		running := run[t]
		if running {
			v.last = now
		}
		long := v.writer != nil && (now.Sub(v.began) >= s.options.Slice || v.bytes >= s.options.Keep/4)
		over := !running && now.Sub(v.last) > lagOfSources
		switch {
		case v.writer != nil && v.writer.Err() != nil:
			v.failed = fmt.Errorf("recording job %s: %w", v.tenant.Job, v.writer.Err())
			_ = v.leave() // which fails for the same reason
		case long || over:
			s.keep(v.leave())
		case v.writer != nil:
			s.keep(v.writer.Flush())
		}
		switch {
		case v.failed == nil:
			v.retry = time.Time{}
		case v.retry.IsZero():
			v.retry = now.Add(retryAfter)
		case !now.Before(v.retry):
			v.failed, v.retry = nil, time.Time{}
		}
		if v.failed != nil {
			failed = append(failed, v.failed)
		}
		if over {
			delete(s.volumes, t)
		}
	}
	if now.Sub(s.tidied) >= tidyEvery {
		s.tidied = now
		s.keep(s.tidy(now))
	}
	if more := len(failed) - fewReasons; more > 0 {
		failed = append(failed[:fewReasons], fmt.Errorf("and so are %d other jobs", more))
	}
	failed = append(failed, s.err)
	s.err = nil
	return errors.Join(failed...)
}

const (
	lagOfSources = 30 * time.Second // what GPUs did is told late
	retryAfter   = time.Minute
	tidyEvery    = time.Minute
	fewReasons   = 3 // a disk that is full is so for all jobs
)

// running reports whether some training process of the job tells.
func (s *Shelf) running(t live.Tenant) bool {
	for id, st := range s.streams {
		if st.declaration.Producer == recording.ProducerMain {
			if of, ok := s.books.TenantOf(id); ok && of == t {
				return true
			}
		}
	}
	return false
}

// Close closes every slice.
func (s *Shelf) Close() error {
	var errs []error
	for _, v := range s.volumes {
		errs = append(errs, v.leave())
	}
	return errors.Join(errs...)
}
