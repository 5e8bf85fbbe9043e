//go:build linux && cgo

package dcgm

import (
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/probe/gpu/standin"
	"github.com/datawait/datawait/probe/recording"
)

// breaking is an engine that ends, hangs or forgets while it is read.
var breaking = []behaviour{
	{"engine-killed", "an engine that dies is told and counted again when it is back", one + "dead at=1500ms for=500ms\n", plan{For: 6 * time.Second},
		func(t *testing.T, o standin.Outcome) {
			says(t, troubles(o), "the connection to the host engine is lost")
			working(t, o, 0, 25)
			if e := o.Events(); len(e) != 1 || e[0].Code != recording.GPUEventRestated {
				t.Errorf("events %+v", e)
			}
			quiet(t, o, len(o.Polls)-3)
		}},
	{"engine-killed", "an engine that is back by the next poll is counted from there on", one + "dead at=1s for=500ms\n", plan{For: 5 * time.Second, Every: 2500 * time.Millisecond},
		func(t *testing.T, o standin.Outcome) {
			says(t, troubles(o), "the connection to the host engine is lost")
			working(t, o, 0, 18)
		}},
	{"engine-killed", "an engine that stays away is told for as long", one + "dead at=1s\n", plan{For: 4 * time.Second},
		func(t *testing.T, o standin.Outcome) {
			last := o.Polls[len(o.Polls)-1]
			says(t, last.Error, "connection") // at its door: the test listens, and no engine
			if len(last.Windows) > 0 {
				t.Errorf("windows of a dead engine: %+v", last.Windows)
			}
		}},
	{"second-init", "each loss makes a new connection and not a second one", one + "dead at=1s for=300ms\ndead at=4s for=300ms\n", plan{For: 7500 * time.Millisecond},
		func(t *testing.T, o standin.Outcome) {
			if e := o.Events(); len(e) != 2 {
				t.Errorf("events %+v", e)
			}
			working(t, o, 0, 25)
			quiet(t, o, len(o.Polls)-3)
		}},
	{"hung-after", "an engine that hangs is told, and its samples come later", one + "hang call=dcgmGetValuesSince_v2 at=1500ms for=2500ms\n",
		plan{For: 8 * time.Second, Options: Options{Patience: time.Second}},
		func(t *testing.T, o standin.Outcome) {
			says(t, troubles(o), "the host engine does not answer")
			working(t, o, 0, 25)
			quiet(t, o, len(o.Polls)-2)
		}},
	{"field-not-watched", "a watch that is gone is made anew", one + "fail call=dcgmGetValuesSince_v2 code=-16 at=1s for=1s\n", plan{For: 5 * time.Second},
		func(t *testing.T, o standin.Outcome) {
			says(t, troubles(o), "-16")
			working(t, o, 0, 20)
			quiet(t, o, len(o.Polls)-3)
		}},
	{"engine-killed", "a group that the engine has forgotten is made anew", one + "fail call=dcgmGetValuesSince_v2 code=-5 at=1s for=1s\n", plan{For: 5 * time.Second},
		func(t *testing.T, o standin.Outcome) { working(t, o, 0, 20); quiet(t, o, len(o.Polls)-3) }},
	{"gpu-lost", "a GPU that falls off the bus is lost and not idle", one + standin.A100(1, "sm=0.5 resident=1") + "gone gpu=1 at=1s\n", plan{For: 4 * time.Second},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 0, 20)
			says(t, why(o, 1), "the GPU is lost")
			for _, w := range o.Windows(1) {
				if sm, known := w.Values["sm"]; known && sm != 0.5 {
					t.Errorf("a lost GPU reads %v", sm)
				}
			}
		}},
	{"gpu-lost", "one that is gone when the engine is back stays on the list", one + standin.A100(1, "sm=0.5 resident=1") +
		"dead at=1s for=300ms\nno-device gpu=1 at=1s\n", plan{For: 4 * time.Second},
		func(t *testing.T, o standin.Outcome) {
			working(t, o, 0, 15)
			says(t, why(o, 1), "does not list this GPU any more")
		}},
	{"counting-stops", "a GPU that is not counted any more is stale and not as before", one + "frozen gpu=0 at=1s\n", plan{For: 6 * time.Second},
		func(t *testing.T, o standin.Outcome) {
			if reason := why(o, 0); !strings.Contains(reason, "no fresh sample") && !strings.Contains(reason, "no sample of SM activity") {
				t.Errorf("reason %q", reason)
			}
			for _, w := range o.Windows(0) {
				if w.End-w.Begin > 200e6 {
					t.Errorf("a window claims the time without samples: %+v", w)
				}
			}
		}},
}
