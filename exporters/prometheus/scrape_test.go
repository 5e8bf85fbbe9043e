package prometheus

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/unit"
)

const second = uint64(time.Second)

// target is an agent that a test scrapes: it sets the snapshot, and reads what is shown.
type target struct {
	t         testing.TB
	snapshot  *live.Snapshot
	agent     Agent
	collector *Collector
	registry  *client.Registry
}

func newTarget(t testing.TB, o Options) *target {
	x := &target{t: t, agent: Agent{Version: "1.2.3", Started: time.Unix(1_700_000_000, 0)}}
	o.Snapshot = func() *live.Snapshot { return x.snapshot }
	o.Agent = func() Agent { return x.agent }
	o.Unix = func(mono uint64) float64 { return 1_700_000_000 + seconds(mono) }
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	x.collector = New(o)
	// A pedantic registry holds every series to its descriptor, beside what every registry checks.
	x.registry = client.NewPedanticRegistry()
	if err := x.registry.Register(x.collector); err != nil {
		t.Fatal(err)
	}
	return x
}

// scrape returns every series with its value: "name{label="value",…}".
func (x *target) scrape() map[string]float64 {
	x.t.Helper()
	families, err := x.registry.Gather()
	if err != nil {
		x.t.Fatal("a scrape failed:", err)
	}
	return flat(families)
}

// at scrapes with a snapshot of so many seconds after boot.
func (x *target) at(s uint64, snapshot live.Snapshot) map[string]float64 {
	x.t.Helper()
	snapshot.At = s * second
	x.snapshot = &snapshot
	return x.scrape()
}

// flat turns families into series as a server stores them.
func flat(families []*dto.MetricFamily) map[string]float64 {
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				out[series(f.GetName(), m.Label)] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				out[series(f.GetName(), m.Label)] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				h := m.Histogram
				out[series(f.GetName()+"_count", m.Label)] = float64(h.GetSampleCount())
				out[series(f.GetName()+"_sum", m.Label)] = h.GetSampleSum()
				for _, b := range h.Bucket {
					out[series(f.GetName()+"_bucket", m.Label, fmt.Sprintf("le=%g", b.GetUpperBound()))] = float64(b.GetCumulativeCount())
				}
				out[series(f.GetName()+"_bucket", m.Label, "le=+Inf")] = float64(h.GetSampleCount())
			}
		}
	}
	return out
}

// series names one, with the labels that are not empty.
func series(name string, labels []*dto.LabelPair, more ...string) string {
	for _, l := range labels {
		if l.GetValue() != "" {
			more = append(more, strings.TrimPrefix(l.GetName(), "training_")+"="+l.GetValue())
		}
	}
	return name + "{" + strings.Join(more, " ") + "}"
}

func expect(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if w, ok := got[name]; !ok {
			t.Errorf("%s is not shown", name)
		} else if w != v {
			t.Errorf("%s = %v, want %v", name, w, v)
		}
	}
}

func absent(t *testing.T, got map[string]float64, names ...string) {
	t.Helper()
	for _, name := range names {
		if v, ok := got[name]; ok {
			t.Errorf("%s = %v is shown", name, v)
		}
	}
}

// named returns the series of a name.
func named(got map[string]float64, name string) (names []string) {
	for s := range maps.Keys(got) {
		if strings.HasPrefix(s, name+"{") {
			names = append(names, s)
		}
	}
	slices.Sort(names)
	return names
}

// node is a machine on which every rank trains on a GPU of its own as far as there are enough, and jobs have eight ranks each. Each
// counter holds what n seconds bring it to.
func node(gpus, ranks int, n uint64) live.Snapshot {
	s := live.Snapshot{At: n * second, Machine: live.Machine{Cores: unit.Some(64.0), BusyCores: unit.Some(12.5), RunnableTasks: unit.Some(14.0), MemoryAvailable: unit.Some(uint64(1 << 38))}}
	for i := range gpus {
		s.GPUs = append(s.GPUs, live.GPU{UUID: uuid(i), Name: "NVIDIA A100-SXM4-80GB", Source: "dcgm", Grade: "A", Index: unit.Some(int64(i)), Window: s.At - second/2, Assigned: unit.Some(true)})
		tenant := jobOf(i)
		s.Holders = append(s.Holders, live.Holder{GPU: uuid(i), Tenant: tenant})
		s.Tenancies = append(s.Tenancies, live.Tenancy{GPU: uuid(i), Tenant: tenant, Running: true, Books: books(n), Activity: activity(n)})
	}
	for i := range ranks {
		r := training(n)
		r.Tenant, r.Rank, r.GPU, r.LastMoved = jobOf(i), unit.Some(i), uuid(i%max(gpus, 1)), s.At
		s.Ranks = append(s.Ranks, r)
		if i%8 == 0 {
			j := live.Job{Tenant: jobOf(i), Running: true, UsableCores: unit.Some(8.0), ThrottledTime: unit.Some(n * second / 10)}
			for k := range n * 5 {
				j.StepTimes.Add(0.15 + float64(k%64)/1000)
			}
			s.Jobs = append(s.Jobs, j)
		}
	}
	return s
}

func uuid(i int) string { return fmt.Sprintf("GPU-5a3f9c1e-77d2-4b1e-9d3e-%012d", i) }

func jobOf(rank int) live.Tenant {
	return live.Tenant{Job: fmt.Sprintf("resnet50-imagenet-%d", rank/8), Namespace: "research", Pod: fmt.Sprintf("resnet50-imagenet-%d-worker-0", rank/8)}
}

// books is a ledger after n seconds: a tenth of it waited for data, the rest computed.
func books(n uint64) (t ledger.Totals) {
	t.NS[ledger.ExposedWait], t.NS[ledger.Compute] = int64(n*second/10), int64(n*second*9/10)
	t.Allocated, t.Covered = int64(n*second), int64(n*second)
	return t
}

func activity(n uint64) live.Activity {
	s := float64(n)
	return live.Activity{Resident: s * 0.9, ResidentSeen: s, SMActive: s * 0.8, SMSeen: s, TensorActive: s * 0.4, TensorSeen: s, Held: s, HeldSeen: s}
}

// training is a rank after n seconds of five steps each.
func training(n uint64) live.Rank {
	return live.Rank{WorldSize: unit.Some(64), Running: true, Steps: 5 * n, Fetches: 5 * n, Epochs: 1, Training: n * second, Wait: n * second / 10, WaitClocked: n * second / 10,
		Exposed: n * second / 20, HandOff: n * second / 100, HandOffSeen: n * second / 10, EpochStart: n * second / 50, Validation: n * second / 60, Checkpoint: n * second / 70,
		Workers: live.Workers{Running: 8, Batches: 5 * n, Build: n * second, CPU: n * second / 2, CPUSeen: n * second, RunQueue: n * second / 8, QueueSeen: n * second,
			OffCPU: n * second / 4, Files: 640 * n, Requests: n, IOSeen: 5 * n, ReadBytes: n << 20, ReadSeen: 5 * n},
		Hook: live.Hook{Records: 40 * n, OwnTime: n * second / 1000, Looks: n}}
}
