package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// longer is how much longer steps take, with an interval.
func longer(low, value, high float64) loader.Est {
	return unit.Some(stat.Estimate{Value: value, Low: low, High: high, N: 100, Grade: stat.GradeB})
}

func clock(thermal, hardware, power, of float64) loader.Clock {
	return loader.Clock{Thermal: unit.Some(thermal), Hardware: unit.Some(hardware), PowerCap: unit.Some(power), Of: unit.Some(of)}
}

func compared(c loader.Clock, steps float64, e loader.Est) loader.Clock {
	c.Steps, c.Longer = unit.Some(steps), e
	return c
}

// A clock that is held down is a finding where steps show it, or where it is so low, by no setting, that they must (M8, F80).
func TestAClockThatIsHeldDown(t *testing.T) {
	waits := scenario.S02(1)
	for _, c := range []struct {
		name  string
		job   scenario.Job
		clock loader.Clock
		found bool
		says  string // of the verdict, or of the reason it was dropped for
	}{
		{"steps are a fifth longer in half of the time", scenario.S26(), compared(clock(0, 0, 0.5, 0.8), 0.5, longer(0.15, 0.2, 0.25)), true, "the power limit holds the clock down for 50 % of the time the GPU works, to 80 % of the highest on average, and steps take 20 % longer"},
		{"the limit is reached, steps are no slower (M8)", scenario.S26(), compared(clock(0, 0, 1, 0.8), 0.5, longer(-0.01, 0.005, 0.02)), false, "steps are not slower"},
		{"2 % longer for certain", scenario.S26(), compared(clock(0, 0, 0.5, 0.8), 0.5, longer(0.01, 0.02, 0.03)), false, "steps are not slower"},
		{"4 % longer for certain", scenario.S26(), compared(clock(0, 0, 0.5, 0.8), 0.5, longer(0.03, 0.04, 0.05)), true, "4 % longer"},
		{"10 % longer, perhaps", scenario.S26(), compared(clock(0, 0, 0.5, 0.8), 0.5, longer(-0.01, 0.1, 0.2)), false, "steps are not slower"},
		{"the limit is reached all the time (M8)", scenario.S26(), clock(0, 0, 1, 0.8), false, "was not seen"},
		{"hot all the time, at 80 %", scenario.S26(), clock(1, 0, 0, 0.8), true, "temperature holds the clock down"},
		{"hot all the time, at 86 %", scenario.S26(), clock(1, 0, 0, 0.86), false, "was not seen"},
		{"power brake all the time", scenario.S26(), clock(0, 1, 0, 0.5), true, "the board"},
		{"for 4 % of the time", scenario.S26(), clock(0.04, 0, 0, 0.5), false, ""},
		{"unknown", scenario.S26(), loader.Clock{}, false, ""},
		{"data is waited for", waits, compared(clock(0, 0, 0.5, 0.8), 0.5, longer(0.15, 0.2, 0.25)), false, "waits for data"},
	} {
		f := judge(c.job, func(_ *Facts, p *loader.Parameters) { p.Device.Clock = c.clock })
		check(t, c.name, f, ClockThrottle, c.found, c.says)
	}
}

// check holds one verdict of findings, or the reason it was dropped for, against what is expected.
func check(t *testing.T, name string, f Findings, id string, found bool, says string) {
	t.Helper()
	text := ""
	for _, v := range f.Verdicts {
		reached[v.ID] = true
		if v.ID == id {
			text = strings.ToLower(v.Title)
		}
	}
	if (text != "") != found {
		t.Errorf("%s: %v", name, ids(f))
	}
	for _, d := range f.Dropped {
		if d.ID == id && !found {
			text = strings.ToLower(d.Reason)
		}
	}
	if !strings.Contains(text, strings.ToLower(says)) || says == "" && text != "" {
		t.Errorf("%s: %q, want %q", name, text, says)
	}
}

// A PCIe link below what card and slot can do is a finding where copies wait for it; one that is slow while nothing happens is none.
func TestAPCIeLinkThatIsTooNarrow(t *testing.T) {
	link := func(generation, lanes int, narrow, in float64) loader.Link {
		return loader.Link{Generation: generation, Lanes: lanes, MostGeneration: 4, MostLanes: 16, Narrow: unit.Some(narrow), In: unit.Some(in)}
	}
	blind := scenario.S26()
	for _, c := range []struct {
		name   string
		job    scenario.Job
		copied bool // the exposed copy was measured
		link   loader.Link
		found  bool
		says   string
	}{
		{"4 lanes of 16, copies exposed", scenario.S23(), true, link(4, 4, 1, 1e9), true, "generation 4 with 4 lanes while the gpu works, 25 % of what card and slot can do together, and copies wait"},
		{"4 lanes of 16, no copy exposed", scenario.S26(), true, link(4, 4, 1, 6e9), false, "hardly anything waits"},
		{"8 lanes of 16", scenario.S23(), true, link(4, 8, 1, 1e9), true, "50 %"},
		{"12 lanes of 16", scenario.S23(), true, link(4, 12, 1, 1e9), false, ""},
		{"now and then", scenario.S23(), true, link(1, 16, 0.5, 1e9), false, ""},
		{"copies not measured, link half full", blind, false, link(4, 4, 1, 4e9), true, "copies wait"},
		{"copies not measured, link nearly half full", blind, false, link(4, 4, 1, 3.8e9), false, "hardly anything waits"},
		{"nothing measured", blind, false, loader.Link{Generation: 4, Lanes: 4, MostGeneration: 4, MostLanes: 16, Narrow: unit.Some(1.0)}, false, "was not measured"},
		{"unknown", scenario.S23(), true, loader.Link{}, false, ""},
	} {
		f := judge(c.job, func(_ *Facts, p *loader.Parameters) {
			p.Device.Link = c.link
			if !c.copied {
				p.Step.Copy = loader.Est{}
			}
		})
		check(t, c.name, f, PCIeLink, c.found, c.says)
	}
}

// M1: a kernel always there and few SMs at work is launch-bound, unless data is waited for; near the lines it is what the lines say.
func TestLaunchBoundNeedsKernelsFewSMsAndNoWait(t *testing.T) {
	for _, c := range []struct {
		name         string
		job          scenario.Job
		resident, sm float64
		unmixed      bool
		wait         float64 // of the step; 0 = as the job
		found        bool
	}{
		{"10 % of the SMs", scenario.S26(), 1, 0.10, true, 0, true},
		{"24 % of the SMs", scenario.S26(), 1, 0.24, true, 0, true},
		{"26 % of the SMs", scenario.S26(), 1, 0.26, true, 0, false},
		{"kernels for 62 % of the step", scenario.S26(), 0.62, 0.10, true, 0, true},
		{"kernels for 55 % of the step", scenario.S26(), 0.55, 0.10, true, 0, false},
		{"not unmixed, no wait", scenario.S26(), 1, 0.10, false, 0, true},
		{"not unmixed, a tenth waited", scenario.S26(), 1, 0.10, false, 0.1, false},
		{"two thirds waited, without workers", scenario.S01(), 1, 0.10, true, 0, false},
		{"most of it waited", scenario.S02(1), 1, 0.10, true, 0, false},
	} {
		f := judge(c.job, func(_ *Facts, p *loader.Parameters) {
			p.Device.Resident, p.Device.SMActive, p.Device.SMComputing = unit.Some(c.resident), unit.Some(c.sm), unit.Some(c.sm)
			if !c.unmixed {
				p.Device.SMComputing = loader.Num{}
			}
			if c.wait > 0 {
				p.Step.Wait, p.Step.Exposed = exact(c.wait*p.Step.Seconds.Or(none).Value), loader.Est{}
			}
		})
		if got := slices.Contains(ids(f), LaunchBound); got != c.found {
			t.Errorf("%s: %v, dropped %+v", c.name, ids(f), f.Dropped)
		}
	}
	several := judge(scenario.S26(), func(_ *Facts, p *loader.Parameters) {
		p.Device.Resident, p.Device.SMComputing, p.GPUs = unit.Some(1.0), unit.Some(0.1), 8
	})
	check(t, "eight ranks", several, LaunchBound, true, "a collective")
}

// A GPU is idle only on what was seen of it: counters that cover too little, or of which none can be trusted, make none idle.
func TestIdleIsWhatWasSeenToBeIdle(t *testing.T) {
	trains := GPU{Name: "GPU a", Ranks: 1, Held: unit.Some(1.0), Watched: 1, Resident: unit.Some(0.9), Covered: 1, Hours: 1, Assigned: true}
	spare := func(change func(*GPU)) GPU {
		g := GPU{Name: "GPU b", Held: unit.Some(1.0), Watched: 1, Resident: unit.Some(0.0), Covered: 1, Hours: 1, Assigned: true}
		change(&g)
		return g
	}
	same := func(*GPU) {}
	for _, c := range []struct {
		name  string
		gpus  []GPU
		steps int
		found bool
		says  string
	}{
		{"a second one without a rank", []GPU{trains, spare(same)}, 400, true, "1 of 2 GPUs was assigned and no rank uses it"},
		{"held by none", []GPU{trains, spare(func(g *GPU) { g.Held = unit.Some(0.0) })}, 400, true, "no process held it"},
		{"held for 51 %", []GPU{spare(func(g *GPU) { g.Held, g.Ranks = unit.Some(0.51), 1 })}, 400, false, ""},
		{"held for 49 %", []GPU{spare(func(g *GPU) { g.Held, g.Ranks = unit.Some(0.49), 1 })}, 400, true, "for 51 % of the time"},
		{"held known for less than half", []GPU{spare(func(g *GPU) { g.Held, g.Ranks, g.Watched = unit.Some(0.0), 1, 0.4 })}, 400, false, ""},
		{"a second one that is used", []GPU{trains, spare(func(g *GPU) { g.Resident = unit.Some(0.06) })}, 400, false, ""},
		{"a second one of which counters say nothing", []GPU{trains, spare(func(g *GPU) { g.Resident = loader.Num{} })}, 400, false, ""},
		{"a second one seen for less than half", []GPU{trains, spare(func(g *GPU) { g.Covered = 0.4 })}, 400, false, ""},
		{"nobody says whose it is", []GPU{trains, spare(func(g *GPU) { g.Assigned = false })}, 400, true, "nothing tells whom it is assigned to"},
		{"no steps, nothing ran", []GPU{spare(same)}, 0, true, "had nothing to run for 100 % of the time"},
		{"no steps, counters say nothing", []GPU{spare(func(g *GPU) { g.Resident = loader.Num{} })}, 0, false, ""},
		{"no steps, in use by nobody (M6)", []GPU{spare(func(g *GPU) { g.Held, g.Watched, g.Resident, g.Hidden = loader.Num{}, 0, unit.Some(1.0), true })}, 0, false, ""},
	} {
		f := judge(scenario.S26(), func(f *Facts, _ *loader.Parameters) { f.GPUs, f.Steps, f.Fetches = c.gpus, c.steps, c.steps })
		check(t, c.name, f, IdleAllocated, c.found, c.says)
	}
}

// Where nothing else can be judged, counters that contradict themselves are still said to.
func TestABlindRunStillSaysThatItsCountersLie(t *testing.T) {
	f := judge(scenario.S26(), func(f *Facts, _ *loader.Parameters) { f.Steps, f.Fetches, f.Untrusted = 0, 0, unit.Some(1.0) })
	if got := ids(f); !slices.Equal(got, []string{NoStepsSeen, MetricUntrusted}) {
		t.Errorf("%v", got)
	}
}

// M6: a GPU in use of which nobody is listed, in a job without a step.
func TestAGPUInUseOfWhichNobodyIsListed(t *testing.T) {
	hidden := GPU{Name: "GPU b", Resident: unit.Some(1.0), Covered: 1, Hours: 1, Hidden: true, Memory: unit.Some(1e10)}
	f := judge(scenario.S26(), func(f *Facts, _ *loader.Parameters) { f.GPUs, f.Steps, f.Fetches = []GPU{hidden}, 0, 0 })
	check(t, "hidden", f, OrphanContext, true, "GPU b is in use and no process is listed that holds it: a context was left behind")
	hidden.Ranks = 1
	f = judge(scenario.S26(), func(f *Facts, _ *loader.Parameters) { f.GPUs = []GPU{hidden} })
	check(t, "a rank is known to be on it", f, OrphanContext, false, "")
}
