package analysis

import (
	"encoding/json"
	"time"

	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/stage"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/analysis/track"
	"github.com/datawait/datawait/analysis/verdict"
	"github.com/datawait/datawait/probe/unit"
)

// Schema is the name and version of the JSON form of a [Result].
const Schema = "datawait.report/1"

// Est is an estimate that may be missing.
type Est = unit.Maybe[stat.Estimate]

// Ratio is a 0–1 number that may be missing.
type Ratio = unit.Maybe[float64]

// Result is everything a report says about one job. Its JSON names are a contract (IDS: report/1): add freely, rename never.
// A ratio is 0–1, times are seconds unless the name ends in _ns, and what is not known is null with a reason.
type Result struct {
	Schema    string                `json:"schema"`
	Version   string                `json:"datawait_version"`
	Emulated  bool                  `json:"emulated"` // any number came from the emulated device
	Nodes     []string              `json:"nodes"`
	StartedAt unit.Maybe[time.Time] `json:"started_at"`
	EndedBy   unit.Maybe[string]    `json:"ended_by"` // command, datawait, signal or slice
	ExitCode  unit.Maybe[int]       `json:"exit_code"`
	Job       Job                   `json:"job"`
	Step      Step                  `json:"step"`
	Ranks     []Rank                `json:"ranks"`
	Loaders   []Loader              `json:"loaders"`
	GPUs      []GPU                 `json:"gpus"`
	Baseline  *Baseline             `json:"baseline"` // nil when no cached-data test ran
	Verdicts  []Verdict             `json:"verdicts"` // most important first
	Dropped   []Dropped             `json:"verdicts_considered"`
	Fixes     []Fix                 `json:"fixes"`  // best first
	Trials    []Trial               `json:"trials"` // other loaders that the run tried
	NoHelp    []NoHelp              `json:"no_help"`
	Unpriced  []Unpriced            `json:"unpriced"` // may help; these measurements cannot say how much
	Plan      []PlanStep            `json:"plan"`
	MoreGPUs  Scaling               `json:"more_gpus"`
	Ladder    []Rung                `json:"ladder"`        // of all GPUs together, from allocated down to tensor_active
	HourCost  Ratio                 `json:"gpu_hour_cost"` // as the reader said; money is in the same currency
	Model     Model                 `json:"model"`
	Host      Host                  `json:"host"`
	Quality   Quality               `json:"quality"`

	// TrackRecord is how earlier predictions on this machine came out (datawait compare); nil where none was checked. It is
	// of the machine that made this report, not of the run.
	TrackRecord *track.TrackRecord `json:"track_record"`

	// Timeline feeds the pictures. It is long, so it is not part of the JSON document.
	Timeline Timeline `json:"-"`
}

// Job is what ran.
type Job struct {
	Name            string   `json:"name"`
	Command         []string `json:"command"`
	Ranks           int      `json:"ranks"`
	Steps           int      `json:"steps"` // per rank, observed
	FetchesPerStep  Ratio    `json:"fetches_per_step"`
	StepIs          string   `json:"step_is"` // "optimizer step" or "fetch"
	WallSeconds     Ratio    `json:"wall_seconds"`
	StepsPerSecond  Est      `json:"steps_per_second"` // live, steady state
	SamplesPerBatch Ratio    `json:"samples_per_batch"`
	Throwaway       bool     `json:"throwaway"` // the run was ended by datawait after the test
}

// Step is the anatomy of a step in steady state: Σ over Σ, epoch starts and each loader's first 2·W fetches apart.
type Step struct {
	MeanSeconds      Est   `json:"mean_seconds"`
	DataWaitShare    Est   `json:"data_wait_share"`
	ExposedWaitShare Est   `json:"exposed_wait_share"`
	HandoffShare     Ratio `json:"handoff_share"`
	EpochStartShare  Ratio `json:"epoch_start_share"` // of the live wall time, not of a steady step
	P50WaitSeconds   Ratio `json:"p50_wait_seconds"`
	P99WaitSeconds   Ratio `json:"p99_wait_seconds"`
	N                int   `json:"n"`
	// Anatomy splits the mean step; the parts sum to MeanSeconds.
	Anatomy []Part `json:"anatomy"`
}

// Part is one named share of a whole, in seconds.
type Part struct {
	Name    string  `json:"name"` // an account name, or data_wait where exposure is unknown, or unexplained
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
}

// Rank is one training process.
type Rank struct {
	Rank             int                `json:"rank"`
	LocalRank        unit.Maybe[int]    `json:"local_rank"`
	Host             string             `json:"host"`
	PID              int                `json:"pid"`
	Restart          unit.Maybe[int]    `json:"restart"`
	GPUUUID          unit.Maybe[string] `json:"gpu_uuid"`
	GPUGuessed       bool               `json:"gpu_guessed"` // nothing told which GPU it uses: taken in the order of ranks
	Steps            int                `json:"steps"`
	DataWaitShare    Ratio              `json:"data_wait_share"`
	ExposedWaitShare Ratio              `json:"exposed_wait_share"`
	MeanStepSeconds  Ratio              `json:"mean_step_seconds"`
	MainCPUCores     Ratio              `json:"main_cpu_cores"` // of the training process, workers apart
	// EndedEarlySeconds is how long the process was gone when the last process of another rank ended.
	EndedEarlySeconds Ratio  `json:"ended_early_seconds"`
	Ended             string `json:"ended"` // normally, failed, killed, parked, restarted (as another program), running or unknown
}

// Loader is one data loader of the job (the same loader of several ranks is one row).
type Loader struct {
	ID                int                        `json:"id"`
	Role              string                     `json:"role"` // training, validation or other
	Kind              string                     `json:"kind"` // torch or watch
	Dataset           string                     `json:"dataset"`
	Arguments         map[string]json.RawMessage `json:"arguments"`
	WorkersSeen       int                        `json:"workers_seen"`
	BatchesPerEpoch   unit.Maybe[int]            `json:"batches_per_epoch"`
	Fetches           int                        `json:"fetches"`
	WaitSeconds       float64                    `json:"wait_seconds"`
	BuildSeconds      Est                        `json:"build_seconds_per_batch"` // wall, in one worker
	SoloBuildSeconds  Est                        `json:"solo_build_seconds_per_batch"`
	CPUSeconds        Ratio                      `json:"cpu_seconds_per_batch"`         // of the building thread: build = CPU + run queue + off CPU
	ProcessCPUSeconds Ratio                      `json:"process_cpu_seconds_per_batch"` // helper threads included
	RunQueueSeconds   Ratio                      `json:"runq_seconds_per_batch"`
	OffCPUSeconds     Ratio                      `json:"off_cpu_seconds_per_batch"`
	CollateSeconds    Ratio                      `json:"collate_seconds_per_batch"`
	HandoffSeconds    Ratio                      `json:"handoff_seconds_per_batch"`
	Bytes             Ratio                      `json:"bytes_per_batch"` // read
	BytesSource       string                     `json:"bytes_source"`
	BatchBytes        Ratio                      `json:"batch_bytes"` // tensors of a finished batch
	Tensors           Ratio                      `json:"tensors_per_batch"`
	Files             Ratio                      `json:"files_per_batch"`
	Requests          Ratio                      `json:"requests_per_batch"`
	Samples           Ratio                      `json:"samples_per_batch"`
	Reads             Reads                      `json:"reads"`
	EpochStartSeconds Est                        `json:"epoch_start_seconds"`
	Epochs            int                        `json:"epochs"`
	Stages            []Stage                    `json:"stages"`     // largest first; none where stacks were not looked at
	Transforms        []TransformTime            `json:"transforms"` // where they stand in a list that the hook knows
	Sampling          Sampling                   `json:"sampling"`

	// Stacks feeds the flame graph; nil without stages.
	Stacks *stage.Tree `json:"-"`
}

// GPU is one device, or one MIG slice of it.
type GPU struct {
	UUID              string            `json:"uuid"`
	GI                unit.Maybe[int]   `json:"gi"`
	CI                unit.Maybe[int]   `json:"ci"`
	Name              string            `json:"name"`
	Host              string            `json:"host"`
	Source            string            `json:"source"`
	Emulated          bool              `json:"emulated"`
	Grade             stat.Grade        `json:"grade"`
	Coverage          Ratio             `json:"coverage"`  // of the observed time that counters cover
	Untrusted         Ratio             `json:"untrusted"` // of the windows that contradict themselves
	Holders           []string          `json:"holders"`
	AllocatedNS       int64             `json:"allocated_ns"`
	HeldRatio         Ratio             `json:"held_ratio"`
	ResidentRatio     Ratio             `json:"resident_ratio"`
	SMActiveRatio     Est               `json:"sm_active_ratio"`
	TensorActiveRatio Ratio             `json:"tensor_active_ratio"`
	SMActiveComputing Est               `json:"sm_active_while_computing"`
	SMActiveWaiting   Est               `json:"sm_active_while_waiting"`
	AccountsNS        map[string]int64  `json:"accounts_ns"`         // those that can be told apart; sums exactly to AllocatedNS
	CollectiveNS      unit.Maybe[int64] `json:"collective_ns"`       // exchanging gradients; part of compute
	WaitUpperBoundNS  unit.Maybe[int64] `json:"wait_upper_bound_ns"` // host wait, where its exposure is unknown

	Parent     unit.Maybe[string] `json:"parent"`      // UUID of the GPU that a MIG slice is cut from
	Shared     unit.Maybe[string] `json:"shared"`      // how several holders share it, no, or unknown; counters are of all of them together
	AssignedBy unit.Maybe[string] `json:"assigned_by"` // who told whom it is assigned to
	Processes  unit.Maybe[int]    `json:"processes"`   // that had a context at one time, at most
	Ladder     []Rung             `json:"ladder"`      // from allocated down to tensor_active
	Pipes      Pipes              `json:"pipes"`
	State      DeviceState        `json:"state"`
	Events     []DeviceEvent      `json:"events"` // Xid errors, a GPU that was lost; the first of each kind
}

// Rung is one number of the ladder from allocated to tensor-active, with what it comes to in hours and money.
type Rung struct {
	Name     string                 `json:"name"`      // allocated, held, resident, sm_active or tensor_active
	Ratio    Ratio                  `json:"ratio"`     // of the allocated time
	GPUHours Ratio                  `json:"gpu_hours"` // of devices: a MIG slice counts as one
	Cost     Ratio                  `json:"cost"`      // of those hours, where an hour has a price
	Grade    unit.Maybe[stat.Grade] `json:"grade"`
	Coverage Ratio                  `json:"coverage"` // of the allocated time in which it was measured
	Source   string                 `json:"source"`
}

// Pipes are further counters. Ratios are 0–1, rates bytes a second as the GPU sees them. FP32, DRAM and PCIe in are of the allocated time, the
// others of all the time that was watched.
type Pipes struct {
	FP32      Ratio `json:"fp32_active_ratio"`
	DRAM      Ratio `json:"dram_active_ratio"`
	Occupancy Ratio `json:"occupancy_ratio"`          // resident warps of those that fit
	PCIeIn    Ratio `json:"pcie_in_bytes_per_second"` // host to device
	PCIeOut   Ratio `json:"pcie_out_bytes_per_second"`
	NVLinkIn  Ratio `json:"nvlink_in_bytes_per_second"`
	NVLinkOut Ratio `json:"nvlink_out_bytes_per_second"`
}

// DeviceState is what the driver told of the GPU. Clocks, link and what holds them down are of the time in which it worked, for an
// idle GPU lowers them by itself.
type DeviceState struct {
	Power         Ratio           `json:"power_watts"`
	PowerLimit    Ratio           `json:"power_limit_watts"`
	WorkPower     Ratio           `json:"power_of_limit"`
	Clock         Ratio           `json:"sm_clock_hz"`
	ClockMax      Ratio           `json:"sm_clock_max_hz"`
	Thermal       Ratio           `json:"thermal_ratio"`     // held down by temperature
	Hardware      Ratio           `json:"hardware_ratio"`    // held down by the board: slowdown, power brake
	PowerCap      Ratio           `json:"power_cap_ratio"`   // held down by the power limit
	MemoryUsed    Ratio           `json:"memory_used_bytes"` // most
	Memory        Ratio           `json:"memory_bytes"`
	LinkGen       unit.Maybe[int] `json:"pcie_generation"` // most of the time
	LinkWidth     unit.Maybe[int] `json:"pcie_lanes"`
	LinkGenMost   unit.Maybe[int] `json:"pcie_generation_max"`
	LinkWidthMost unit.Maybe[int] `json:"pcie_lanes_max"`
}

// DeviceEvent is something that happened to a GPU.
type DeviceEvent struct {
	Name    string          `json:"name"` // xid, lost, back or counters-began-anew
	Xid     unit.Maybe[int] `json:"xid"`
	Count   int             `json:"count"`
	Seconds float64         `json:"first_at_seconds"` // since the first observation
}

// Baseline is the outcome of the cached-data test.
type Baseline struct {
	Legs              map[string]Leg `json:"legs"`
	Ceiling           Est            `json:"ceiling"` // live step ÷ cached step: how many times faster it could be
	SavedSeconds      Est            `json:"saved_seconds_per_step"`
	CopyShare         Ratio          `json:"copy_share"` // of a live step
	InterferenceShare Ratio          `json:"interference_share"`
	UnexplainedShare  Ratio          `json:"unexplained_share"`
	Pairs             int            `json:"pairs"`
	Skipped           []SkippedLeg   `json:"skipped"`
	Conclusion        string         `json:"conclusion"` // input-pipeline, not-input, inconclusive
	Why               string         `json:"why"`
}

// Leg is one arm of the test over all its counted blocks.
type Leg struct {
	StepSeconds   Est `json:"step_seconds"`
	SMActiveRatio Est `json:"sm_active_ratio"`
	Blocks        int `json:"blocks"`
	Steps         int `json:"steps"`
}

// SkippedLeg is a leg that did not run or does not count.
type SkippedLeg struct {
	Leg    string `json:"leg"`
	Reason string `json:"reason"`
}

// What the pure packages below find is reported as they say it.
type (
	Verdict    = verdict.Verdict  // one finding
	Evidence   = verdict.Evidence // one measured number behind a verdict
	Dropped    = verdict.Dropped  // a finding that was considered and rejected
	Fix        = fixes.Fix        // one change worth making
	Prediction = fixes.Prediction // what a fix is expected to do
	NoHelp     = fixes.NoHelp     // a common advice that does nothing here, and the term that makes it nothing
	Unpriced   = fixes.Unpriced   // a change that may help, by how much these measurements cannot say
	PlanStep   = fixes.PlanStep   // one step of the greedy plan
	Scaling    = fixes.Scaling    // what more GPUs would make of the job
	Model      = loader.Summary   // whether predictions can be trusted
)

// Host is what the machine around the job did.
type Host struct {
	Cores          Ratio `json:"cores"`
	UsableCores    Ratio `json:"usable_cores"`
	QuotaCores     Ratio `json:"quota_cores"`
	BusyCores      Ratio `json:"busy_cores"`
	ForeignCores   Ratio `json:"foreign_cores"` // busy outside the job
	JobCores       Ratio `json:"job_cores"`
	WorkerRunQueue Ratio `json:"worker_run_queue_cores"`
	ThrottledRatio Ratio `json:"throttled_ratio"`
	CPUPressure    Ratio `json:"cpu_pressure"`
	IOPressure     Ratio `json:"io_pressure"`
	MemoryPressure Ratio `json:"memory_pressure"`
	ReadBytesRate  Ratio `json:"disk_read_bytes_per_second"`
	ReceivedRate   Ratio `json:"received_bytes_per_second"`
}

// Quality is how far the numbers can be relied on, and what it cost to get them.
type Quality struct {
	Hook     HookQuality  `json:"hook"`
	GPU      GPUQuality   `json:"gpu"`
	Clock    ClockQuality `json:"clock"`
	OwnCost  OwnCost      `json:"own_cost"`
	Damage   DamageReport `json:"damage"`
	Warnings []string     `json:"warnings"`
}

// HookQuality is the hook's own account of itself.
type HookQuality struct {
	Records      uint64   `json:"records"`
	Dropped      uint64   `json:"dropped"`
	Disabled     bool     `json:"disabled"`
	Errors       []string `json:"errors"`
	AddedSeconds Ratio    `json:"added_seconds_per_fetch"`
}

// GPUQuality is how well the counters covered the run.
type GPUQuality struct {
	WindowSeconds Ratio  `json:"window_seconds"`
	Coverage      Ratio  `json:"coverage"`
	Why           string `json:"why"` // why this source; why none
}

// ClockQuality is how well clocks agree.
type ClockQuality struct {
	ResidualSeconds Ratio `json:"residual_seconds"`
	GPULagSeconds   Ratio `json:"gpu_lag_seconds"` // counters were this late at most, and were shifted back
}

// OwnCost is what the agent used.
type OwnCost struct {
	AgentCores Ratio `json:"agent_cores"`
	AgentRSS   Ratio `json:"agent_rss_bytes"`
}

// DamageReport counts what could not be read.
type DamageReport struct {
	BadFiles     uint64 `json:"unreadable_files"` // rings and segments that could not be understood at all
	TornTails    int    `json:"torn_tails"`
	BadFrames    int    `json:"bad_frames"`
	Undeclared   uint64 `json:"undeclared"` // records and notes of a stream whose declaration is missing
	LostNotes    uint64 `json:"lost_notes"`
	UnknownKinds uint64 `json:"unknown_kinds"`
	Torn         uint64 `json:"torn_records"`
	Lost         uint64 `json:"lost_records"`
	Contradicted uint64 `json:"contradictory_records"` // left out because they contradict themselves
	Unfinished   bool   `json:"unfinished"`            // the agent did not finish the recording
}

// Timeline is the run over time, for pictures. Times are seconds since the first observation.
type Timeline struct {
	Seconds float64       // length
	GPU     []TimelineGPU // counters per GPU
	Wait    []Interval    // data wait of rank 0's training thread (or the first rank seen); of a long run, neighbours are moved together
	Blocks  []TimelineBlock
	Marks   []TimelineMark // epoch starts, validation, checkpoints
}

// TimelineGPU is one GPU's counter windows.
type TimelineGPU struct {
	UUID    string
	Windows []Window
}

// Window is one counter window; NaN where unknown. Of a long run, most stand for several.
type Window struct {
	Begin, End, SM, Resident float64
	Folded                   int     // how many windows this one stands for; 0 = it is one
	Low, High                float64 // SM activity of those, least and most
}

// Interval is a span of seconds.
type Interval struct{ Begin, End float64 }

// TimelineBlock is one block of the cached-data test.
type TimelineBlock struct {
	Interval
	Leg  string
	Void bool
}

// TimelineMark is a named span.
type TimelineMark struct {
	Interval
	Name string
}
