//go:build linux && cgo

package dcgm

import (
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
)

// refusing is what the engine does not do for us.
var refusing = []behaviour{
	refusal("module-not-loaded", "-33", "groups", "a profiling module that is not installed is named, and what to restart", "datacenter-gpu-manager-4-proprietary", "restart the nvidia-dcgm service"),
	refusal("module-not-loaded", "-33", "watch", "a profiling module that does not load is named as well", "datacenter-gpu-manager-4-proprietary"),
	refusal("not-supported", "-36", "watch", "a GPU without profiling counters is called that", "no profiling counters"),
	refusal("owned", "-37", "watch", "counters that somebody else has are called that", "somebody else owns the counters", "Nsight"),
	refusal("multi-pass", "-38", "watch", "metrics that other clients exclude are called that", "other clients of this engine"),
	refusal("non-root", "-29", "watch", "an engine without root is told to have it", "as root"),
	refusal("paused", "-54", "watch", "a pause is told with what ends it", "dcgmi profile --resume"),
	{"module-not-loaded", "what one model is refused the other still has", one + hopper(1, "sm=0.5 resident=1") + "no-profiling when=watch code=-33 gpu=0\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 1, 5)
			says(t, missing(o, 0), "profiling module")
			says(t, why(o, 0), "profiling module")
		}},
	{"not-supported", "what one GPU is refused its twin still has", one + standin.A100(1, "sm=0.5 resident=1") + "no-profiling when=watch code=-36 gpu=0\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 1, 5)
			says(t, missing(o, 0), "no profiling counters")
		}},
	{"not-supported", "a GPU without SM activity among its metrics is not counted", standin.A100(0, "sm=0.5") + "group major=0 minor=0 fields=1001,1004\n", plan{},
		func(t *testing.T, o standin.Outcome) { says(t, missing(o, 0), "does not count SM activity") }},
	{"unknown-gpu", "a GPU that cannot be added does not take the others along", one + standin.A100(1, "sm=0.5 resident=1") + "no-group gpu=0\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 1, 5)
			says(t, missing(o, 0), "Bad parameter")
		}},
	{"unknown-field", "a plain field that the engine does not know leaves the counters", one + "no-field id=155\n", plan{},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 0, 5)
			for _, w := range o.Windows(0) {
				if power, known := w.Values["power"]; known {
					t.Errorf("power %v from nowhere", power)
				}
			}
		}},
	{"name-taken", "names that other clients have are passed over", one + "taken first=3\n", plan{},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 5) }},
	{"shared-interval", "a window shorter than DCGM measures is refused", one, plan{Options: Options{Interval: 50 * time.Millisecond}},
		func(t *testing.T, o standin.Outcome) { says(t, o.OpenError, "50ms is shorter than 100ms") }},
}

func refusal(row, code, when, sentence string, words ...string) behaviour {
	return behaviour{row, sentence, one + "no-profiling when=" + when + " code=" + code + "\n", plan{For: 700 * time.Millisecond},
		func(t *testing.T, o standin.Outcome) {
			if o.OpenError != "" || len(o.Devices) != 1 || len(o.Windows(0)) != 0 {
				t.Fatalf("%q, %+v, %+v", o.OpenError, o.Devices, o.Windows(0))
			}
			says(t, missing(o, 0), words...)
		}}
}

func hopper(id int, more string) string { return standin.H100(id, more) }
