package live

import (
	"fmt"
	"math"
	"testing"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/probe/recording"
)

// An exporter that another program asks collects every 30 s, and a window is told when it is over: later than everything else. Its
// seconds are seen all the same, and only those in which the tenant had the GPU are the tenant's.
func TestCoarseWindowsCoverWhatTheyShow(t *testing.T) {
	for _, length := range []float64{1, 5, 10, 30, 60} {
		for _, ends := range []float64{200, 207.5, 229.9} {
			t.Run(fmt.Sprintf("windows of %v s, an end at %v", length, ends), func(t *testing.T) {
				m := newMachine(t, 0) // whose lag is 2 s
				m.gpu(0, "GPU-a")
				var p *proc
				nan := float32(math.NaN())
				var x []Tenancy
				var last Tenancy
				told, step, alive := 0.0, 10.0, true
				for now := 1.0; now < 600; now++ {
					if now == 11 {
						p = m.train(7, "train.py", "GPU-a", 10)
					}
					if told+length < now {
						m.ok(m.agent.Append(recording.GPU{Flags: recording.GPUHeldKnown | recording.GPUHeld, Begin: at(told), End: at(told + length), SM: 0.5, Resident: 0.9,
							Tensor: nan, DRAM: nan, Copy: nan, Power: nan, SMClock: nan, Memory: nan}.Encode()))
						told += length
					}
					for ; p != nil && step+1 < now && step+1 < ends; step++ {
						p.steps(step, 1, 0.5, 0.5, 0)
					}
					if alive && now > ends {
						alive = false
						p.end(ends)
					}
					m.Tick(at(now))
					if x = m.Snapshot().Tenancies; len(x) == 1 {
						last = x[0]
					}
				}
				if len(x) != 0 {
					t.Errorf("a row stays 100 s after its end: %+v", x)
				}
				unseen := 2*length + 1 // before it is known how late they come
				held := ends - 10
				near(t, "allocated", uint64(last.Books.Allocated), held)
				if got := last.Activity.SMSeen; got > held+1e-6 || got < held-unseen {
					t.Errorf("SM activity was seen for %v s of %v", got, held)
				}
				if got := float64(last.Books.Covered) / 1e9; got > held+1e-6 || got < held-unseen {
					t.Errorf("%v s of %v are covered", got, held)
				}
				if got := float64(last.Books.NS[ledger.Unattributed]-last.Books.WaitUpperBound) / 1e9; got > unseen {
					t.Errorf("of %v s nobody knows anything", got)
				}
			})
		}
	}
}

// A window that begins before what was booked and ends after it is no exception: the tenant that leaves within it has no more of it than it was there.
func TestAWindowThatOverlapsIsNotCountedPastTheEnd(t *testing.T) {
	m := newMachine(t, 0)
	m.gpu(0, "GPU-a")
	p := m.train(7, "train.py", "GPU-a", 1)
	m.Tick(at(2))
	p.steps(2, 18, 0.5, 0.5, 0)
	m.windows(0, 0, 10, 0.9, 0.5, recording.GPUHeldKnown|recording.GPUHeld)
	m.Tick(at(13))
	nan := float32(math.NaN())
	m.ok(m.agent.Append(recording.GPU{Flags: recording.GPUHeldKnown | recording.GPUHeld, Begin: at(8), End: at(40), SM: 0.5, Resident: 0.9, Tensor: nan, DRAM: nan, Copy: nan,
		Power: nan, SMClock: nan, Memory: nan}.Encode()))
	for now := 14.0; now < 20; now++ {
		m.Tick(at(now))
	}
	p.end(20)
	for now := 20.0; now < 60; now++ {
		m.Tick(at(now))
	}
	if x := m.tenancyOf("GPU-a", "train.py"); x.Activity.SMSeen > float64(x.Books.Allocated)/1e9 {
		t.Errorf("SM activity was seen for %v s, and the GPU allocated for %v", x.Activity.SMSeen, float64(x.Books.Allocated)/1e9)
	}
}
