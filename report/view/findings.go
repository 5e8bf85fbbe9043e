package view

import (
	"math"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

func findings(r *analysis.Result) []Finding {
	var out []Finding
	for _, v := range r.Verdicts {
		f := Finding{
			ID: cleanName(v.ID), Title: sentence(v.Title), Confidence: known(v.Confidence, confidenceStyle), Share: share(v.Share), ShareOf: "of a step",
			FalsifiedBy: sentence(v.FalsifiedBy),
		}
		if v.ID == "epoch-start" {
			f.ShareOf = "of the run"
		}
		f.Short = shortFinding(f)
		for _, e := range v.Evidence {
			f.Evidence = append(f.Evidence, Evidence{metricName(e.Metric), inUnit(e.Value, e.Unit), cleanName(e.Source)})
		}
		out = append(out, f)
	}
	return out
}

// causes leaves out what the headline or a banner says already.
func causes(all []Finding) []Finding {
	var out []Finding
	for _, f := range all {
		if !blind(f.ID) && f.ID != "metric-untrusted" {
			out = append(out, f)
		}
	}
	return out
}

// shortFinding is a finding in one line: its title, which names its size, and how sure it is.
func shortFinding(f Finding) string {
	return upper(strings.TrimSuffix(f.Title, ".")) + " (confidence " + f.Confidence.Text + ")."
}

// metricNames are the report's own words for the numbers behind findings.
var metricNames = map[string]string{
	"data_wait_share": "data wait, of a step", "ceiling": "faster with batches in memory", "step_seconds": "a step", "workers_enough": "workers that would do",
	"build_seconds_per_batch": "build of a batch", "solo_build_seconds_per_batch": "build of a batch, undisturbed", "cpu_seconds_per_batch": "CPU per batch",
	"off_cpu_seconds_per_batch": "off-CPU per batch", "solo_off_cpu_seconds_per_batch": "off-CPU per batch, undisturbed", "runq_seconds_per_batch": "run queue per batch",
	"power_of_limit": "power, of its limit", "clock_of_highest": "clock, of its highest", "thermal_ratio": "held down by temperature", "hardware_ratio": "held down by the board",
	"power_cap_ratio": "held down by the power limit", "longer_while_held_down": "steps longer meanwhile", "idle_hours": "GPU-hours idle", "allocated_hours": "GPU-hours allocated",
	"link_below_most_ratio": "link below what is possible", "link_used_ratio": "of what the link carries", "pcie_in_bytes_per_second": "to the GPU, per second", "copy_seconds": "copy exposed, per step",
	"memory_used_bytes": "memory in use", "tensor_active_ratio": "tensor pipes active", "fp32_active_ratio": "FP32 pipe active",
	"collate_seconds_per_batch": "collate per batch", "handoff_seconds_per_batch": "hand-off per batch",
}

func metricName(id string) string {
	if s, ok := metricNames[id]; ok {
		return s
	}
	return strings.ReplaceAll(cleanName(id), "_", " ")
}

// inUnit writes a number of evidence in its unit.
func inUnit(x float64, name string) Quantity {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return missing(unit.Failed, "the result is not a number")
	}
	q := Quantity{Known: true, Value: x, Low: x, High: x}
	switch name {
	case "ratio":
		q.Text = percent(x)
	case "times":
		q.Text = timesStyle.text(x)
	case "seconds":
		q.Text = duration(x)
	case "cores":
		q.Text = coresStyle.text(x) + nbsp + "cores"
	case "bytes":
		q.Text = measure(byteScales, x)
	case "count", "":
		q.Text = number(x)
	default:
		q.Text = number(x) + nbsp + cleanName(name)
	}
	return q
}

// number writes a plain number: whole ones with commas, others with three significant digits.
func number(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return count(int64(x))
	}
	return decimal(x, digitsAfter(x))
}

func dropped(r *analysis.Result) []Dropped {
	var out []Dropped
	for _, d := range r.Dropped {
		out = append(out, Dropped{cleanName(d.ID), upper(sentence(d.Reason))})
	}
	return out
}
