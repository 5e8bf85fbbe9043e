package compare

import (
	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// The names of the rows. Other programs read them: add freely, rename never.
const (
	RowSM            = "sm_active_ratio"
	RowLiveSM        = "live_sm_active_ratio"
	RowWait          = "data_wait_share"
	RowExposed       = "exposed_wait_share"
	RowStep          = "step_seconds"
	RowCached        = "cached_step_seconds"
	RowSamples       = "samples_per_second_and_rank"
	RowEpochStart    = "epoch_start_seconds"
	RowEpoch         = "epoch_seconds"
	RowEpochGPUHours = "epoch_gpu_hours"
	RowEpochCost     = "epoch_cost"
	RowRun           = "run_seconds"
	RowRunGPUHours   = "run_gpu_hours"
	RowRunCost       = "run_cost"
	RowRequests      = "epoch_requests"
	RowFiles         = "epoch_files"
	RowBytes         = "epoch_bytes"
)

// RowIDs returns the names of all rows whose number should go one way.
func RowIDs() []string {
	var ids []string
	for _, m := range measures {
		ids = append(ids, m.id)
	}
	return ids
}

// measure is one row: what it shows, which way it should go, and what must be alike for two of them to be compared.
type measure struct {
	id, unit string
	want     want
	needs    []alike
	of       func(side, Options) analysis.Est
}

// alike is something that must be the same in both runs.
type alike string

const (
	sameRanks    alike = "ranks"
	sameBatch    alike = "batch-size"
	sameDataset  alike = "dataset-size"
	sameGPU      alike = "gpu-model"
	sameStep     alike = "step-is" // what a step is
	trustedGPU   alike = "untrusted-counters"
	enoughSteps  alike = "few-steps"
	sameBytes    alike = "bytes-source"
	samePrice    alike = "price"
	sameExposure alike = "exposure"
)

var (
	ofStep  = []alike{enoughSteps, sameGPU, sameRanks, sameBatch, sameStep}
	ofEpoch = []alike{enoughSteps, sameGPU, sameDataset}
)

// measures is the table, in the order in which it is read.
var measures = []measure{
	{RowSM, unitRatio, more, []alike{trustedGPU, sameGPU}, func(s side, _ Options) analysis.Est { return s.sm() }},
	{RowLiveSM, unitRatio, more, []alike{trustedGPU, sameGPU}, func(s side, _ Options) analysis.Est { return s.leg("live").SMActiveRatio }},
	{RowWait, unitRatio, less, []alike{enoughSteps, sameGPU}, func(s side, _ Options) analysis.Est { return s.Step.DataWaitShare }},
	{RowExposed, unitRatio, less, []alike{enoughSteps, sameGPU}, func(s side, _ Options) analysis.Est { return s.Step.ExposedWaitShare }},
	{RowStep, unitSeconds, less, ofStep, func(s side, _ Options) analysis.Est { return s.Step.MeanSeconds }},
	{RowCached, unitSeconds, less, []alike{sameGPU, sameRanks, sameBatch, sameStep}, func(s side, _ Options) analysis.Est { return s.leg("host-cached").StepSeconds }},
	{RowSamples, unitRate, more, []alike{enoughSteps, sameGPU, sameRanks}, func(s side, _ Options) analysis.Est { return s.rate() }},
	{RowEpochStart, unitSeconds, less, nil, func(s side, _ Options) analysis.Est { return s.start() }},
	{RowEpoch, unitSeconds, less, append([]alike{sameRanks}, ofEpoch...), func(s side, _ Options) analysis.Est { return s.epoch() }},
	{RowEpochGPUHours, unitGPUHours, less, ofEpoch, func(s side, _ Options) analysis.Est { return s.gpuHours(s.epoch()) }},
	{RowEpochCost, unitMoney, less, ofEpoch, func(s side, o Options) analysis.Est { return s.cost(s.gpuHours(s.epoch()), o.price) }},
	{RowRun, unitSeconds, less, append([]alike{sameRanks}, ofEpoch...), func(s side, o Options) analysis.Est { return s.run(o) }},
	{RowRunGPUHours, unitGPUHours, less, ofEpoch, func(s side, o Options) analysis.Est { return s.gpuHours(s.run(o)) }},
	{RowRunCost, unitMoney, less, ofEpoch, func(s side, o Options) analysis.Est { return s.cost(s.gpuHours(s.run(o)), o.price) }},
	{RowRequests, unitCount, less, []alike{sameDataset}, func(s side, _ Options) analysis.Est { return s.perEpoch(requests) }},
	{RowFiles, unitCount, less, []alike{sameDataset}, func(s side, _ Options) analysis.Est { return s.perEpoch(files) }},
	{RowBytes, unitBytes, less, []alike{sameDataset, sameBytes}, func(s side, _ Options) analysis.Est { return s.perEpoch(bytes) }},
}

// perBatch is what building a batch takes. Batches of different sizes are not compared.
var perBatch = []measure{
	{"build_seconds", unitSeconds, less, []alike{sameBatch}, func(s side, _ Options) analysis.Est { return s.built() }},
	{"cpu_seconds", unitSeconds, less, []alike{sameBatch}, func(s side, _ Options) analysis.Est { return s.perBatch(cpu) }},
	{"off_cpu_seconds", unitSeconds, less, []alike{sameBatch}, func(s side, _ Options) analysis.Est { return s.perBatch(offCPU) }},
	{"run_queue_seconds", unitSeconds, less, []alike{sameBatch}, func(s side, _ Options) analysis.Est { return s.perBatch(runQueue) }},
	{"handoff_seconds", unitSeconds, less, []alike{sameBatch}, func(s side, _ Options) analysis.Est { return s.perBatch(handoff) }},
	{"requests", unitCount, less, []alike{sameBatch}, func(s side, _ Options) analysis.Est { return s.perBatch(requests) }},
	{"files", unitCount, less, []alike{sameBatch}, func(s side, _ Options) analysis.Est { return s.perBatch(files) }},
	{"bytes", unitBytes, less, []alike{sameBatch, sameBytes}, func(s side, _ Options) analysis.Est { return s.perBatch(bytes) }},
}

func cpu(l *analysis.Loader) analysis.Ratio      { return l.CPUSeconds }
func offCPU(l *analysis.Loader) analysis.Ratio   { return l.OffCPUSeconds }
func runQueue(l *analysis.Loader) analysis.Ratio { return l.RunQueueSeconds }
func handoff(l *analysis.Loader) analysis.Ratio  { return l.HandoffSeconds }
func requests(l *analysis.Loader) analysis.Ratio { return l.Requests }
func files(l *analysis.Loader) analysis.Ratio    { return l.Files }
func bytes(l *analysis.Loader) analysis.Ratio    { return l.Bytes }

// rate is how many samples a rank trains on in a second.
func (s side) rate() analysis.Est {
	n, ok := s.samples().Get()
	if !ok {
		return none(s.samples())
	}
	return product(s.Job.StepsPerSecond, n)
}

// run is the length of a whole training: so many epochs, where the reader said how many, else what two runs took that ended by
// themselves.
func (s side) run(o Options) analysis.Est {
	if n, ok := o.epochs.Get(); ok {
		return product(s.epoch(), float64(n))
	}
	if o.whole != "" {
		return unit.None[stat.Estimate](o.whole)
	}
	wall, ok := s.Job.WallSeconds.Get()
	if !ok {
		return none(s.Job.WallSeconds)
	}
	return unit.Some(stat.Exact(wall).Estimate(1, stat.GradeA, "clock"))
}

// wholeRuns says why what the runs took is not the length of the training; "" where it is.
func wholeRuns(b, a side) string {
	for _, s := range []side{b, a} {
		if by, ok := s.EndedBy.Get(); !ok || by != "command" || s.ExitCode.Or(1) != 0 || s.Baseline != nil {
			return "not both were watched from beginning to end; --epochs reckons a run of so many"
		}
	}
	if b.Job.Steps != a.Job.Steps {
		return "the two runs made different numbers of steps; --epochs reckons a run of so many"
	}
	return ""
}
