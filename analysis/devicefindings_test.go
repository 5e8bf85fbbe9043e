package analysis

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/recording"
)

// knownJob is a job on one real GPU for two minutes, of which everything is known.
type knownJob struct {
	wait         float64                     // ms of every step
	step         func(t float64) float64     // ms, of a step that begins at t
	sm, resident float32                     // of every window
	tensor, fp32 float32                     // NaN = not counted
	state        func(v *recording.GPUState) // begin of the state is its time
	xid          uint64
	counted      float64 // ms for which there are windows; 0 = all the time
}

const knownEnd = 120_000

func (j knownJob) run(t *testing.T) *Result {
	t.Helper()
	x := newTape(t)
	x.observe(knownEnd)
	agent := x.agent(recording.GPUNote{UUID: "GPU-a", Name: "NVIDIA A100-SXM4-80GB", Source: "dcgm", Grade: "A"})
	for now := 0.0; now < knownEnd; now += 1000 {
		w := blankWindow(0, now, now+1000)
		w.SM, w.Resident, w.Tensor = j.sm, j.resident, j.tensor
		if j.counted == 0 || now < j.counted {
			x.write(agent, w.Encode())
			x.write(agent, recording.GPUPipes{Begin: w.Begin, End: w.End, Engine: j.resident, Occupancy: nan, FP32: j.fp32, PCIeIn: nan, PCIeOut: nan, NVLinkIn: nan, NVLinkOut: nan}.Encode())
		}
		v := stateOf(0, now+1, now+1000)
		v.Resident = j.resident
		if j.state != nil {
			j.state(&v)
		}
		x.write(agent, v.Encode())
	}
	if j.xid != 0 {
		x.write(agent, recording.GPUEvent{T: at(1000), Code: recording.GPUEventXid, Value: j.xid}.Encode())
	}
	id := x.on(7, 0, "GPU-a")
	x.AddNote(id, recording.LoaderNote{Kind: "torch", Dataset: "D"})
	x.write(id, recording.Iterator{Begin: at(0), End: at(0), Workers: 0, Length: recording.Unknown32, Prefetch: recording.Unknown32}.Encode())
	for b, now := 0, 1.0; ; b++ {
		step := 100.0
		if j.step != nil {
			step = j.step(now)
		}
		if now+step > knownEnd {
			break
		}
		x.fetch(id, 0, first(b), uint32(b), now, now+j.wait)
		now += step
		x.step(id, now)
	}
	return x.run()
}

// slow reports times in which the clock of these tests is held down: every other ten seconds.
func slow(t float64) bool { return math.Mod(t, 20_000) >= 10_000 }

func clockDown(v *recording.GPUState) {
	v.SMClock, v.SMClockMax, v.Power, v.PowerLimit, v.Reasons = 1965e6, 1965e6, 500, 1000, 0
	if slow(float64(v.Begin-start) / ms) {
		v.SMClock, v.Power, v.Reasons = 1580e6, 1000, 4
	}
}

// M8: clocks go from 1965 to 1580 MHz at the power limit. It is a finding if steps take longer meanwhile: 120 ms for 100, so that
// 9.09 of a mean step of 109.09 ms are lost.
func TestAClockHeldDownIsAFindingIfStepsAreSlower(t *testing.T) {
	longer := func(t float64) float64 {
		if slow(t) {
			return 120
		}
		return 100
	}
	busy := knownJob{wait: 0.5, sm: 0.9, resident: 1, tensor: 0.5, fp32: 0.1, state: clockDown}
	same := busy.run(t)
	if has(same, "clock-throttle") || !slices.ContainsFunc(same.Dropped, func(d Dropped) bool { return d.ID == "clock-throttle" }) {
		t.Errorf("steps are as long: %+v, dropped %+v", same.Verdicts, same.Dropped)
	}
	busy.step = longer
	r := busy.run(t)
	i := slices.IndexFunc(r.Verdicts, func(v Verdict) bool { return v.ID == "clock-throttle" })
	if i < 0 || !near(r.Verdicts[i].Share.Or(0), 9.09/109.09, 0.005) {
		t.Fatalf("%+v, dropped %+v", r.Verdicts, r.Dropped)
	}
	if len(r.Fixes) == 0 || r.Fixes[0].ID != "cooling-or-power" || !near(r.Fixes[0].Predicted.StepSeconds.Or(stat.Estimate{}).Value, 0.100, 0.001) {
		t.Errorf("fixes %+v", r.Fixes)
	}
	waits := busy
	waits.wait = 50 // longer than what the clock costs
	if w := waits.run(t); has(w, "clock-throttle") {
		t.Errorf("data is waited for: %+v", w.Verdicts)
	}
	alone := busy
	alone.state = func(v *recording.GPUState) {
		if clockDown(v); v.Reasons == 0 {
			v.Reasons = 1 // it idled whenever somebody looked
		}
	}
	if w := alone.run(t); has(w, "clock-throttle") {
		t.Errorf("no step is known to have run at the full clock: %+v", w.Verdicts)
	}
	idle := busy
	idle.resident = 0.3 // at no look at work
	if w := idle.run(t); has(w, "clock-throttle") {
		t.Errorf("an idle GPU lowers its clock by itself: %+v", w.Verdicts)
	}
}

// Ranks wait for one another, so a clock that is held down on one GPU makes the steps of all longer; the GPU is named.
func TestTheSlowestClockOfSeveralRanksIsNamed(t *testing.T) {
	x := newTape(t)
	x.observe(knownEnd)
	gpus := []string{"GPU-aaaa", "GPU-bbbb"}
	agent := x.agent(recording.GPUNote{UUID: gpus[0], Grade: "A"}, recording.GPUNote{UUID: gpus[1], Grade: "A"})
	for now := 0.0; now < knownEnd; now += 1000 {
		for ref := range uint16(2) {
			w := blankWindow(ref, now, now+1000)
			w.SM, w.Resident = 0.9, 1
			x.write(agent, w.Encode())
			v := stateOf(ref, now+1, now+1000)
			v.Resident, v.Reasons, v.SMClock, v.SMClockMax = 1, 0, 1410e6, 1410e6
			if ref == 1 && slow(now) {
				v.Reasons, v.SMClock = 32, 900e6
			}
			x.write(agent, v.Encode())
		}
	}
	for n, uuid := range gpus {
		id := x.on(7+n, n, uuid)
		for b, now := 0, 1.0; ; b++ {
			step := 100.0
			if slow(now) {
				step = 130
			}
			if now+step > knownEnd {
				break
			}
			x.fetch(id, 0, first(b), uint32(b), now, now+0.5)
			now += step
			x.step(id, now)
		}
	}
	r := x.run()
	i := slices.IndexFunc(r.Verdicts, func(v Verdict) bool { return v.ID == "clock-throttle" })
	if i < 0 || !strings.Contains(r.Verdicts[i].Title, "Temperature holds the clock of GPU bbbb down for 50 %") || !strings.Contains(r.Verdicts[i].Title, "30 % longer") {
		t.Errorf("%+v, dropped %+v", r.Verdicts, r.Dropped)
	}
}

// M1 (F61): GPU-util reads 100 and SM activity 0.10 at 35 % of the power limit: kernels are too small, the GPU is not well used. With
// data waited for, that is what is said first.
func TestBusyButEmptyIsLaunchBound(t *testing.T) {
	j := knownJob{wait: 0.5, sm: 0.10, resident: 1, tensor: nan, fp32: nan, state: func(v *recording.GPUState) { v.Power, v.PowerLimit, v.Reasons = 140, 400, 0 }}
	r := j.run(t)
	if len(r.Verdicts) == 0 || r.Verdicts[0].ID != "launch-bound" {
		t.Fatalf("%+v, dropped %+v", r.Verdicts, r.Dropped)
	}
	if !slices.ContainsFunc(r.Verdicts[0].Evidence, func(e Evidence) bool { return e.Metric == "power_of_limit" && near(e.Value, 0.35, 1e-6) }) {
		t.Errorf("evidence %+v", r.Verdicts[0].Evidence)
	}
	j.sm = 0.3
	if r := j.run(t); has(r, "launch-bound") {
		t.Errorf("SM activity 0.3: %+v", r.Verdicts)
	}
	j.sm, j.counted = 0.10, knownEnd/2-5000 // a source that died says nothing of the rest
	if r := j.run(t); has(r, "launch-bound") {
		t.Errorf("counted for less than half of the time: %+v", r.Verdicts)
	}
	j.counted = knownEnd/2 + 5000
	if r := j.run(t); !has(r, "launch-bound") {
		t.Errorf("counted for more than half of the time: %+v, dropped %+v", r.Verdicts, r.Dropped)
	}
	j.counted, j.wait = 0, 60
	if r := j.run(t); has(r, "launch-bound") || len(r.Verdicts) == 0 || r.Verdicts[0].ID != "too-few-workers" {
		t.Errorf("60 %% waited: %+v", r.Verdicts)
	}
}

// Tensor pipes idle beside a busy FP32 pipe: mixed precision may help; not where they are in use, nor where data is waited for.
func TestMixedPrecisionIsAdvisedForWhatPipesShow(t *testing.T) {
	for name, c := range map[string]struct {
		tensor, fp32 float32
		wait         float64
		advised      bool
	}{"idle": {0.01, 0.6, 0.5, true}, "in use": {0.3, 0.1, 0.5, false}, "waits": {0.01, 0.6, 60, false}} {
		r := knownJob{wait: c.wait, sm: 0.9, resident: 1, tensor: c.tensor, fp32: c.fp32}.run(t)
		i := slices.IndexFunc(r.Unpriced, func(u Unpriced) bool { return u.ID == "mixed-precision" })
		if (i >= 0) != c.advised || c.advised && !strings.Contains(r.Unpriced[i].Reason, "FP32 pipe for 60 %") {
			t.Errorf("%s: %+v", name, r.Unpriced)
		}
	}
}

// A second GPU that is assigned to the job and that no rank uses is a finding beside a job that trains, with its hours.
func TestAnAssignedGPUWithoutARankIsIdle(t *testing.T) {
	for name, sm := range map[string]float32{"idle": 0, "its counters have stopped": -1} {
		x := newTape(t)
		x.observe(knownEnd)
		agent := x.agent(recording.GPUNote{UUID: "GPU-a", Grade: "A"}, recording.GPUNote{UUID: "GPU-b", Grade: "A"})
		for _, uuid := range []string{"GPU-a", "GPU-b"} {
			x.AddNote(agent, recording.AllocationNote{T: start, UUID: uuid, By: recording.AllocatedBySlurm, Holders: []recording.Holder{{Job: "9"}}})
		}
		for now := 0.0; now < knownEnd; now += 1000 {
			for ref := range uint16(2) {
				w := blankWindow(ref, now, now+1000)
				w.SM, w.Resident = 0.9, 1
				if ref == 1 {
					w.SM, w.Resident = 0, 0
					if sm < 0 {
						w.Resident = 1 // and SM activity 0: it cannot be
					}
				}
				x.write(agent, w.Encode())
			}
		}
		x.train(x.on(7, 0, "GPU-a"), knownEnd, 100, 0.5)
		r := x.run()
		i := slices.IndexFunc(r.Verdicts, func(v Verdict) bool { return v.ID == "idle-allocated" })
		if (i >= 0) != (sm == 0) || has(r, "metric-untrusted") == (sm == 0) {
			t.Errorf("%s: %+v", name, r.Verdicts)
		}
		if i >= 0 && !near(r.Verdicts[i].Share.Or(0), 0.5, 1e-6) {
			t.Errorf("%s: share %v", name, r.Verdicts[i].Share)
		}
		if released := slices.ContainsFunc(r.Unpriced, func(u Unpriced) bool { return u.ID == "release-gpu" }); released != (sm == 0) {
			t.Errorf("%s: %+v", name, r.Unpriced)
		}
	}
}
