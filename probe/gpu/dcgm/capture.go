//go:build linux && cgo

package dcgm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	bind "github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/gpu"
)

// captured is how long the counters are watched for a capture.
const captured = 1500 * time.Millisecond

// Capture asks the engine what the source of this package asks, watches the counters for a moment, and returns what was answered.
func Capture(ctx context.Context, o Options) (c gpu.Capture, err error) {
	o.Interval = cmp.Or(o.Interval, Shortest)
	s := &Source{options: o, engine: engine{o: o}, known: map[gpu.Identity]*counted{},
		opened: int64(clock.Mono()), reach: reach(o.Interval)}
	if err := s.engine.connect(); err != nil {
		return c, err
	}
	defer s.engine.disconnect()
	c.Say("engine version=%s", version())
	all, unknown, err := s.engine.gpus()
	if unknown != nil {
		c.Say("# %v", unknown)
	}
	if err != nil {
		return c, err
	}
	for _, f := range all {
		s.engine.captureGroups(&c, f)
	}
	if err := s.watch(all); err != nil {
		return c, err
	}
	for _, d := range s.devices {
		if code := codeOf(d.Missing); code != 0 {
			c.Say("no-profiling code=%d", code)
		}
	}
	select {
	case <-ctx.Done():
		return c, ctx.Err()
	case <-time.After(captured):
	}
	for _, d := range s.devices {
		s.captureValues(&c, d)
	}
	return c, nil
}

var versionText = regexp.MustCompile(`version:([0-9.]+)`)

// version is the engine's, "unknown" where it does not tell.
func version() string {
	info, err := bind.GetHostengineVersionInfo()
	if found := versionText.FindStringSubmatch(info.RawBuildInfoString); err == nil && found != nil {
		return found[1]
	}
	return "unknown"
}

// captureGroups keeps what can be counted. The stand-in knows one model per machine: the groups of the first.
func (e *engine) captureGroups(c *gpu.Capture, f found) {
	g := c.GPU(cmp.Or(f.parent, f.uuid))
	g.Set("name", f.name)
	if f.parent != "" {
		g.Set("mig", 1)
	}
	groups, err := e.metricGroups(f.gpu)
	if code := codeOf(fmt.Sprint(err)); err != nil && code != 0 {
		c.Say("no-profiling code=%d", code)
	}
	for _, group := range groups {
		fields := make([]string, len(group.fields))
		for i, field := range group.fields {
			fields[i] = fmt.Sprint(field)
		}
		c.Say("group major=%d minor=%d fields=%s", group.major, group.minor, strings.Join(fields, ","))
	}
}

// keys are the fields whose value is one of a GPU's directive, with what it is multiplied by there.
var keys = map[uint16]struct {
	key    string
	factor float64
}{
	fieldSM: {"sm", 1}, fieldEngine: {"engine", 1}, fieldOccupancy: {"occupancy", 1}, fieldTensor: {"tensor", 1}, fieldDRAM: {"dram", 1},
	fieldFP32: {"fp32", 1}, fieldPCIeOut: {"pcie-out", 1}, fieldPCIeIn: {"pcie-in", 1}, fieldUtil: {"util", 0.01},
}

// captureValues keeps the newest row of every watched field.
func (s *Source) captureValues(c *gpu.Capture, d *counted) {
	g := c.GPU(cmp.Or(d.parent, d.uuid))
	newest := map[uint16]row{}
	for _, f := range d.feeds {
		if !f.watched {
			continue
		}
		rows, _, err := s.engine.read(d.group, f.handle, 0)
		if err != nil {
			c.Say("# %v", err)
		}
		for _, r := range rows {
			if r.us >= newest[r.field].us {
				newest[r.field] = r
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(newest)) {
		r := newest[field]
		switch v := r.value(); {
		case r.status != 0:
			g.Say(fmt.Sprintf("status gpu=%%d field=%d code=%d", field, r.status))
		case v.why != "":
			g.Say(fmt.Sprintf("value gpu=%%d field=%d v=%s", field, blankName(r)))
		default:
			if k, ok := keys[field]; ok {
				g.Set(k.key, math.Round(v.number*k.factor*1e4)/1e4)
			}
		}
	}
}

// blankName is the blank as the stand-in calls it.
func blankName(r row) string {
	n := int64(r.bits) - blank64
	switch {
	case r.double:
		n = int64(math.Float64frombits(r.bits) - blankDouble)
	case int64(r.bits) < blank64:
		return "int32-blank"
	}
	switch n {
	case blankNotFound:
		return "not-found"
	case blankNotSupported:
		return "not-supported"
	case blankNoPermission:
		return "not-permissioned"
	}
	return "blank"
}
