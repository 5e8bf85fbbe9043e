package fleet

import (
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Schema is the name and version of the JSON form of a [Fleet].
const Schema = "datawait.fleet/1"

// Fleet is what the GPUs of a cluster did over a window of time. Its JSON names are a contract: add freely, rename never.
type Fleet struct {
	Schema    string         `json:"schema"`
	Version   string         `json:"datawait_version"`
	Server    string         `json:"server"`        // address without credentials
	Window    Stretch        `json:"window"`        // that this is about
	Before    Stretch        `json:"window_before"` // of the same length, right before it
	HourCost  analysis.Ratio `json:"gpu_hour_cost"` // as the reader said; money is in the same currency
	Emulated  bool           `json:"emulated"`      // some GPU is the emulated device
	Total     Whole          `json:"total"`
	Workloads []Workload     `json:"workloads"` // most GPU-hours lost first
	Remarks   []string       `json:"remarks"`   // what is to be known besides
	Warnings  []string       `json:"warnings"`  // of the server
}

// Stretch is a length of time.
type Stretch struct {
	From    time.Time      `json:"from"`
	Until   time.Time      `json:"until"`
	Seconds float64        `json:"seconds"`
	Seen    analysis.Ratio `json:"seen_ratio"` // of it in which the server has any GPU
}

// Whole is all GPUs together.
type Whole struct {
	GPUs       int            `json:"gpus"`              // seen in the window, a MIG slice being one
	Watched    analysis.Ratio `json:"watched_gpu_hours"` // in which they were there, allocated or not
	Use        Use            `json:"use"`               // of what was allocated
	Free       analysis.Ratio `json:"free_gpu_hours"`    // watched and allocated to nobody
	Unlabelled Unlabelled     `json:"unlabelled"`
	Equivalent Equivalent     `json:"equivalent_gpus"`
	Shifts     []Shift        `json:"shifts"`
}

// Unlabelled is the GPUs of which no series says whose they are: whether they were allocated is not known.
type Unlabelled struct {
	Hours    analysis.Ratio `json:"gpu_hours"`
	SMActive analysis.Ratio `json:"sm_active_ratio"`
	Resident analysis.Ratio `json:"resident_ratio"` // where SM activity is not served: some kernel was there, an upper bound of activity
}

// Equivalent is GPU-hours divided by the length of the window: as many GPUs, all the time.
type Equivalent struct {
	Allocated analysis.Ratio `json:"allocated"`
	Working   analysis.Ratio `json:"working"` // with all of their processors active
	Lost      analysis.Ratio `json:"lost"`
}

// Workload is one job over the window: all runs of that name.
type Workload struct {
	Job       string          `json:"job"`       // "" where nobody told a name
	Namespace string          `json:"namespace"` // Kubernetes, "" elsewhere
	Source    Source          `json:"source"`    // datawait, or dcgm-exporter where no agent of datawait watches
	Emulated  bool            `json:"emulated"`
	GPUs      int             `json:"gpus"`        // that it had, one after the other or together
	Hooked    unit.Maybe[int] `json:"gpus_hooked"` // of them where datawait's hook told of waiting
	Holders   []string        `json:"holders"`     // of a GPU that several shared at once
	Use       Use             `json:"use"`
	Slow      []SlowRank      `json:"slow_ranks"` // that wait much more than the others of the job, worst first
	Before    *Use            `json:"use_before"` // in the window before; null where it was not there, or nobody looked
	Shifts    []Shift         `json:"shifts"`
}

// Use is where GPU-hours went.
type Use struct {
	Allocated analysis.Ratio     `json:"allocated_gpu_hours"`
	Accounts  map[string]float64 `json:"account_gpu_hours"`         // by account; empty where no agent kept books
	Waiting   Amount             `json:"waiting"`                   // for data, for certain: with nothing to run, and epoch starts; of GPUs on which a hook looked
	AtMost    Amount             `json:"waiting_at_most"`           // with the waits of which no device clock says whether the GPU waited too; of the same GPUs
	Idle      Amount             `json:"idle"`                      // allocated, and not held or held without a step
	Lost      Amount             `json:"lost"`                      // waiting and idle together, as far as each is known
	Partial   bool               `json:"lost_is_lower_bound"`       // waiting or idle of some is not known
	Unasked   analysis.Ratio     `json:"waiting_unknown_gpu_hours"` // of the allocated ones: of which nobody knows whether they waited
	Working   Amount             `json:"working"`                   // SM activity times time
	SMActive  analysis.Ratio     `json:"sm_active_ratio"`           // of the time in which it was read
	SMRead    analysis.Ratio     `json:"sm_read_ratio"`             // of the allocated time: in which it was read
	Resident  analysis.Ratio     `json:"resident_ratio"`            // where SM activity is not served: some kernel was there, an upper bound of activity
	Wait      analysis.Ratio     `json:"data_wait_share"`           // of the training loop, exposed or not
	Covered   analysis.Ratio     `json:"covered_ratio"`             // of the allocated time: seen by trustworthy counters
	Parts     []Share            `json:"parts"`                     // the allocated time, cut into what adds up to it
}

// Amount is GPU-hours and what they cost.
type Amount struct {
	Hours analysis.Ratio `json:"gpu_hours"`
	Money analysis.Ratio `json:"money"`
	Grade stat.Grade     `json:"grade"` // "" where the hours are not known
}

// Share is a part of allocated time.
type Share struct {
	ID    string  `json:"id"` // compute, active, waiting, wait_bound, idle, other or unknown
	Hours float64 `json:"gpu_hours"`
}

// SlowRank is a rank whose loader keeps the others of its job waiting.
type SlowRank struct {
	Rank   string  `json:"rank"`
	Wait   float64 `json:"data_wait_share"`
	Median float64 `json:"median_data_wait_share"` // of the job's ranks
}

// Shift is one number in this window and the one before.
type Shift struct {
	ID         string         `json:"id"` // lost_gpu_hours, data_wait_share or sm_active_ratio
	Before     analysis.Ratio `json:"before"`
	Now        analysis.Ratio `json:"now"`
	Difference analysis.Ratio `json:"difference"` // now − before
	Outcome    Outcome        `json:"outcome"`
	Why        string         `json:"why"` // it is unknown; "" elsewhere
}

// Outcome is what a shift comes to.
type Outcome string

// The outcomes.
const (
	Better  Outcome = "better"
	Worse   Outcome = "worse"
	Same    Outcome = "no-meaningful-difference"
	Unknown Outcome = "unknown"
)

// SharedJob is the job under which an agent counts the time of a GPU that several tenants have at once (analysis/live).
const SharedJob = "(shared)"
