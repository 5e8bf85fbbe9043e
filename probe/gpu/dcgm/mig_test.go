//go:build linux && cgo

package dcgm

import (
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// mig is an A100 cut in two, beside a whole one.
const mig = "gi id=10 gpu=0 gi=1 slices=3\nci id=20 in=10 ci=0 uuid=MIG-a sm=0.5 resident=1\ngi id=11 gpu=0 gi=2 slices=4\nci id=21 in=11 ci=0 uuid=MIG-b sm=1.3 resident=1\n"

func TestTheSlicesOfAGPUAreCountedAndNotTheirGPU(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "mig=1")+standin.A100(1, "sm=0.5 resident=1")+mig+standin.Groups, plan{For: 2 * time.Second, Every: 300 * time.Millisecond})
	if len(o.Devices) != 3 {
		t.Fatalf("%+v", o.Devices)
	}
	for i, gi := range []int{1, 2} {
		if d := o.Devices[i]; d.Parent != standin.UUID(0) || d.UUID != "" || d.GI != gi || d.CI != 0 || d.Missing != "" {
			t.Errorf("slice %+v", d)
		}
	}
	if d := o.Devices[2]; d.UUID != standin.UUID(1) || d.Parent != "" || d.GI != -1 {
		t.Errorf("whole GPU %+v", d)
	}
	working(t, o, 0, 5)
	working(t, o, 2, 5)
	for _, w := range o.Windows(0) {
		for _, name := range []string{"power", "clock", "memory"} { // of the whole GPU, not of a slice
			if v, known := w.Values[name]; known {
				t.Errorf("a slice has %s %v", name, v)
			}
		}
	}
}

// TestASliceThatReadsAboveOneIsNotTrusted: NVIDIA/DCGM issue 152.
func TestASliceThatReadsAboveOneIsNotTrusted(t *testing.T) {
	t.Parallel()
	o := sampled(t, standin.A100(0, "mig=1")+mig+standin.Groups, plan{For: 1500 * time.Millisecond, Every: 300 * time.Millisecond})
	working(t, o, 0, 5)
	if windows := o.Windows(1); len(windows) < 5 {
		t.Errorf("%d windows", len(windows))
	}
	for _, w := range o.Windows(1) {
		if w.Flags == 0 {
			t.Errorf("trusted: %+v", w)
		}
	}
	says(t, why(o, 1), "a ratio above 1")
}
