package analysis

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/datawait/datawait/analysis/internal/simulate"
	"github.com/datawait/datawait/probe/recording"
)

// dense is a recording as a disk gives it: frames of many records each.
type dense struct {
	manifest recording.Manifest
	declared []recording.Stream
	streams  [][]recording.Record
	records  int
}

func densify(m *recording.Memory) *dense {
	d := &dense{manifest: m.Manifest(), declared: m.Streams(), streams: make([][]recording.Record, len(m.Streams())+1)}
	_ = m.Scan(func(id recording.StreamID, r []recording.Record) error {
		d.streams[id] = append(d.streams[id], r...)
		d.records += len(r)
		return nil
	})
	return d
}

func (d *dense) Manifest() recording.Manifest { return d.manifest }
func (d *dense) Streams() []recording.Stream  { return d.declared }
func (d *dense) Damage() recording.Damage     { return recording.Damage{} }

func (d *dense) Stream(id recording.StreamID, visit func([]recording.Record) error) (recording.Damage, error) {
	const frame = 2048
	records := d.streams[id]
	for at := 0; at < len(records); at += frame {
		if err := visit(records[at:min(at+frame, len(records))]); err != nil {
			return recording.Damage{}, err
		}
	}
	return recording.Damage{}, nil
}

// BenchmarkRun analyses a job of sixteen ranks, with everything the hook and the agent write of it.
func BenchmarkRun(b *testing.B) {
	const ranks, epochs, steps = 16, 10, 6000
	m, _ := simulate.Job{Ranks: ranks, Epochs: epochs, Steps: steps, Workers: 4, Prefetch: 2, Build: jittery(100 * ms), Start: 50 * ms,
		Handoff: ms / 5, Compute: 20 * ms, Depth: 1, Host: ms, SM: 0.8, Window: 1000 * ms}.Play()
	d := densify(m)
	m = nil // a million small blocks would keep the collector busy
	runtime.GC()
	b.ReportAllocs()
	before := cpuSeconds()
	b.ResetTimer()
	for range b.N {
		if _, err := Run([]recording.Reader{d}, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	spent := cpuSeconds() - before // of a core: the machine may be shared
	b.ReportMetric(float64(d.records)*float64(b.N)/spent/1e6, "Mrecords/cpu-s")
	b.ReportMetric(ranks*epochs*steps*float64(b.N)/spent/1e6, "Msteps/cpu-s")
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
