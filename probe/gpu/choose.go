package gpu

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Candidate is one rung of the ladder, not opened yet.
type Candidate struct {
	Name string
	Open func(context.Context) (Source, error)
	Last bool // asked only if some GPU still lacks SM activity: whoever answers there is a stranger, or slow
}

// Refusal is a rung that was not taken, and why.
type Refusal struct {
	Source string
	Why    string
}

// Choice is the outcome of going down the ladder. It is itself a Source: of every GPU, read where it is read best.
type Choice struct {
	Refusals []Refusal // rungs that do not work here
	taken    []rung
	beside   []rung
	devices  []Device // all, with refs of their own

	absent []Candidate // that could not be opened, and may be there later: a host engine that is started
	again  uint64      // ns, when they are tried next; 0 = not sampled yet
}

// betweenTries of candidates that were not there, in ns.
const betweenTries = 30e9

// rung is a source that is used, and how its refs translate.
type rung struct {
	Source
	refs map[uint16]uint16 // of the source → of the choice
}

// ErrNoSource means that no rung works on this machine.
var ErrNoSource = errors.New("no source of GPU counters works here")

// Choose opens the candidates, best first, and takes each GPU from the first that has its SM activity, else from the first that has
// anything of it. A GPU that none has is listed with what its last source said is missing. Those beside are opened too: they add what they know of
// GPUs that others count (states, processes, events) and are asked for no window. The caller closes the choice.
func Choose(ctx context.Context, candidates []Candidate, beside ...Candidate) (*Choice, error) {
	c := &Choice{}
	for _, candidate := range candidates {
		c.try(ctx, candidate)
	}
	for _, candidate := range beside {
		c.tryBeside(ctx, candidate)
	}
	choose(c.taken)
	if len(c.taken)+len(c.beside) == 0 {
		return c, fmt.Errorf("choosing a GPU source: %w%s", ErrNoSource, c.reasons(": "))
	}
	return c, nil
}

// choose tells sources that disturb others which devices are theirs.
func choose(taken []rung) {
	for _, r := range taken {
		if s, ok := r.Source.(Selective); ok {
			s.Use(slices.Sorted(maps.Keys(r.refs)))
		}
	}
}

// lookAgain tries what was not there before, as long as a GPU lacks its SM activity; it reports whether something came of it.
func (c *Choice) lookAgain(ctx context.Context, now uint64) bool {
	if now < c.again || len(c.absent) == 0 || c.complete() {
		return false
	}
	first := c.again == 0
	c.again = now + betweenTries
	if first { // they were tried a moment ago
		return false
	}
	absent, taken := c.absent, len(c.taken)
	c.absent = nil
	for _, candidate := range absent {
		c.Refusals = slices.DeleteFunc(c.Refusals, func(r Refusal) bool { return r.Source == candidate.Name })
		c.try(ctx, candidate)
	}
	choose(c.taken[taken:])
	return len(c.taken) > taken
}

// open opens a candidate and asks for its devices; what fails is a refusal.
func (c *Choice) open(ctx context.Context, candidate Candidate) (Source, []Device, bool) {
	source, err := candidate.Open(ctx)
	if err != nil {
		c.refuse(candidate, err.Error())
		return nil, nil, false
	}
	devices, err := source.Devices(ctx)
	if err != nil {
		c.refuse(candidate, err.Error())
	}
	if err != nil && len(devices) == 0 {
		source.Close()
		return nil, nil, false
	}
	return source, devices, true
}

func (c *Choice) refuse(candidate Candidate, why string) {
	c.Refusals = append(c.Refusals, Refusal{candidate.Name, strings.ReplaceAll(why, "\n", "; ")})
}

func (c *Choice) tryBeside(ctx context.Context, candidate Candidate) {
	if source, devices, ok := c.open(ctx, candidate); ok {
		r := rung{source, map[uint16]uint16{}}
		c.learn(r, devices)
		c.beside = append(c.beside, r)
	}
}

// learn finds the devices of a source beside among those chosen; one that nobody counts is listed without counters.
func (c *Choice) learn(r rung, devices []Device) {
	for _, d := range devices {
		at := c.find(d.Identity)
		if at < 0 {
			at = len(c.devices)
			listed := d
			listed.Ref = uint16(at)
			listed.Why = c.reasons("")
			c.devices = append(c.devices, listed)
		}
		if c.devices[at].Name == "" {
			c.devices[at].Name = d.Name
		}
		if !c.devices[at].Index.IsKnown() {
			c.devices[at].Index = d.Index
		}
		if c.devices[at].UUID == "" { // of a slice, which DCGM knows by numbers only
			c.devices[at].UUID = d.UUID
		}
		r.refs[d.Ref] = uint16(at)
	}
}

// complete reports whether every GPU known so far has its SM activity.
func (c *Choice) complete() bool {
	lacks := func(d Device) bool { return d.Missing != "" }
	return len(c.devices) > 0 && !slices.ContainsFunc(c.devices, lacks)
}

func (c *Choice) try(ctx context.Context, candidate Candidate) {
	if candidate.Last && c.complete() {
		return
	}
	source, devices, ok := c.open(ctx, candidate)
	if !ok {
		c.absent = append(c.absent, candidate)
		return
	}
	r := rung{source, map[uint16]uint16{}}
	for _, d := range devices {
		c.consider(d, r)
	}
	if len(r.refs) == 0 && len(devices) > 0 {
		c.refuse(candidate, "has no counters that a better source lacks")
		source.Close()
		return
	}
	c.taken = append(c.taken, r)
}

// consider takes the device from this rung if no rung above has its SM activity.
func (c *Choice) consider(d Device, r rung) {
	at := c.find(d.Identity)
	if at >= 0 && c.devices[at].worth() >= d.worth() {
		return
	}
	above := ""
	if at < 0 {
		at = len(c.devices)
		c.devices = append(c.devices, Device{})
	} else {
		above = c.devices[at].Source + ": " + c.devices[at].Missing
		c.forget(uint16(at))
	}
	local := d.Ref
	d.Ref = uint16(at)
	d.Why = strings.Trim(c.reasons("")+"; "+above, "; ")
	c.devices[at] = d
	if d.worth() > 0 {
		r.refs[local] = d.Ref
	}
}

// worth orders what sources have of the same device.
func (d Device) worth() int {
	switch {
	case d.Missing == "":
		return 2
	case d.Partly:
		return 1
	}
	return 0
}

// find returns the place of a device, -1 for one that is not known.
func (c *Choice) find(id Identity) int {
	return slices.IndexFunc(c.devices, func(d Device) bool { return d.same(id) })
}

// forget removes a device from the rungs above.
func (c *Choice) forget(ref uint16) {
	for _, r := range c.taken {
		for local, global := range r.refs {
			if global == ref {
				delete(r.refs, local)
			}
		}
	}
}

// reasons lists the refusals so far: "dcgm: not running; nvml: no GPM".
func (c *Choice) reasons(lead string) string {
	var parts []string
	for _, r := range c.Refusals {
		parts = append(parts, r.Source+": "+r.Why)
	}
	if len(parts) == 0 {
		return ""
	}
	return lead + strings.Join(parts, "; ")
}

// Name joins the names of the sources taken.
func (c *Choice) Name() string {
	var names []string
	for _, r := range append(slices.Clone(c.taken), c.beside...) {
		if !slices.Contains(names, r.Name()) {
			names = append(names, r.Name())
		}
	}
	return strings.Join(names, "+")
}

// Devices returns the GPUs as chosen, with the reason of each choice. A GPU that appears later in a source that is in use
// is added.
func (c *Choice) Devices(ctx context.Context) ([]Device, error) {
	var errs []error
	for _, r := range c.taken {
		errs = append(errs, c.meet(ctx, r))
	}
	for _, r := range c.beside {
		devices, err := r.Devices(ctx)
		errs = append(errs, err)
		c.learn(r, devices)
	}
	return slices.Clone(c.devices), errors.Join(errs...)
}

// meet takes devices that a source in use did not have before.
func (c *Choice) meet(ctx context.Context, r rung) error {
	devices, err := r.Devices(ctx)
	for _, d := range devices {
		if _, known := r.refs[d.Ref]; !known {
			c.consider(d, r)
		}
	}
	return err
}

// Sample samples every source in use. One that fails does not take the others along. Sources that were not there are tried again now
// and then.
func (c *Choice) Sample(ctx context.Context, until uint64) (all Batch, err error) {
	var errs []error
	all.Changed = c.lookAgain(ctx, until)
	for _, r := range c.taken {
		batch, err := r.Sample(ctx, until)
		errs = append(errs, named(r, err))
		if batch.Changed { // what is told of a new device comes with the news
			errs = append(errs, named(r, c.meet(ctx, r)))
		}
		all.add(batch, r.refs)
	}
	for _, r := range c.beside {
		batch, err := r.Sample(ctx, until)
		errs = append(errs, named(r, err))
		batch.Windows, batch.Failures = nil, nil // whoever counts the GPU speaks for its counters
		all.add(batch, r.refs)
	}
	return all, errors.Join(errs...)
}

func named(r rung, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", r.Name(), err)
}

// Close closes the sources in use.
func (c *Choice) Close() error {
	var errs []error
	for _, r := range append(slices.Clone(c.taken), c.beside...) {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
