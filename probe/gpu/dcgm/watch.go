//go:build linux && cgo

package dcgm

import (
	"errors"
	"fmt"
	"slices"

	bind "github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/unit"
)

// watch asks the engine for the counters of all these GPUs: one group per model and set of metrics, as an engine refuses or
// blanks a mixed one, and profiling apart from the rest, as one field that fails takes its whole group along.
func (s *Source) watch(all []found) error {
	s.devices = nil
	batches := map[string][]*counted{}
	for _, f := range all {
		d := s.describe(f)
		s.devices = append(s.devices, d)
		groups, err := s.engine.metricGroups(f.gpu)
		if errors.Is(err, errLost) {
			return err
		}
		if err != nil {
			d.Missing = err.Error()
			continue
		}
		if d.metrics = pick(groups); d.metrics == nil {
			d.Missing = "DCGM does not count SM activity on this GPU"
			continue
		}
		key := f.name + fmt.Sprint(f.kind, d.metrics)
		batches[key] = append(batches[key], d)
	}
	if err := s.watchProfiling(batches); err != nil {
		return err
	}
	if err := s.watchDevices(); err != nil {
		return err
	}
	s.listGone()
	return nil
}

// listGone keeps GPUs on the list that the engine had before and has no more.
func (s *Source) listGone() {
	for _, d := range s.known {
		if !slices.Contains(s.devices, d) {
			d.Missing = "the host engine does not list this GPU any more"
			s.devices = append(s.devices, d)
		}
	}
}

// describe makes the entry of a GPU. One seen before keeps its number and what is known of its samples: records of before and after a
// lost connection are of the same GPU, and no moment of it is told twice.
func (s *Source) describe(f found) *counted {
	identity := gpu.Identity{UUID: f.uuid, Parent: f.parent, GI: f.gi, CI: f.ci}
	d := &counted{found: f, windows: newAssembler(int64(s.options.Interval)),
		Device: gpu.Device{Identity: identity, Ref: uint16(len(s.known)), Name: f.name, Source: Name, Grade: gpu.GradeA, Interval: uint64(s.options.Interval),
			Index: unit.Some(int64(f.gpu))}}
	d.begin = s.engineTime(s.opened) - d.windows.overlap()/1000
	if before := s.known[identity]; before != nil {
		d.Ref, d.windows, d.feeds = before.Ref, before.windows, before.feeds
		for _, f := range d.feeds {
			f.watched = false
		}
	}
	s.known[identity] = d
	return d
}

// watchProfiling starts the counters. GPUs of a model that refuses are left with the reason; the others go on.
func (s *Source) watchProfiling(batches map[string][]*counted) error {
	for _, devices := range batches {
		err := s.watchTogether(devices)
		if err != nil && len(devices) > 1 && !errors.Is(err, errLost) { // one GPU that cannot be counted takes its group along
			err = s.watchApart(devices)
		} else if err != nil {
			devices[0].Missing = err.Error()
		}
		if errors.Is(err, errLost) {
			return err
		}
	}
	return nil
}

func (s *Source) watchApart(devices []*counted) error {
	for _, d := range devices {
		err := s.watchTogether([]*counted{d})
		if errors.Is(err, errLost) {
			return err
		}
		if err != nil {
			d.Missing = err.Error()
		}
	}
	return nil
}

func (s *Source) watchTogether(devices []*counted) error {
	metrics := devices[0].metrics
	fields, err := s.engine.fieldGroup(metrics)
	if err != nil {
		return explain(err)
	}
	if err := s.engine.start(entities(devices), fields, s.options.Interval); err != nil {
		return explain(err)
	}
	for _, d := range devices {
		if d.group, err = s.engine.group([]entity{d.entity}); err != nil { // it is read alone
			return explain(err)
		}
	}
	return explain(s.feed(devices, metrics))
}

// feed lets fields that are watched be read.
func (s *Source) feed(devices []*counted, fields []uint16) error {
	for piece := range slices.Chunk(fields, fieldsPerRead(s.options.Interval)) {
		handle, err := s.engine.fieldGroup(piece)
		if err != nil {
			return err
		}
		for _, d := range devices {
			f := d.feedOf(piece)
			f.handle, f.watched = handle, true
		}
	}
	return nil
}

// feedOf returns the feed of these fields: the one there was before a lost connection knows how far it was read.
func (d *counted) feedOf(fields []uint16) *feed {
	for _, f := range d.feeds {
		if slices.Equal(f.fields, fields) {
			return f
		}
	}
	f := &feed{mark: mark{d.begin}, fields: fields}
	d.feeds = append(d.feeds, f)
	return f
}

func entities(devices []*counted) (all []entity) {
	for _, d := range devices {
		all = append(all, d.entity)
	}
	return all
}

// watchDevices starts what is not profiling, of whole GPUs only: a slice has no clock or power of its own. Without it the counters
// are still good.
func (s *Source) watchDevices() error {
	whole := slices.DeleteFunc(slices.Clone(s.devices), func(d *counted) bool { return d.Missing != "" || d.kind != uint(bind.FE_GPU) })
	if len(whole) == 0 {
		return nil
	}
	fields, err := s.engine.fieldGroup(device)
	if err == nil {
		err = s.engine.start(entities(whole), fields, s.options.Interval)
	}
	if err == nil {
		err = s.feed(whole, device)
	}
	if err = explain(err); errors.Is(err, errLost) {
		return err
	}
	return nil
}
