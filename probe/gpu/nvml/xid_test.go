//go:build linux && cgo

package nvml

import (
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
	"github.com/datawait/datawait/probe/recording"
)

// TestWaitingForErrorsHoldsNothingUp: the call that waits blocks in the driver, here for ever.
func TestWaitingForErrorsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5")+"hang call=nvmlEventSetWait_v2\n", short())
	for i, p := range o.Polls {
		if p.Took > 500*time.Millisecond || len(p.States) != 1 {
			t.Errorf("poll %d took %v and has %d states", i, p.Took, len(p.States))
		}
	}
	if o.CloseTook > 3*time.Second {
		t.Errorf("closing took %v", o.CloseTook)
	}
}

// TestTheErrorThatTakesAGPUAlongIsTold: Xid 79 comes as the GPU falls off the bus, and nothing can be asked of it then.
func TestTheErrorThatTakesAGPUAlongIsTold(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5")+standin.A100(1, "sm=0.5")+"gone gpu=1 at=700ms\nxid gpu=1 code=79 at=700ms\n", plan{For: 1800 * time.Millisecond, Every: 300 * time.Millisecond})
	told := false
	for _, e := range o.Events() {
		told = told || e.Ref == 1 && e.Code == recording.GPUEventXid && e.Value == 79
	}
	if !told {
		t.Errorf("events %+v", o.Events())
	}
}

// TestAfterWaitingFailedItGoesOn: a GPU that is lost makes it fail, and another may have an error later.
func TestAfterWaitingFailedItGoesOn(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "sm=0.5")+"fail call=nvmlEventSetWait_v2 code=15 at=300ms for=300ms\nxid gpu=0 code=48 at=2s\n", plan{For: 3500 * time.Millisecond, Every: 300 * time.Millisecond})
	if e := o.Events(); len(e) != 1 || e[0].Value != 48 {
		t.Errorf("events %+v", e)
	}
}

func TestAFloodOfErrorsTakesNoMemory(t *testing.T) {
	x := &xids{}
	for i := range 10 * mostXids {
		x.add(recording.GPUEvent{Value: uint64(i)})
	}
	if n := len(x.take()); n != mostXids {
		t.Errorf("%d errors were kept", n)
	}
	if x.add(recording.GPUEvent{}); len(x.take()) != 1 {
		t.Error("nothing is taken after a flood")
	}
}
