package prometheus

import (
	"maps"
	"math"
	"strconv"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/unit"
)

// The classic buckets of step times end at powers of 2 from a millisecond to a minute: bounds which live.Durations has too, so no
// duration is counted on the wrong side of one.
const (
	leastBound = -10 // 2^-10 s
	mostBound  = 6   // 2^6 s
	// A bucket for each, one for what is longer, and count and sum.
	histogramSeries = mostBound - leastBound + 1 + 3
)

var jobTable = table[live.Job]{
	title:   "Jobs",
	subject: "one job on this machine",
	labels:  tenantAnd(),
	values:  func(j *live.Job) values { return tenantValues(j.Tenant) },
	merge:   joinJobs,
	carried: func(j *live.Job) bool { return j.Carried },
	since:   func(j *live.Job) uint64 { return j.Since },
	order: func(j *live.Job) order {
		if j.Running {
			return jobsNow
		}
		return ended
	},
	families: []family[live.Job]{
		{metric: metric{name: "datawait_step_duration_seconds", kind: histogram, most: histogramSeries,
			help: "Durations of steps of all the job's ranks on this machine, in seconds.",
			from: "`Job.StepTimes`; buckets end at powers of 2 from " + bound(leastBound) + " to " + bound(mostBound) + ", with --native-histograms at 2^(1/8) more each"},
			durations: func(j *live.Job) live.Durations { return j.StepTimes }},
		shown("datawait_usable_cores", "CPU cores that the job may use: the least of its quota, its cpuset and its workers' affinity.",
			"`Job.UsableCores`", "not known", func(j *live.Job) (float64, bool) { return j.UsableCores.Get() }),
		{metric: metric{name: "datawait_cpu_throttled_seconds_total", help: "Seconds that the job's control group was kept from running.",
			from: "`Job.ThrottledTime`", gone: "not known"}, part: throttle,
			of: maybe(func(j *live.Job) (float64, bool) {
				ns, known := j.ThrottledTime.Get()
				return seconds(ns), known
			})},
	},
}.made()

func bound(exponent int) string { return "2^" + strconv.Itoa(exponent) + " s" }

// joinJobs adds a job whose labels are the same. How many cores two of them may use is known only where both may use as many.
func joinJobs(into, from *live.Job) {
	into.Running, into.Carried = into.Running || from.Running, into.Carried || from.Carried
	into.StepTimes = plus(into.StepTimes, from.StepTimes)
	if a, known := into.UsableCores.Get(); !known || !equal(from.UsableCores, a) {
		into.UsableCores = unit.None[float64]("two jobs of this name may use different cores")
	}
	if ns, known := from.ThrottledTime.Get(); known {
		into.ThrottledTime = unit.Some(into.ThrottledTime.Or(0) + ns)
	}
}

func equal(m unit.Maybe[float64], v float64) bool {
	w, known := m.Get()
	return known && w == v
}

// plus adds two counts of durations, and changes neither. It counts what is in the buckets.
func plus(a, b live.Durations) live.Durations {
	sum := live.Durations{Sum: a.Sum + b.Sum, Zero: a.Zero + b.Zero, Buckets: maps.Clone(a.Buckets)}
	if sum.Buckets == nil {
		sum.Buckets = map[int]uint64{}
	}
	sum.Count = sum.Zero
	for i, n := range b.Buckets {
		sum.Buckets[i] += n
	}
	for _, n := range sum.Buckets {
		sum.Count += n
	}
	return sum
}

// missing is what a has more of than b.
func missing(a, b live.Durations) (lack live.Durations, any bool) {
	lack = live.Durations{Zero: a.Zero - min(a.Zero, b.Zero), Sum: math.Max(0, a.Sum-b.Sum), Buckets: map[int]uint64{}}
	any = lack.Zero > 0
	for i, n := range a.Buckets {
		if n > b.Buckets[i] {
			lack.Buckets[i] = n - b.Buckets[i]
			any = true
		}
	}
	return lack, any || lack.Sum > 0
}
