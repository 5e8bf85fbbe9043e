package prometheus

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/unit"
)

const (
	steps     = "datawait_steps_total{rank=0 job=a}"
	allocated = "datawait_gpu_allocated_seconds_total{gpu_uuid=G job=a}"
	throttled = "datawait_cpu_throttled_seconds_total{job=a}"
)

// oneJob is a machine with a GPU, a rank and a job, after n seconds of training.
func oneJob(n uint64) live.Snapshot {
	a := live.Tenant{Job: "a"}
	r := training(n)
	r.Tenant, r.Rank, r.GPU = a, unit.Some(0), "G"
	j := live.Job{Tenant: a, Running: true, ThrottledTime: unit.Some(n * second)}
	j.StepTimes.Add(0.25)
	return live.Snapshot{GPUs: []live.GPU{{UUID: "G"}}, Ranks: []live.Rank{r}, Jobs: []live.Job{j},
		Tenancies: []live.Tenancy{{GPU: "G", Tenant: a, Running: true, Books: books(n), Activity: activity(n)}}}
}

// counters are the series of a scrape that only grow, the agent's own left out.
func counters(got map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for s, v := range got {
		name, _, _ := strings.Cut(s, "{")
		if strings.HasPrefix(name, "datawait_step_duration") || strings.HasSuffix(name, "_total") && !strings.HasPrefix(name, "datawait_source") && !strings.HasPrefix(name, "datawait_agent") {
			out[s] = v
		}
	}
	return out
}

// Every counter is 0 in a set's first scrape and for an interval, and all of its series are there from the first on.
func TestEveryCounterIsZeroFirst(t *testing.T) {
	x := newTarget(t, Options{ScrapeInterval: 15 * time.Second})
	first := counters(x.at(100, oneJob(50)))
	for s, v := range first {
		if v != 0 {
			t.Errorf("%s = %v in its first scrape", s, v)
		}
	}
	for s, v := range counters(x.at(114, oneJob(64))) {
		if v != 0 {
			t.Errorf("%s = %v before an interval has passed", s, v)
		}
	}
	got := counters(x.at(115, oneJob(65)))
	expect(t, got, map[string]float64{steps: 325, allocated: 65, throttled: 65, "datawait_step_duration_seconds_count{job=a}": 1,
		"datawait_step_duration_seconds_bucket{le=0.25 job=a}": 1, "datawait_step_duration_seconds_bucket{le=0.125 job=a}": 0,
		"datawait_gpu_account_seconds_total{account=exposed_wait gpu_uuid=G job=a}": 6.5, "datawait_gpu_account_seconds_total{account=startup gpu_uuid=G job=a}": 0})
	if n := len(named(got, "datawait_gpu_account_seconds_total")); n != len(ledger.Accounts()) {
		t.Errorf("%d accounts are shown", n)
	}
	if len(first) != len(got) {
		t.Errorf("%d counters in the first scrape, %d later: increase() cannot see what the others began with", len(first), len(got))
	}
}

// The interval begins when a set is scraped, not when it came: a job that ends between two scrapes is seen from 0 on.
func TestZeroNeedsAScrape(t *testing.T) {
	x := newTarget(t, Options{ScrapeInterval: 15 * time.Second})
	x.at(100, live.Snapshot{})
	expect(t, x.at(160, oneJob(50)), map[string]float64{steps: 0})
	expect(t, x.at(175, oneJob(50)), map[string]float64{steps: 250})
}

// What an earlier agent counted goes on. It is not 0 first: that would be a counter that began anew, and be counted again.
func TestCarriedSetsGoOn(t *testing.T) {
	x := newTarget(t, Options{})
	s := oneJob(50)
	s.Ranks[0].Carried, s.Tenancies[0].Carried, s.Jobs[0].Carried = true, true, true
	expect(t, x.at(100, s), map[string]float64{steps: 250, allocated: 50, throttled: 50, "datawait_step_duration_seconds_count{job=a}": 1})
}

// A part that comes later is 0 first too, also in a set that was carried: no earlier agent is known to have shown it.
func TestLaterPartsAreZeroFirst(t *testing.T) {
	const files, bytes = "datawait_files_opened_total{rank=0 job=a}", "datawait_read_bytes_total{rank=0 job=a}"
	x := newTarget(t, Options{ScrapeInterval: 15 * time.Second})
	s := oneJob(50)
	s.Ranks[0].Carried, s.Ranks[0].Workers.IOSeen, s.Ranks[0].Workers.ReadSeen = true, 0, 0
	absent(t, x.at(100, s), files, bytes)
	s.Ranks[0].Workers.IOSeen = 7
	got := x.at(120, s)
	expect(t, got, map[string]float64{files: 0, steps: 250})
	absent(t, got, bytes)
	expect(t, x.at(135, s), map[string]float64{files: 32000})
}

// What was not known for a while goes on where it was, and is not 0 again: it is the same counter.
func TestWhatWasUnknownForAWhileGoesOn(t *testing.T) {
	x := newTarget(t, Options{ScrapeInterval: time.Second})
	x.at(100, oneJob(50))
	expect(t, x.at(110, oneJob(60)), map[string]float64{throttled: 60})
	s := oneJob(70)
	s.Jobs[0].ThrottledTime = unit.None[uint64]("")
	absent(t, x.at(120, s), throttled)
	expect(t, x.at(130, oneJob(80)), map[string]float64{throttled: 80})
}

// A set that is gone and comes again is a new one, and nothing is remembered of it meanwhile.
func TestAGoneSetIsForgotten(t *testing.T) {
	x := newTarget(t, Options{ScrapeInterval: time.Second})
	x.at(100, oneJob(50))
	x.at(110, oneJob(60))
	absent(t, x.at(120, live.Snapshot{}), steps, allocated)
	if n := len(x.collector.sets); n != len(healthSets(x)) {
		t.Errorf("%d sets are remembered", n)
	}
	expect(t, x.at(130, oneJob(3)), map[string]float64{steps: 0, allocated: 0})
	expect(t, x.at(140, oneJob(13)), map[string]float64{steps: 65, allocated: 13})
}

// Nobody scraped while a job was forgotten and another of its name began. Its counters begin anew, however far the first had come.
func TestAnotherJobOfTheNameIsAnotherSet(t *testing.T) {
	x := newTarget(t, Options{ScrapeInterval: time.Second})
	x.at(100, oneJob(500))
	expect(t, x.at(110, oneJob(510)), map[string]float64{steps: 2550, allocated: 510, throttled: 510})
	again := func(n uint64) live.Snapshot {
		s := oneJob(n)
		s.Ranks[0].Since, s.Tenancies[0].Since, s.Jobs[0].Since = 2000*second, 2000*second, 2000*second
		return s
	}
	expect(t, x.at(2100, again(3)), map[string]float64{steps: 0, allocated: 0, throttled: 0, "datawait_step_duration_seconds_count{job=a}": 0})
	expect(t, x.at(2110, again(13)), map[string]float64{steps: 65, allocated: 13, throttled: 13, "datawait_step_duration_seconds_count{job=a}": 1})
}

// The same where two jobs are one set: what is left goes on, and no counter falls.
func TestOneOfTwoJobsOfANameIsAnother(t *testing.T) {
	x := newTarget(t, Options{ScrapeInterval: time.Second})
	two := func(a, b, since uint64) live.Snapshot {
		s, o := oneJob(a), oneJob(b)
		o.Ranks[0].Since = since * second
		s.Ranks = append(s.Ranks, o.Ranks...)
		return s
	}
	x.at(100, two(500, 300, 0))
	expect(t, x.at(110, two(510, 310, 0)), map[string]float64{steps: 4100})
	expect(t, x.at(2100, two(520, 0, 2000)), map[string]float64{steps: 4100})
	expect(t, x.at(2110, two(530, 10, 2000)), map[string]float64{steps: 4200})
}

func healthSets(x *target) (keys []key) {
	for k := range x.collector.sets {
		if k.table == machineTable.title || k.table == spoolTable.title || k.table == agentTable.title {
			keys = append(keys, k)
		}
	}
	return keys
}

// A counter that goes back is in error: the last value stays until it has come so far again. It would else read as one that began anew.
func TestCountersNeverGoBack(t *testing.T) {
	x := newTarget(t, Options{ScrapeInterval: time.Second})
	x.at(100, oneJob(100))
	x.at(110, oneJob(100))
	for _, step := range []struct{ n, want uint64 }{{90, 500}, {99, 500}, {101, 505}} {
		expect(t, x.at(120+step.n, oneJob(step.n)), map[string]float64{steps: float64(step.want)})
	}
	s := oneJob(110)
	s.Tenancies[0].Activity.SMActive, s.Tenancies[0].Activity.SMSeen = math.NaN(), math.Inf(1)
	s.Jobs[0].StepTimes = live.Durations{}
	expect(t, x.at(300, s), map[string]float64{"datawait_gpu_sm_active_seconds_total{gpu_uuid=G job=a}": activity(101).SMActive, "datawait_gpu_sm_seen_seconds_total{gpu_uuid=G job=a}": 101,
		"datawait_step_duration_seconds_count{job=a}": 1, "datawait_step_duration_seconds_sum{job=a}": 0.25})
}

// A gauge that is no number is not shown.
func TestGaugesThatAreNoNumber(t *testing.T) {
	x := newTarget(t, Options{})
	absent(t, x.at(100, live.Snapshot{Machine: live.Machine{Cores: unit.Some(math.NaN()), BusyCores: unit.Some(math.Inf(1))}}),
		"datawait_machine_cores{}", "datawait_machine_busy_cores{}", "datawait_machine_runnable_tasks{}", "datawait_machine_memory_available_bytes{}")
}
