//go:build linux && cgo

package dcgm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	bind "github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/datawait/datawait/probe/gpu"
	"github.com/datawait/datawait/probe/unit"
)

// watch asks the engine for the counters of all these GPUs: one group per model and set of metrics, as an engine refuses or
// blanks a mixed one, and profiling apart from the rest, as one field that fails takes its whole group along.
func (s *Source) watch(all []found) error {
	s.devices = make([]*counted, len(all))
	batches := map[string][]*counted{}
	for i, f := range all {
		d := s.describe(f)
		s.devices[i] = d
		groups, err := s.engine.metricGroups(f.gpu)
		if errors.Is(err, errLost) {
			return err
		}
		if err != nil {
			d.Missing = err.Error()
			continue
		}
		if d.fields = pick(groups); d.fields == nil {
			d.Missing = "DCGM does not count SM activity on this GPU"
			continue
		}
		key := f.name + fmt.Sprint(f.kind, d.fields)
		batches[key] = append(batches[key], d)
	}
	if err := s.watchProfiling(batches); err != nil {
		return err
	}
	return s.watchDevices()
}

// describe makes the entry of a GPU. One seen before keeps its number, and the end of what was told of it: records of before and after
// a lost connection are of the same GPU.
func (s *Source) describe(f found) *counted {
	identity := gpu.Identity{UUID: f.uuid, Parent: f.parent, GI: f.gi, CI: f.ci}
	d := &counted{found: f, windows: newAssembler(int64(s.options.Interval)),
		Device: gpu.Device{Identity: identity, Ref: uint16(len(s.known)), Name: f.name, Source: Name, Grade: gpu.GradeA, Interval: uint64(s.options.Interval),
			Index: unit.Some(int64(f.gpu))}}
	if before := s.known[identity]; before != nil {
		d.Ref, d.windows.emitted = before.Ref, before.windows.emitted
	}
	s.known[identity] = d
	return d
}

// watchProfiling starts the counters. GPUs of a model that refuses are left with the reason; the others go on.
func (s *Source) watchProfiling(batches map[string][]*counted) error {
	for _, devices := range batches {
		err := s.watchTogether(devices)
		if errors.Is(err, errLost) {
			return err
		}
		for _, d := range devices {
			if err != nil {
				d.Missing = err.Error()
			}
		}
	}
	return nil
}

func (s *Source) watchTogether(devices []*counted) error {
	fields, err := s.engine.fieldGroup(devices[0].fields)
	if err != nil {
		return explain(err)
	}
	group, err := s.engine.group(entities(devices))
	if err != nil {
		return explain(err)
	}
	if err := s.engine.start(group, fields, s.options.Interval); err != nil {
		return explain(err)
	}
	for _, d := range devices {
		d.prof = fields
		if d.group, err = s.engine.group([]entity{d.entity}); err != nil { // it is read alone
			return explain(err)
		}
	}
	return nil
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
	if err != nil {
		return onlyLost(explain(err))
	}
	group, err := s.engine.group(entities(whole))
	if err != nil {
		return onlyLost(explain(err))
	}
	if err := s.engine.start(group, fields, max(s.options.Interval, Shortest)); err != nil {
		return onlyLost(explain(err))
	}
	s.device = fields
	for _, d := range whole {
		d.plain = true
	}
	return nil
}

func onlyLost(err error) error {
	if errors.Is(err, errLost) || strings.Contains(err.Error(), "connection") {
		return err
	}
	return nil
}
