// Package scrape reads GPU counters from the page of an exporter that runs already, NVIDIA's dcgm-exporter: it needs no root, no library
// and no second client of the counters.
//
// It decides what on a page is a sample. A page is a snapshot without time stamps that repeats itself for half a minute; a value that is
// repeated is not a new one, and time that no sample covers is not covered. The windows are coarse, too coarse for steps, and their ends
// are known to a look: that is a lower grade than a watch's. The same GPU is repeated for every pod that shares it, and is one GPU.
//
// It refuses to believe an exporter's health: an empty page is a failure, and so is one that does not change. A stock exporter has no SM
// activity at all; then the lines are named that add it to its list. Whatever answers is a stranger: pages are bounded in size, time and
// number, redirects are not followed, and only this machine's own exporter is asked without being named.
//
// Read [Source] first; when a value is new is in track.go.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

// Name is the source's, as in reports. It is the exporter's counters that are read, at second hand.
const Name = "scrape"

// Options of the source.
type Options struct {
	URL    string // of the page, from Address; "" = this machine's own exporter
	Partly bool   // GPUs without SM activity are read all the same, for what else there is
}

// Source scrapes one exporter. It implements [gpu.Source].
type Source struct {
	options Options
	page    *endpoint
	tracks  map[entity]*track
	order   []*track // by ref

	due      uint64 // ns, of the next look
	last     uint64 // ns, of the last look that succeeded
	wait     uint64 // ns, after a failure
	problem  error  // of the last look
	failures []gpu.Failure
	any      struct{ sm, profiling bool } // what was ever seen of any GPU
}

// unasked is for how long an exporter is waited for that nobody has named: other sources wait meanwhile.
const unasked = 3 * time.Second

// Open asks the exporter for its page.
func Open(ctx context.Context, o Options) (*Source, error) {
	urls := []string{o.URL}
	if o.URL == "" {
		urls = usual
		limited, cancel := context.WithTimeout(ctx, unasked)
		defer cancel()
		ctx = limited
	}
	var problem error
	for _, url := range urls {
		s := &Source{options: o, page: newEndpoint(url), tracks: map[entity]*track{}}
		p, err := s.page.get(ctx)
		if err == nil {
			s.meet(p)
			return s, nil
		}
		if problem == nil || errors.Is(problem, errNobody) && !errors.Is(err, errNobody) {
			problem = err // of two addresses of one machine, the one that says more
		}
		s.page.close()
	}
	return nil, problem
}

// Name returns "scrape".
func (s *Source) Name() string { return Name }

// Devices lists the GPUs that were on a page.
func (s *Source) Devices(context.Context) ([]gpu.Device, error) {
	devices := make([]gpu.Device, len(s.order))
	for i, t := range s.order {
		devices[i] = t.device
	}
	return devices, nil
}

// Sample looks at the page if it is time, and returns the windows that ended.
func (s *Source) Sample(ctx context.Context, until uint64) (b gpu.Batch, _ error) {
	if until >= s.due {
		s.look(ctx, until, &b)
	}
	b.Failures = slices.Clone(s.failures) // they stand until the next look
	return b, s.problem
}

// Looks at a page: an exporter needs some 10 ms of a core for each.
const (
	often     = uint64(time.Second)
	seldom    = uint64(5 * time.Second)
	learning  = uint64(90 * time.Second) // without a change
	firstWait = uint64(10 * time.Second) // after a failure; doubled
	longWait  = uint64(time.Minute)
)

func (s *Source) look(ctx context.Context, now uint64, b *gpu.Batch) {
	p, err := s.page.get(ctx)
	if s.problem = err; err != nil {
		s.wait = min(max(2*s.wait, firstWait), longWait)
		s.due, s.failures = now+s.wait, nil
		return
	}
	s.wait, s.failures = 0, nil
	b.Changed = s.meet(p)
	b.Rejected = p.rejected
	for _, at := range p.order {
		s.follow(s.tracks[at], p.gpus[at], now, b)
	}
	for at, t := range s.tracks {
		if p.gpus[at] == nil {
			s.fail(t, "the exporter's page does not mention this GPU any more")
		}
	}
	slices.SortFunc(s.failures, func(a, b gpu.Failure) int { return int(a.Ref) - int(b.Ref) })
	s.due, s.last = now+s.pause(now), now
}

func (s *Source) fail(t *track, why string) {
	s.failures = append(s.failures, gpu.Failure{Ref: t.device.Ref, Why: why})
}

func (s *Source) follow(t *track, r *reading, now uint64, b *gpu.Batch) {
	xid := t.values[fieldXid]
	known := t.changed != 0
	begin, end, ended := t.look(r.values, now)
	if ended {
		w, p, trusted := t.window(begin, end)
		b.Windows, b.Pipes = append(b.Windows, w), append(b.Pipes, p)
		if !trusted {
			b.Rejected++
		}
	}
	if x := r.values[fieldXid]; known && xid == xid && x == x && x != xid && x != 0 {
		b.Events = append(b.Events, recording.GPUEvent{Ref: t.device.Ref, T: now, Code: recording.GPUEventXid, Value: uint64(x)})
	}
	if now-t.news() > t.old() {
		s.fail(t, "the exporter repeats its old values: nothing on its page has changed for a long time")
	}
	if h, told := t.hold(r); told {
		h.T, h.Since = now, now
		if s.last != 0 {
			h.Since = s.last
		}
		b.Holders = append(b.Holders, gpu.Holders{Ref: t.device.Ref, AllocationNote: h})
	}
}

// hold says to whom the GPU is assigned, where that is another than before. A GPU without labels is not called free: an exporter labels
// those that it finds, of resources that it knows.
func (t *track) hold(r *reading) (recording.AllocationNote, bool) {
	if slices.EqualFunc(t.holders, r.holders, same) && t.shared == r.shared {
		return recording.AllocationNote{}, false
	}
	t.holders, t.shared = r.holders, r.shared
	note := recording.AllocationNote{By: recording.AllocatedByExporter, Holders: r.holders}
	if len(r.holders) > 0 && r.shared {
		note.Shared = recording.SharedReplicas
	}
	return note, true
}

// pause is until the next look: soon while something settles or an exporter's interval is not known, else a tenth of it.
func (s *Source) pause(now uint64) uint64 {
	pause := seldom
	for _, t := range s.order {
		switch usual := t.usual(); {
		case t.pending, usual == 0 && now-t.news() < learning:
			return often
		case usual != 0:
			pause = min(pause, max(usual/10, often))
		}
	}
	return pause
}

// meet makes tracks for GPUs that were not seen before, and finds out what there is of each. It reports whether anything is new.
func (s *Source) meet(p *page) (news bool) {
	for _, at := range p.order {
		r := p.gpus[at]
		s.any.sm = s.any.sm || r.values[fieldSM] == r.values[fieldSM]
		s.any.profiling = s.any.profiling || r.values.counted()
	}
	for _, at := range p.order {
		r, t := p.gpus[at], s.tracks[at]
		if t == nil {
			t = &track{values: unknown(), device: gpu.Device{Identity: at.identity(), Ref: uint16(len(s.order)), Name: r.name, Source: Name, Grade: gpu.GradeB}}
			if r.index >= 0 {
				t.device.Index = unit.Some(int64(r.index))
			}
			s.tracks[at] = t
			s.order = append(s.order, t)
			news = true
		}
		if t.counts = t.counts || r.values[fieldSM] == r.values[fieldSM]; t.counts { // once seen, it is there; a gap is a gap
			news = news || t.device.Missing != ""
			t.device.Missing, t.device.Partly = "", false
			continue
		}
		missing := s.missing(r)
		news = news || missing != t.device.Missing
		t.device.Missing, t.device.Partly = missing, s.options.Partly
	}
	return news
}

func (at entity) identity() gpu.Identity {
	if at.gi < 0 {
		return gpu.Whole(at.uuid)
	}
	return gpu.Identity{Parent: at.uuid, GI: at.gi, CI: -1}
}

// Lines are what a counter list of dcgm-exporter lacks as it is shipped (etc/default-counters.csv has them as comments).
const Lines = "DCGM_FI_PROF_SM_ACTIVE, gauge, Ratio of cycles an SM has a warp" + " | " + "DCGM_FI_PROF_SM_OCCUPANCY, gauge, Ratio of warps resident on an SM"

// missing says why there is no SM activity of a GPU.
func (s *Source) missing(r *reading) string {
	switch {
	case r.clash[fieldSM]:
		return "the exporter's page gives this GPU several values of SM activity at once"
	case s.any.sm:
		return "the exporter has SM activity of other GPUs, and none of this one"
	case s.any.profiling:
		return fmt.Sprintf("the exporter's list of counters (--collectors) lacks SM activity; these lines add it: %s", Lines)
	}
	return fmt.Sprintf("the exporter has no profiling counter at all: DCGM's profiling module is missing, or its list of counters (--collectors) lacks lines as these: %s", Lines)
}

// Close closes the connection.
func (s *Source) Close() error {
	s.page.close()
	return nil
}
