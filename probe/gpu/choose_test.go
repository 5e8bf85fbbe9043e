package gpu

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/datawait/datawait/probe/recording"
)

// fake is a source with these devices; each Sample gives one window of every device that has counters.
type fake struct {
	name    string
	devices []Device
	fails   error
	states  bool // it tells the state of every device
	changed bool
	closed  bool
}

func (f *fake) Name() string { return f.name }

func (f *fake) Devices(context.Context) ([]Device, error) {
	for i := range f.devices {
		f.devices[i].Source = f.name
	}
	return f.devices, f.fails
}

func (f *fake) Sample(_ context.Context, until uint64) (b Batch, err error) {
	for _, d := range f.devices {
		b.Windows = append(b.Windows, recording.GPU{Ref: d.Ref, End: until, SM: float32(len(f.name))})
	}
	if f.states {
		for _, d := range f.devices {
			b.States = append(b.States, recording.GPUState{Ref: d.Ref, End: until})
		}
	}
	if len(f.devices) > 0 {
		b.Failures = []Failure{{Ref: f.devices[0].Ref, Why: "busy"}}
	}
	b.Changed = f.changed
	return b, f.fails
}

func (f *fake) Close() error { f.closed = true; return nil }

func candidate(f *fake) Candidate {
	return Candidate{Name: f.name, Open: func(context.Context) (Source, error) { return f, nil }}
}

func device(uuid string, ref uint16, missing string) Device {
	return Device{Identity: Whole(uuid), Ref: ref, Missing: missing}
}

func TestEachGPUIsReadWhereItIsReadBest(t *testing.T) {
	ctx := context.Background()
	dcgm := &fake{name: "dcgm", devices: []Device{device("GPU-a", 4, ""), device("GPU-b", 5, "no metric group")}}
	nvml := &fake{name: "nvml", devices: []Device{device("GPU-b", 0, ""), device("GPU-a", 1, ""), device("GPU-c", 2, "not Hopper")}}
	useless := &fake{name: "scrape", devices: []Device{device("GPU-a", 0, "")}}
	c, err := Choose(ctx, []Candidate{
		{Name: "serve", Open: func(context.Context) (Source, error) { return nil, errors.New("no socket") }},
		candidate(dcgm), candidate(nvml), candidate(useless),
	})
	if err != nil {
		t.Fatal(err)
	}
	devices, err := c.Devices(ctx)
	if err != nil || len(devices) != 3 || c.Name() != "dcgm+nvml" || !useless.closed {
		t.Fatalf("%s: %+v, %v", c.Name(), devices, err)
	}
	for i, want := range []struct{ uuid, source, why, missing string }{
		{"GPU-a", "dcgm", "serve: no socket", ""},
		{"GPU-b", "nvml", "serve: no socket; dcgm: no metric group", ""},
		{"GPU-c", "nvml", "serve: no socket", "not Hopper"},
	} {
		d := devices[i]
		if d.UUID != want.uuid || d.Source != want.source || d.Why != want.why || d.Missing != want.missing || int(d.Ref) != i {
			t.Errorf("device %d is %+v, want %+v", i, d, want)
		}
	}
	if n := devices[2].Note(); n.Why != "serve: no socket; nvml: not Hopper" || n.GPU != 2 {
		t.Errorf("note %+v", n)
	}
	b, err := c.Sample(ctx, 9)
	if err != nil || len(b.Windows) != 2 || b.Windows[0].Ref != 0 || b.Windows[1].Ref != 1 || len(b.Failures) != 2 {
		t.Errorf("batch %+v, %v", b, err)
	}
	if c.Close() != nil || !dcgm.closed || !nvml.closed {
		t.Error("a source stayed open")
	}
}

func TestOneFailingSourceLeavesTheOthers(t *testing.T) {
	ctx := context.Background()
	a, b := &fake{name: "a", devices: []Device{device("GPU-a", 0, "")}}, &fake{name: "b", devices: []Device{device("GPU-b", 0, "")}}
	c, err := Choose(ctx, []Candidate{candidate(a), candidate(b)})
	if err != nil {
		t.Fatal(err)
	}
	a.fails = errors.New("lost connection")
	batch, err := c.Sample(ctx, 1)
	if !errors.Is(err, a.fails) || len(batch.Windows) != 2 {
		t.Errorf("batch %+v, %v", batch, err)
	}
	b.devices = append(b.devices, device("GPU-late", 1, ""))
	devices, _ := c.Devices(ctx)
	if len(devices) != 3 || devices[2].UUID != "GPU-late" {
		t.Errorf("devices %+v", devices)
	}
}

func TestNoSourceSaysWhy(t *testing.T) {
	broken := &fake{name: "nvml", fails: errors.New("no library")}
	c, err := Choose(context.Background(), []Candidate{candidate(broken)})
	if !errors.Is(err, ErrNoSource) || !strings.Contains(err.Error(), "nvml: no library") || len(c.Refusals) != 1 || !broken.closed {
		t.Errorf("%v, %+v", err, c)
	}
	if _, err := Choose(context.Background(), nil); !errors.Is(err, ErrNoSource) {
		t.Error(err)
	}
}

func TestSourcesBesideTellTheRestOfWhatOthersCount(t *testing.T) {
	ctx := context.Background()
	dcgm := &fake{name: "dcgm", devices: []Device{device("GPU-a", 4, "")}}
	nvml := &fake{name: "nvml", devices: []Device{device("GPU-b", 0, "no GPM"), device("GPU-a", 1, "no GPM")}}
	nvml.states = true
	c, err := Choose(ctx, []Candidate{candidate(dcgm)}, candidate(nvml))
	if err != nil {
		t.Fatal(err)
	}
	devices, err := c.Devices(ctx)
	if err != nil || len(devices) != 2 || devices[0].Source != "dcgm" || devices[1].UUID != "GPU-b" || devices[1].Missing != "no GPM" {
		t.Fatalf("%+v, %v", devices, err)
	}
	b, err := c.Sample(ctx, 9)
	if err != nil || len(b.Windows) != 1 || b.Windows[0].Ref != 0 || len(b.States) != 2 || b.States[0].Ref != 1 || b.States[1].Ref != 0 {
		t.Errorf("batch %+v, %v", b, err)
	}
}

func TestASourceBesideAloneListsWhatIsThere(t *testing.T) {
	nvml := &fake{name: "nvml", devices: []Device{device("GPU-a", 0, "no GPM")}}
	c, err := Choose(context.Background(), []Candidate{{Name: "dcgm", Open: func(context.Context) (Source, error) { return nil, errors.New("no library") }}}, candidate(nvml))
	if err != nil {
		t.Fatal(err)
	}
	devices, _ := c.Devices(context.Background())
	if len(devices) != 1 || devices[0].Missing != "no GPM" || devices[0].Why != "dcgm: no library" {
		t.Errorf("%+v", devices)
	}
}

func TestTheLastIsAskedOnlyWhereSomethingIsMissing(t *testing.T) {
	for missing, want := range map[string]int{"": 0, "no metric group": 1} {
		asked := 0
		last := Candidate{Name: "page", Last: true, Open: func(context.Context) (Source, error) {
			asked++
			return &fake{name: "page", devices: []Device{device("GPU-a", 0, "")}}, nil
		}}
		choice, err := Choose(context.Background(), []Candidate{candidate(&fake{name: "dcgm", devices: []Device{device("GPU-a", 0, missing)}}), last})
		if err != nil || asked != want || choice.Name() == "" {
			t.Errorf("%q: asked %d times, %s, %v", missing, asked, choice.Name(), err)
		}
	}
}

// A source that has some counters of a GPU, without its SM activity, is better than one that has none, and gives way to one that has all.
func TestWhatIsPartlySeenIsTakenForWantOfBetter(t *testing.T) {
	ctx := context.Background()
	partly := device("GPU-a", 3, "not on the list")
	partly.Partly = true
	for name, c := range map[string]struct {
		all  []*fake
		from string
	}{
		"alone":             {[]*fake{{name: "page", devices: []Device{partly}}}, "page"},
		"after one without": {[]*fake{{name: "nvml", devices: []Device{device("GPU-a", 0, "not Hopper")}}, {name: "page", devices: []Device{partly}}}, "page"},
		"before a better":   {[]*fake{{name: "page", devices: []Device{partly}}, {name: "dcgm", devices: []Device{device("GPU-a", 0, "")}}}, "dcgm"},
		"after a better":    {[]*fake{{name: "dcgm", devices: []Device{device("GPU-a", 0, "")}}, {name: "page", devices: []Device{partly}}}, "dcgm"},
	} {
		var candidates []Candidate
		for _, f := range c.all {
			candidates = append(candidates, candidate(f))
		}
		choice, err := Choose(ctx, candidates)
		if err != nil {
			t.Fatal(err)
		}
		batch, _ := choice.Sample(ctx, 7)
		if len(batch.Windows) != 1 || batch.Windows[0].SM != float32(len(c.from)) {
			t.Errorf("%s: %+v, want one window of %s", name, batch.Windows, c.from)
		}
		if d, _ := choice.Devices(ctx); len(d) != 1 || d[0].Source != c.from {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A host engine that is started during a long run counts from then on, and what was said of its absence is taken back.
func TestASourceThatComesLaterIsTaken(t *testing.T) {
	ctx := context.Background()
	states := &fake{name: "nvml", states: true, devices: []Device{device("GPU-a", 0, "no counters")}}
	engine := &fake{name: "dcgm", devices: []Device{device("GPU-a", 7, "")}}
	there, tries := false, 0
	c, err := Choose(ctx, []Candidate{{Name: "dcgm", Open: func(context.Context) (Source, error) {
		tries++
		if !there {
			return nil, errors.New("no host engine")
		}
		return engine, nil
	}}}, candidate(states))
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range []uint64{1e9, 20e9, 32e9} { // the last is a try that fails
		if b, _ := c.Sample(ctx, now); b.Changed || len(b.Windows) > 0 {
			t.Fatalf("at %d s: %+v", now/1e9, b)
		}
	}
	there = true
	if b, _ := c.Sample(ctx, 63e9); !b.Changed || len(b.Windows) != 1 || b.Windows[0].Ref != 0 || len(b.States) != 1 {
		t.Errorf("once it is there: %+v", b)
	}
	devices, err := c.Devices(ctx)
	if err != nil || len(devices) != 1 || devices[0].Source != "dcgm" || devices[0].Missing != "" || strings.Contains(devices[0].Why, "no host engine") {
		t.Errorf("devices %+v, %v", devices, err)
	}
	if c.Sample(ctx, 200e9); tries != 3 {
		t.Errorf("tried %d times; at the start, in vain, and when it was there", tries)
	}
}

// An emulated device tells of all the time before it was made in the batch in which it appears.
func TestTheFirstWindowsOfADeviceThatAppearsAreKept(t *testing.T) {
	ctx := context.Background()
	logs := &fake{name: "emulated"}
	c, err := Choose(ctx, []Candidate{candidate(logs)})
	if err != nil {
		t.Fatal(err)
	}
	logs.devices, logs.changed = []Device{device("GPU-a", 3, "")}, true
	if b, err := c.Sample(ctx, 9); err != nil || !b.Changed || len(b.Windows) != 1 || b.Windows[0].Ref != 0 {
		t.Errorf("batch %+v, %v", b, err)
	}
}
