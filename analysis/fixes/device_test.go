package fixes

import (
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/analysis/stat"
)

func unpriced(r Ranking, id string) string {
	for _, u := range r.Unpriced {
		if u.ID == id {
			return u.Reason
		}
	}
	return ""
}

// Mixed precision is something for a job that waits for no data, keeps the FP32 pipe busy and leaves the tensor pipes idle.
func TestMixedPrecisionIsForIdleTensorPipes(t *testing.T) {
	for _, c := range []struct {
		name         string
		job          scenario.Job
		tensor, fp32 float64 // below 0 = unknown
		says         string  // "" = it is not advised
	}{
		{"idle beside a busy FP32 pipe", scenario.S26(), 0.01, 0.6, "the tensor pipes are active for 1 % of a step and the FP32 pipe for 60 %"},
		{"idle, at the line", scenario.S26(), 0.049, 0.21, "active for 5 %"},
		{"in use", scenario.S26(), 0.051, 0.6, ""},
		{"FP32 hardly used", scenario.S26(), 0.0, 0.19, ""},
		{"nothing known", scenario.S26(), -1, -1, "was not measured"},
		{"data is waited for", scenario.S02(1), 0.0, 0.6, ""},
		{"data is waited for, without workers", scenario.S01(), 0.0, 0.6, ""},
	} {
		r := rank(c.job, func(p *loader.Parameters) {
			if c.tensor >= 0 {
				p.Device.Tensor, p.Device.FP32 = some(c.tensor), some(c.fp32)
			}
		})
		got := unpriced(r, MixedPrecision)
		if !strings.Contains(got, c.says) || c.says == "" && got != "" {
			t.Errorf("%s: %q", c.name, got)
		}
		if _, ok := find(r, MixedPrecision); ok {
			t.Errorf("%s: priced without a trial", c.name)
		}
	}
}

// While data is waited for, nothing is said to change how a step computes, whatever the counters show.
func TestNothingOfComputingIsAdvisedWhileDataIsWaitedFor(t *testing.T) {
	for name, j := range map[string]scenario.Job{"S01": scenario.S01(), "S02": scenario.S02(1), "S05": scenario.S05(8), "Uber": scenario.Uber()} {
		r := rank(j, func(p *loader.Parameters) {
			p.Device.Resident, p.Device.SMActive, p.Device.SMComputing = some(1.0), some(0.1), some(0.1)
			p.Device.Tensor, p.Device.FP32 = some(0.0), some(0.9)
			p.Device.Clock = loader.Clock{Thermal: some(1.0), Of: some(0.5)}
		})
		for _, id := range []string{MixedPrecision, Compile, LargerBatch, CoolingOrPower} {
			if _, ok := find(r, id); ok || unpriced(r, id) != "" {
				t.Errorf("%s: %s is advised: %q", name, id, unpriced(r, id))
			}
		}
	}
}

// Half of the steps a quarter longer: without that, a step of C takes C ÷ 1.125.
func TestCoolingWinsWhatStepsLose(t *testing.T) {
	r := rank(scenario.S26(), func(p *loader.Parameters) {
		p.Device.Clock = loader.Clock{Thermal: some(0.5), Steps: some(0.5), Longer: someEst(stat.Estimate{Value: 0.25, Low: 0.2, High: 0.3, N: 100})}
	})
	f, ok := find(r, CoolingOrPower)
	_, c, _ := scenario.S26().Cost()
	want := scenario.S26().Step() - c*(1-1/1.125)
	if got := f.Predicted.StepSeconds.Or(zero).Value; !ok || math.Abs(got-want) > 0.01*want || len(f.Assumes) == 0 {
		t.Errorf("%v: a step of %v, want %v", ids(r), got, want)
	}
	hot := rank(scenario.S26(), func(p *loader.Parameters) { p.Device.Clock = loader.Clock{Thermal: some(1.0), Of: some(0.7)} })
	if got := unpriced(hot, CoolingOrPower); !strings.Contains(got, "none ran at another") {
		t.Errorf("hot all the time: %q", got)
	}
	capped := rank(scenario.S26(), func(p *loader.Parameters) { p.Device.Clock = loader.Clock{PowerCap: some(1.0), Of: some(0.7)} })
	if got := unpriced(capped, CoolingOrPower); got != "" {
		t.Errorf("a power limit that is reached is no finding by itself, and yet %q", got)
	}
}

// A quarter of the lanes: copies of 20 ms take 5 ms on all of them.
func TestAWholeLinkWinsWhatCopiesLose(t *testing.T) {
	narrow := loader.Link{Generation: 4, Lanes: 4, MostGeneration: 4, MostLanes: 16, Narrow: some(1.0)}
	j := scenario.S23()
	r := rank(j, func(p *loader.Parameters) { p.Device.Link = narrow })
	f, ok := find(r, ReseatLink)
	if got, want := f.Predicted.StepSeconds.Or(zero).Value, j.Step()-0.75*j.Copy; !ok || math.Abs(got-want) > 1e-4 {
		t.Errorf("%v: a step of %v, want %v", ids(r), got, want)
	}
	if _, ok := find(rank(scenario.S26(), func(p *loader.Parameters) { p.Device.Link = narrow }), ReseatLink); ok {
		t.Error("nothing waits for the link")
	}
}
