//go:build linux && cgo

package nvml

import (
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
)

func TestGPMCountsOnHopper(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.H100(0, "sm=0.5 tensor=0.25 resident=1")+standin.A100(1, "sm=1"), plan{GPM: true, For: 1500 * time.Millisecond, Every: 500 * time.Millisecond})
	windows := o.Windows(0)
	if len(windows) < 6 || o.Devices[0].Missing != "" || o.Devices[1].Missing == "" || len(o.Windows(1)) != 0 {
		t.Fatalf("%d windows of %+v", len(windows), o.Devices)
	}
	for i, w := range windows {
		if w.Values["sm"] != 0.5 || w.Values["tensor"] != 0.25 || w.End-w.Begin < 100e6 || w.Flags != 0 {
			t.Errorf("window %+v", w)
		}
		if i > 0 && w.Begin != windows[i-1].End {
			t.Errorf("a gap between %+v and %+v", windows[i-1], w)
		}
	}
}

// TestGPMLeavesAloneWhatOthersCount: beside a watch of DCGM both would read wrongly. The stand-in ends the process if it is touched.
func TestGPMLeavesAloneWhatOthersCount(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.H100(0, "sm=0.5 gpm-forbidden=1")+standin.H100(1, "sm=0.25"), plan{GPM: true, For: 1500 * time.Millisecond, Every: 500 * time.Millisecond, Use: []uint16{1}})
	if len(o.Windows(1)) < 5 || len(o.Windows(0)) != 0 {
		t.Errorf("%d and %d windows", len(o.Windows(0)), len(o.Windows(1)))
	}
}

func TestAGPUWhoseCountersAreRefusedSaysWhy(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.H100(0, "sm=0.5")+"fail call=nvmlGpmSampleGet code=4\n", plan{GPM: true, For: 900 * time.Millisecond, Every: 300 * time.Millisecond})
	told := ""
	for _, p := range o.Polls {
		for _, f := range p.Failures {
			told = f.Why
		}
	}
	says(t, told, "NVML's counters", "Insufficient Permissions")
	if len(o.Windows(0)) != 0 {
		t.Errorf("windows %+v", o.Windows(0))
	}
}

// TestAfterAFailureNoWindowReachesBackOverIt: the samples before it are of a GPU that may have been reset.
func TestAfterAFailureNoWindowReachesBackOverIt(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.H100(0, "sm=0.5")+"fail call=nvmlGpmSampleGet code=15 at=1s for=700ms\n", plan{GPM: true, For: 3 * time.Second, Every: 300 * time.Millisecond})
	windows := o.Windows(0)
	if len(windows) < 10 {
		t.Errorf("%d windows", len(windows))
	}
	for _, w := range windows {
		if w.Values["sm"] != 0.5 || w.End-w.Begin > 450e6 {
			t.Errorf("window %+v", w)
		}
	}
}

func TestTheSlicesOfAHopperAreCountedThroughIt(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.H100(0, "mig=1")+"gi id=10 gpu=0 gi=1\nci id=20 in=10 ci=0 uuid=MIG-a sm=0.5 resident=1\ngi id=11 gpu=0 gi=2\nci id=21 in=11 ci=0 uuid=MIG-b sm=0.25 resident=1\n",
		plan{GPM: true, For: 1500 * time.Millisecond, Every: 500 * time.Millisecond})
	for ref, sm := range []float64{0.5, 0.25} {
		windows := o.Windows(uint16(ref))
		if len(windows) < 5 {
			t.Errorf("slice %d has %d windows", ref, len(windows))
		}
		for _, w := range windows {
			if w.Values["sm"] != sm {
				t.Errorf("slice %d: %+v", ref, w)
			}
		}
	}
}

// The driver's counters are of a GPU instance: of two compute instances in one, none has them for itself.
func TestAComputeInstanceBesideAnotherIsNotCounted(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.H100(0, "mig=1")+"gi id=10 gpu=0 gi=1\nci id=20 in=10 ci=0 uuid=MIG-a sm=0.5 resident=1\nci id=21 in=10 ci=1 uuid=MIG-b sm=0.25 resident=1\n"+
		"gi id=11 gpu=0 gi=2\nci id=22 in=11 ci=0 uuid=MIG-c sm=0.75 resident=1\n", plan{GPM: true, For: time.Second, Every: 500 * time.Millisecond})
	for ref := range uint16(2) {
		says(t, o.Devices[ref].Missing, "several compute instances")
		if w := o.Windows(ref); len(w) > 0 {
			t.Errorf("slice %d: %+v", ref, w)
		}
	}
	if len(o.Windows(2)) < 3 {
		t.Errorf("the one beside has %d windows", len(o.Windows(2)))
	}
}

// A call that hangs holds up the counting and nothing else, and is told.
func TestCountersThatHangAreTold(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.H100(0, "sm=0.5")+"hang call=nvmlGpmSampleGet at=1s\n", plan{GPM: true, For: 5 * time.Second, Every: 500 * time.Millisecond})
	last := o.Polls[len(o.Polls)-1]
	says(t, last.Error, "the driver does not answer")
	if last.Took > time.Second || o.CloseTook > 5*time.Second || len(o.Windows(0)) == 0 {
		t.Errorf("a poll took %v, the end %v, %d windows", last.Took, o.CloseTook, len(o.Windows(0)))
	}
}

func TestWhereNoGPUHasCountersOfItsOwnGPMIsNoSource(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5"), plan{GPM: true, For: time.Second, Every: 300 * time.Millisecond})
	says(t, o.OpenError, "they came with Hopper")
}
