package main

import (
	"fmt"
	"strings"
)

// What the variables of a dashboard choose.
const (
	ofJob = `{training_namespace=~"$training_namespace",training_job=~"$training_job"}`
	ofGPU = `{training_namespace=~"$training_namespace",training_job=~"$training_job",gpu_uuid=~"$gpu_uuid"}`
	node  = `{instance=~"$instance"}`
)

// and adds a condition to a choice.
func and(choice, condition string) string {
	return strings.TrimSuffix(choice, "}") + "," + condition + "}"
}

// perSecond is the sum of a counter's rates. Of a counter of seconds it is how many ranks, GPUs or processes are at it at a time.
func perSecond(by, metric, choice string) string {
	return total(by, "rate", metric, choice, "$__rate_interval")
}

// inRange is what a counter grew by in the range that is shown.
func inRange(by, metric, choice string) string {
	return total(by, "increase", metric, choice, "$__range")
}

func total(by, how, metric, choice, window string) string {
	if by != "" {
		by = " by (" + by + ") "
	}
	return fmt.Sprintf("sum%s(%s(%s%s[%s]))", by, how, metric, choice, window)
}

// share divides a sum by a sum. Where nothing is to be divided by, there is no share: a gap, and not the 0 that Grafana draws for
// NaN (github.com/grafana/grafana/issues/54857).
func share(part, whole string) string { return part + " / (" + whole + " > 0)" }

// shareOfAll is the same where the whole is one number for all parts.
func shareOfAll(part, whole string) string {
	return part + " / on () group_left () (" + whole + " > 0)"
}

// seenBy shows a counter that stands at 0 until something is booked only where that is known to be nothing: what would have seen more
// was there. What is more than nothing is known anyway.
func seenBy(part, by, witness string) string {
	return part + " > 0 or " + part + " and on (" + by + ") " + witness + " > 0"
}

// hours of seconds.
func hours(seconds string) string { return "(" + seconds + ") / 3600" }

// waitShare is the share of training time that is waited for data.
func waitShare(by string) string {
	return share(perSecond(by, "datawait_data_wait_seconds_total", ofJob), perSecond(by, "datawait_training_seconds_total", ofJob))
}

// activity is a counter of the GPU over the time in which that counter was read.
func activity(what, by string) string {
	return share(perSecond(by, "datawait_gpu_"+what+"_seconds_total", ofGPU), perSecond(by, "datawait_gpu_"+seen[what]+"_seconds_total", ofGPU))
}

// seen are the denominators of activity.
var seen = map[string]string{"held": "held_seen", "resident": "resident_seen", "sm_active": "sm_seen", "tensor_active": "tensor_seen"}

const (
	lostCertain = `account=~"exposed_wait|epoch_start"`
	idle        = `account=~"idle_held|not_held"`
)

// sum adds up a counter of GPUs or ranks in one of the two ways above.
type sum func(by, metric, choice string) string

// lost are the seconds that are certainly lost to waiting, where a process with the hook trained.
func lost(of sum, by string) string {
	return seenBy(of(by, "datawait_gpu_account_seconds_total", and(ofGPU, lostCertain)), by, of(by, "datawait_training_seconds_total", ofJob))
}

// lostAtMost has those waits too of which no device clock tells whether the GPU waited.
func lostAtMost(of sum, by string) string {
	all := "(" + of(by, "datawait_gpu_account_seconds_total", and(ofGPU, lostCertain)) + " + " + of(by, "datawait_gpu_wait_upper_bound_seconds_total", ofGPU) + ")"
	return seenBy(all, by, of(by, "datawait_training_seconds_total", ofJob))
}

// idling are the seconds without a process or a sign of life, where trustworthy counters saw the GPU.
func idling(of sum, by string) string {
	return seenBy(of(by, "datawait_gpu_account_seconds_total", and(ofGPU, idle)), by, of(by, "datawait_gpu_covered_seconds_total", ofGPU))
}

// untrusted is the share of counted time in which the counters contradict one another.
func untrusted(by string) string {
	bad := perSecond(by, "datawait_gpu_untrusted_seconds_total", ofGPU)
	return share(bad, "("+bad+" + "+perSecond(by, "datawait_gpu_covered_seconds_total", ofGPU)+")")
}

// recordsLost is the share of what hooks told that was overwritten before it was read.
func recordsLost(by, choice string) string {
	gone := perSecond(by, "datawait_hook_records_lost_total", choice)
	return share(gone, "("+gone+" + "+perSecond(by, "datawait_hook_records_total", choice)+")")
}
