package survey

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The history that the tests know: counters that grow at known rates, scraped at a known interval.

const every = 2 * time.Minute // a scrape

// until is the end of the window; the window before ends a week earlier.
var until = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)

// at is a moment so many hours after the window begins; negative in the window before.
func at(hours float64) time.Time {
	return until.Add(-7 * 24 * time.Hour).Add(time.Duration(hours * float64(time.Hour)))
}

// span is a time in which a series is scraped.
type span struct{ from, to time.Time }

// series is one of a family.
type series struct {
	labels  string
	scraped []span
	value   func(time.Time) float64
}

// history collects series by family.
type history struct {
	families map[string][]series
	kinds    map[string]string
}

func newHistory() *history { return &history{map[string][]series{}, map[string]string{}} }

func (h *history) add(name, kind, labels string, value func(time.Time) float64, scraped ...span) {
	h.kinds[name] = kind
	h.families[name] = append(h.families[name], series{labels, scraped, value})
}

// growing is a counter that begins at 0 and grows by a rate per second for a while.
func growing(s span, rate float64) func(time.Time) float64 {
	return func(t time.Time) float64 {
		return rate * math.Max(0, math.Min(t.Sub(s.from).Seconds(), s.to.Sub(s.from).Seconds()))
	}
}

func constant(x float64) func(time.Time) float64 { return func(time.Time) float64 { return x } }

// text writes everything in OpenMetrics' text format.
func (h *history) text() []byte {
	var b bytes.Buffer
	var names []string
	for name := range h.families {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		family := name
		if h.kinds[name] == "counter" {
			family = strings.TrimSuffix(name, "_total")
		}
		fmt.Fprintf(&b, "# TYPE %s %s\n", family, h.kinds[name])
		for _, s := range h.families[name] {
			for _, sp := range s.scraped {
				for t := sp.from.Truncate(every).Add(every); !t.After(sp.to); t = t.Add(every) {
					fmt.Fprintf(&b, "%s{%s} %g %d\n", name, s.labels, s.value(t.Add(-time.Second)), t.Unix()-1)
				}
			}
		}
	}
	b.WriteString("# EOF\n")
	return b.Bytes()
}

// job is one that an agent watches.
type job struct {
	name, namespace, pod, instance string
	gpus                           []string
	runs                           span               // its counters grow meanwhile, from carried on
	carried                        float64            // seconds of what an earlier agent counted
	gap                            span               // nobody scrapes
	accounts                       map[string]float64 // shares of the allocated time
	bound, active                  float64            // shares
	waits                          []float64          // of each rank: data wait, of the training loop; none: no hook
	scrapes                        []string           // the same agent, under several scrape jobs
	emulated                       bool
}

// write puts the series of a job into a history.
func (j job) write(h *history) {
	if len(j.scrapes) == 0 {
		j.scrapes = []string{"datawait"}
	}
	// Its series are there one scrape before anything is counted, and two scrapes after the last.
	scraped := []span{{j.runs.from.Add(-2 * every), j.runs.to.Add(2 * every)}}
	if j.gap.to.After(j.gap.from) {
		scraped = []span{{scraped[0].from, j.gap.from}, {j.gap.to, scraped[0].to}}
	}
	for _, scrape := range j.scrapes {
		target := fmt.Sprintf(`job=%q,instance=%q`, scrape, j.instance)
		tenant := fmt.Sprintf(`training_job=%q,training_namespace=%q,training_pod=%q,%s`, j.name, j.namespace, j.pod, target)
		counter := func(name, labels string, rate float64) {
			grows := growing(j.runs, rate)
			h.add(name, "counter", labels, func(t time.Time) float64 { return rate*j.carried + grows(t) }, scraped...)
		}
		for i, gpu := range j.gpus {
			device := fmt.Sprintf("%s,gpu_uuid=%q", tenant, gpu)
			h.add("datawait_gpu_info", "gauge", fmt.Sprintf(`gpu_uuid=%q,name="A100",source="dcgm",grade="A",emulated="%t",index="%d",%s`, gpu, j.emulated, i, target), constant(1), scraped...)
			counter("datawait_gpu_allocated_seconds_total", device, 1)
			for account, share := range j.accounts {
				counter("datawait_gpu_account_seconds_total", fmt.Sprintf("%s,account=%q", device, account), share)
			}
			counter("datawait_gpu_wait_upper_bound_seconds_total", device, j.bound)
			counter("datawait_gpu_covered_seconds_total", device, 0.98)
			counter("datawait_gpu_sm_active_seconds_total", device, j.active*0.98)
			counter("datawait_gpu_sm_seen_seconds_total", device, 0.98)
			if i < len(j.waits) {
				h.add("datawait_rank_info", "gauge", fmt.Sprintf(`%s,rank="%d",world_size="%d"`, device, i, len(j.waits)), constant(1), scraped...)
			}
		}
		for rank, wait := range j.waits {
			labels := fmt.Sprintf(`%s,rank="%d"`, tenant, rank)
			counter("datawait_training_seconds_total", labels, 0.9)
			counter("datawait_data_wait_seconds_total", labels, 0.9*wait)
		}
	}
}
