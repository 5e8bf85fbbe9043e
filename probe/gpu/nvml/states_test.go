//go:build linux && cgo

package nvml

import (
	"math"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
	"github.com/datawait/datawait/probe/recording"
)

func TestTheStateOfABusyGPU(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5 resident=1 reasons=4 clock=1200 max-clock=1410 generation=3")+"process gpu=0 pid=77 memory=100\nxid gpu=0 code=31 at=300ms\n",
		plan{For: 1200 * time.Millisecond, Every: 400 * time.Millisecond})
	if len(o.Polls) < 3 || len(o.Devices) != 1 || o.Devices[0].UUID != standin.UUID(0) || o.Devices[0].Missing == "" {
		t.Fatalf("%+v", o)
	}
	for _, p := range o.Polls {
		v := p.States[0].Values
		if math.Abs(v["power"]-180) > 4 || v["reasons"] != 4 || v["clock"] != 1200e6 || v["max-clock"] != 1410e6 || v["generation"] != 3 || v["width"] != 16 || v["resident"] != 1 {
			t.Errorf("state %+v", p.States[0])
		}
		if len(p.Windows) != 0 {
			t.Errorf("windows %+v", p.Windows)
		}
	}
	if p := o.Polls[0].Processes; len(p) != 1 || p[0].PID != 77 || len(o.Polls[1].Processes) != 0 {
		t.Errorf("processes %+v, then %+v", p, o.Polls[1].Processes)
	}
	if e := o.Events(); len(e) != 1 || e[0].Value != 31 {
		t.Errorf("events %+v", e)
	}
}

func TestAGPUIsKnownByItsUUIDAndNotByItsPlace(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(7, "sm=1 used=100")+standin.A100(2, "sm=0 used=200")+"gone gpu=9\n", short())
	if len(o.Devices) != 2 || o.Devices[0].UUID != standin.UUID(7) || o.Devices[1].UUID != standin.UUID(2) {
		t.Fatalf("%+v", o.Devices)
	}
	if o.States(0)[0].Values["used"] != 100<<20 || o.States(1)[0].Values["used"] != 200<<20 {
		t.Errorf("%+v, %+v", o.States(0)[0], o.States(1)[0])
	}
}

func TestAGPUThatMayNotBeOpenedLeavesTheOthers(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "no-permission=1")+standin.A100(1, "sm=0.5"), short())
	if len(o.Devices) != 1 || o.Devices[0].UUID != standin.UUID(1) || len(o.States(0)) == 0 {
		t.Errorf("%+v", o)
	}
}

// TestPowerIsTheMeanOfAllThatWasUsed: a reading is of its moment on an A100, and is not asked for.
func TestPowerIsTheMeanOfAllThatWasUsed(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5")+"fail call=nvmlDeviceGetPowerUsage code=3\n", short())
	for _, s := range o.States(0) {
		if math.Abs(s.Values["power"]-180) > 4 {
			t.Errorf("power %v", s.Values["power"])
		}
	}
	if w := power(energy{1e9, 1000, true}, energy{2e9, 201000, true}, func() float32 { return 60 }); w != 200 {
		t.Errorf("200 J in a second are %v W", w)
	}
}

func TestAnEnergyCounterThatStartsAnewTellsNothingOfThatTime(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5")+"energy-reset at=800ms\n", plan{For: 2 * time.Second, Every: 300 * time.Millisecond})
	for _, s := range o.States(0) {
		if math.Abs(s.Values["power"]-180) > 4 { // of the reading, where the counter went back
			t.Errorf("power %v", s.Values["power"])
		}
	}
	if w := power(energy{1e9, 900000, true}, energy{2e9, 10, true}, func() float32 { return 61 }); w != 61 {
		t.Errorf("after a reset %v W", w)
	}
}

func TestWithoutAnEnergyCounterTheReadingCounts(t *testing.T) {
	t.Parallel()
	for _, s := range sampled(t, standin.A100(0, "sm=0.5 no-energy=1"), short()).States(0) {
		if s.Values["power"] != 180 {
			t.Errorf("power %v", s.Values["power"])
		}
	}
}

// TestWhyTheClockIsLowIsToldWhileItIs also has the PCIe link, which is reduced meanwhile.
func TestWhyTheClockIsLowIsToldWhileItIs(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5")+"set gpu=0 reasons=64 at=1s\nset gpu=0 clock=900 at=1s\nset gpu=0 generation=1 at=1s\nset gpu=0 width=8 at=1s\n",
		plan{For: 2 * time.Second, Every: 200 * time.Millisecond})
	states := o.States(0)
	first, last := states[0].Values, states[len(states)-1].Values
	if first["reasons"] != 0 || first["clock"] != 1410e6 || first["generation"] != 4 || first["width"] != 16 {
		t.Errorf("at first %+v", first)
	}
	if last["reasons"] != 64 || last["clock"] != 900e6 || last["max-clock"] != 1410e6 || last["generation"] != 1 || last["width"] != 8 || last["max-generation"] != 4 || last["max-width"] != 16 {
		t.Errorf("at last %+v", last)
	}
}

// TestGPUUtilIsTheMeanOfTheDriversRing: the GPU is busy half of the time, as a look now and then would not show.
func TestGPUUtilIsTheMeanOfTheDriversRing(t *testing.T) {
	t.Parallel()
	for _, s := range sampled(t, standin.A100(0, "util=0.37"), short()).States(0) {
		if math.Abs(s.Values["resident"]-0.37) > 1e-6 {
			t.Errorf("GPU-util %v", s.Values["resident"])
		}
	}
}

func TestGPUUtilGoesOnWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "util=0.37")+"clock by=3600s at=0s for=1s\n", plan{For: 3 * time.Second, Every: 300 * time.Millisecond})
	states := o.States(0)
	if last := states[len(states)-1].Values; math.Abs(last["resident"]-0.37) > 1e-6 {
		t.Errorf("GPU-util %v", last["resident"])
	}
}

func TestAGPUThatFallsOffTheBusIsToldOnceAndWhenItIsBack(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5")+standin.A100(1, "sm=0.5")+"gone gpu=1 at=600ms for=900ms\n", plan{For: 2500 * time.Millisecond, Every: 150 * time.Millisecond})
	events := o.Events()
	if len(events) != 2 || events[0].Ref != 1 || events[0].Code != recording.GPUEventGone || events[1].Code != recording.GPUEventBack {
		t.Errorf("events %+v", events)
	}
	told := false
	for _, p := range o.Polls {
		for _, f := range p.Failures {
			told = told || f.Ref == 1 && f.Why == "NVML: GPU is lost"
		}
	}
	if !told || len(o.States(0)) != len(o.Polls) || len(o.States(1)) >= len(o.Polls) {
		t.Errorf("told %v; %d and %d states in %d polls", told, len(o.States(0)), len(o.States(1)), len(o.Polls))
	}
}

// TestProcessesAreListedSeldom: each list takes the driver milliseconds under a lock of the whole machine.
func TestProcessesAreListedSeldom(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5")+"process gpu=0 pid=7 memory=100\nprocess gpu=0 pid=8 memory=200\n", plan{For: 2 * time.Second, Every: 100 * time.Millisecond})
	for i, p := range o.Polls {
		if n := len(p.Processes); i == 0 && n != 2 || i > 0 && n != 0 {
			t.Errorf("poll %d lists %d processes", i, n)
		}
	}
	if BetweenProcesses < 10*time.Second {
		t.Errorf("they are listed every %v", BetweenProcesses)
	}
}

func TestADriverThatHangsCostsThePatienceOnce(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5")+"hang call=nvmlDeviceGetMemoryInfo_v2 at=700ms for=1s\n",
		plan{For: 3 * time.Second, Every: 100 * time.Millisecond, Patient: 200 * time.Millisecond})
	hung := 0
	for i, p := range o.Polls {
		if p.Took > 700*time.Millisecond {
			t.Errorf("poll %d took %v", i, p.Took)
		}
		if p.Error != "" {
			hung++
			says(t, p.Error, "the driver does not answer")
		}
	}
	states := o.States(0)
	if hung == 0 || o.Polls[len(o.Polls)-1].Error != "" {
		t.Errorf("%d polls of %d failed", hung, len(o.Polls))
	}
	for i := 1; i < len(states); i++ {
		if states[i].Begin != states[i-1].End {
			t.Errorf("a gap between %+v and %+v", states[i-1], states[i])
		}
	}
}

func TestTheSlicesOfAGPUHaveTheirOwnMemoryAndNotItsPower(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "mig=1 clock=1200")+"gi id=10 gpu=0 gi=1\nci id=20 in=10 ci=0 uuid=MIG-a memory=20000\nxid gpu=0 code=31 gi=1 at=400ms\nxid gpu=0 code=94 at=500ms\n"+
		"gi id=11 gpu=0 gi=2\nci id=21 in=11 ci=0 uuid=MIG-b memory=40000\nprocess gpu=0 ci=21 pid=5\n", plan{For: 1500 * time.Millisecond, Every: 300 * time.Millisecond})
	if len(o.Devices) != 2 || o.Devices[0].UUID != "MIG-a" || o.Devices[0].Parent != standin.UUID(0) || o.Devices[1].GI != 2 || o.Devices[1].CI != 0 {
		t.Fatalf("%+v", o.Devices)
	}
	for ref, memory := range []float64{20000 << 20, 40000 << 20} {
		v := o.States(uint16(ref))[0].Values
		_, power := v["power"]
		_, util := v["resident"]
		if v["memory"] != memory || power || util || v["clock"] != 1200e6 {
			t.Errorf("slice %d: %+v", ref, v)
		}
	}
	if p := o.Polls[0].Processes; len(p) != 2 || p[0].PID != 0 || p[1].Ref != 1 || p[1].PID != 5 { // 0 = nobody
		t.Errorf("processes %+v", p)
	}
	xids := map[uint64][]uint16{}
	for _, e := range o.Events() {
		xids[e.Value] = append(xids[e.Value], e.Ref)
	}
	if len(xids[31]) != 1 || xids[31][0] != 0 || len(xids[94]) != 2 {
		t.Errorf("Xids %+v", xids)
	}
}

func TestAGPUInMIGModeThatIsNotCutIsListed(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "mig=1"), short())
	if len(o.Devices) != 1 || o.Devices[0].UUID != standin.UUID(0) {
		t.Errorf("%+v", o.Devices)
	}
}

// A look that finds nobody is told: nothing at all would be nobody looking.
func TestALookThatFindsNoProcessIsTold(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0 resident=0"), plan{For: 900 * time.Millisecond, Every: 400 * time.Millisecond})
	if p := o.Polls[0].Processes; len(p) != 1 || p[0].PID != 0 {
		t.Errorf("the first look found %+v", p)
	}
	if p := o.Polls[1].Processes; len(p) != 0 {
		t.Errorf("nobody looked again so soon, and yet %+v", p)
	}
}
