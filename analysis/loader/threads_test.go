package loader_test

import (
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/probe/unit"
)

// TestHelperThreads: S07 as it ran on one of two cores: 63 helper threads in each of two workers. A build of 226 ms is 99 ms off the CPU, and
// one alone 48 of 126: that is no latency and no lock, for the threads of one worker keep the core busy for 118 ms of those 126.
func TestHelperThreads(t *testing.T) {
	p := scenario.Job{W: 2, K: 1, Burn: 0.118, Device: 0.0107, Floor: 0.0015, Solo: true}.Parameters()
	p.Step.Seconds, p.Step.Wait = est(0.1196), est(0.101)
	p.Batch.Wall, p.Batch.CPU, p.Batch.OffCPU, p.Batch.RunQueue = est(0.2257), est(0.008), est(0.0985), unit.Some(0.1179)
	p.Batch.ProcessCPU, p.Host.ThreadsPerWorker, p.Batch.Sleeps = unit.Some(0.1179), unit.Some(64), unit.Some(3465.0)
	p.Solo.Wall, p.Solo.OffCPU = est(0.1257), est(0.0478)
	m := loader.New(p)
	near(t, "off the CPU for anything else", m.Law.Off, 0.1257-0.1179)
	if !m.Trusted || !(m.Error.Or(1) < 0.03) || m.Law.Shared > 0 || m.Law.Binding() != loader.ByCores || !m.OnlyWake() {
		t.Errorf("trusted %v (%s), off by %v, bound by %s, only wake %v: %+v", m.Trusted, m.Reason, m.Error, m.Law.Binding(), m.OnlyWake(), m.Law)
	}
	p.Batch.Sleeps = unit.Some(400.0)
	if m := loader.New(p); m.OnlyWake() {
		t.Error("275 µs of CPU each time a thread is woken are work")
	}
	p.Host.ThreadsPerWorker = unit.Some(1) // then the same times are a lock or a disk
	if m := loader.New(p); m.Law.Off < 0.047 {
		t.Errorf("%+v", m.Law)
	}
	p.Host.ThreadsPerWorker, p.Solo = unit.Some(64), loader.SoloCosts{}
	m = loader.New(p)
	faster := m.Predict(func(l loader.Law) loader.Law { l.CPU, l.Work = 0.01, 0.01; return l })
	if faster.Low > 0.0125 || faster.High < 0.048 {
		t.Errorf("no build alone: what the building thread waits for is not known, %+v", faster)
	}
}
