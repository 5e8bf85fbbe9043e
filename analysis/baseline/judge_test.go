package baseline

import (
	"math"
	"testing"

	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
)

var nan = math.NaN()

// blocks makes alternating live and cached blocks of the given seconds per step, device-timed.
func blocks(seconds ...float64) (all []Block) {
	for i, s := range seconds {
		leg := recording.LegLive
		if i%2 == 1 {
			leg = recording.LegHostCached
		}
		b := Block{Number: i + 1, Leg: leg, Steps: 20, Seconds: s, DeviceTimed: true, Exposed: nan}
		if leg == recording.LegLive {
			b.Wait = s / 2
		}
		all = append(all, b)
	}
	return all
}

func TestConclusion(t *testing.T) {
	device := Setup{Device: true, Grade: stat.GradeA}
	unsynced := blocks(0.040, 0.020, 0.041, 0.020)
	unsynced[1].DeviceTimed = false
	void := blocks(0.040, 0.020, 0.041, 0.020)
	void[3].Void = recording.VoidEpochEnded
	tests := []struct {
		name   string
		blocks []Block
		setup  Setup
		want   string
		pairs  int
	}{
		{"twice as fast", blocks(0.040, 0.020, 0.041, 0.020, 0.039, 0.020), device, InputPipeline, 3},
		{"no faster", blocks(0.020, 0.020, 0.0201, 0.02, 0.0199, 0.02), device, NotInput, 3},
		{"faster, but too little to matter", blocks(0.0202, 0.02, 0.0203, 0.0201, 0.0202, 0.02), device, NotInput, 3},
		{"the interval holds 1", blocks(0.040, 0.020, 0.021, 0.022), device, Inconclusive, 2},
		{"one pair", blocks(0.040, 0.020), device, Inconclusive, 1},
		{"none", nil, device, Inconclusive, 0},
		{"a void block makes no pair", void, device, Inconclusive, 1},
		{"not timed on the device", unsynced, device, Inconclusive, 2},
		{"no device: the host's clock is exact", unsynced, Setup{}, InputPipeline, 2},
	}
	for _, test := range tests {
		o := Judge(test.blocks, test.setup)
		if o.Conclusion != test.want || o.Pairs != test.pairs || o.Why == "" {
			t.Errorf("%s: %s, %d pairs, %q; want %s, %d", test.name, o.Conclusion, o.Pairs, o.Why, test.want, test.pairs)
		}
		if c, ok := o.Ceiling.Get(); ok && !(c.Low <= c.Value && c.Value <= c.High) {
			t.Errorf("%s: ceiling %+v", test.name, c)
		}
	}
}

// TestDrift: everything gets slower from pair to pair, as when a GPU warms up. The pairs cancel it.
func TestDrift(t *testing.T) {
	o := Judge(blocks(0.040, 0.020, 0.044, 0.022, 0.048, 0.024, 0.052, 0.026), Setup{})
	c, ok := o.Ceiling.Get()
	if !ok || math.Abs(c.Value-2) > 1e-9 || c.High-c.Low > 0.01 {
		t.Errorf("ceiling %+v, want exactly 2", c)
	}
}

func TestShares(t *testing.T) {
	// live 50 = host-cached 20 + exposed wait 24 + interference 4 + 2 unexplained; 3 of host-cached are copies.
	all := []Block{
		{Number: 1, Leg: recording.LegLive, Seconds: 0.050, Wait: 0.040, Exposed: 0.024},
		{Number: 2, Leg: recording.LegHostCached, Seconds: 0.020, Exposed: 0},
		{Number: 3, Leg: recording.LegHostCachedBusy, Seconds: 0.024, Exposed: 0},
		{Number: 4, Leg: recording.LegLive, Seconds: 0.050, Wait: 0.040, Exposed: 0.024},
		{Number: 5, Leg: recording.LegHostCached, Seconds: 0.020, Exposed: 0},
		{Number: 6, Leg: recording.LegDeviceCached, Seconds: 0.017, Exposed: nan},
		{Number: 7, Leg: recording.LegReread, Void: recording.VoidException},
	}
	for i := range all {
		all[i].DeviceTimed, all[i].Steps = true, 20
	}
	o := Judge(all, Setup{Device: true})
	for name, share := range map[string][2]float64{
		"copy": {o.Copy.Or(stat.Estimate{Value: nan}).Value, 0.06}, "interference": {o.Interference.Or(nan), 0.08}, "unexplained": {o.Unexplained.Or(nan), 0.04},
	} {
		if math.Abs(share[0]-share[1]) > 1e-9 {
			t.Errorf("%s = %v, want %v", name, share[0], share[1])
		}
	}
	if len(o.Skipped) != 1 || o.Skipped[0].Leg != "reread" {
		t.Errorf("skipped = %v", o.Skipped)
	}
	if _, ok := o.Legs["reread"]; ok {
		t.Error("a leg without counted blocks is listed")
	}
	if l := o.Legs["live"]; l.Blocks != 2 || l.Steps != 40 {
		t.Errorf("live = %+v", l)
	}
}
