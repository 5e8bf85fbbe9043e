package prometheus

import (
	"slices"

	"github.com/datawait/datawait/analysis/live"
)

// trainer is a rank whose times are Unix times.
type trainer struct {
	live.Rank
	moved float64 // s since 1970; 0 = never
}

const noFiles, noBytes = "no batch was built of which files and requests were counted", "no batch was built of which bytes were counted"

// rankTable is what a training process did.
var rankTable = table[trainer]{
	title:   "Training processes",
	subject: "one rank of a job, over its restarts; `rank` is empty where the process knows none",
	labels:  tenantAnd("rank"),
	values:  func(p *trainer) values { return tenantValues(p.Tenant, number(p.Rank.Rank.Get())) },
	merge:   func(into, from *trainer) { into.join(from) },
	carried: func(p *trainer) bool { return p.Carried },
	since:   func(p *trainer) uint64 { return p.Since },
	order: func(p *trainer) order {
		if p.Running {
			return ranksNow
		}
		return ended
	},
	families: slices.Concat(trainingFamilies, workerFamilies, hookFamilies),
}.made()

var trainingFamilies = []family[trainer]{
	{metric: metric{name: "datawait_rank_info", kind: gauge, help: "1, and the GPU that the rank trains on and how many ranks its job has.",
		from: "`Rank.GPU`, `Rank.WorldSize`; empty where not known", more: []string{"gpu_uuid", "world_size"}},
		of: func(p *trainer, e emit) { e(1, Clean(p.GPU), number(p.WorldSize.Get())) }},
	level("datawait_rank_running", "1 while the rank's process runs; 0 for the grace time after its end.", "`Rank.Running`",
		func(p *trainer) float64 { return truth(p.Running) }),
	shown("datawait_rank_last_moved_timestamp_seconds", "Unix time at which a step or a fetch was last seen, in seconds.", "`Rank.LastMoved`", "none was seen yet",
		func(p *trainer) (float64, bool) { return p.moved, p.moved > 0 }),
	total("datawait_steps_total", "Optimizer steps; fetches where no step is seen.", "`Rank.Steps`", func(p *trainer) float64 { return float64(p.Steps) }),
	total("datawait_fetches_total", "Batches the training loop asked a loader for, outside validation.", "`Rank.Fetches`", func(p *trainer) float64 { return float64(p.Fetches) }),
	total("datawait_epochs_total", "Epochs that began: first fetches of the training loaders.", "`Rank.Epochs`", func(p *trainer) float64 { return float64(p.Epochs) }),
	nanoseconds("datawait_training_seconds_total", "Seconds in the training loop outside epoch starts: the denominator of the wait share.", "`Rank.Training`",
		func(p *trainer) uint64 { return p.Training }),
	nanoseconds("datawait_data_wait_seconds_total", "Seconds of the training time in which the training thread waited for data.",
		"`Rank.Wait`; the wait share is this by `datawait_training_seconds_total`, sums by sums", func(p *trainer) uint64 { return p.Wait }),
	nanoseconds("datawait_data_wait_clocked_seconds_total", "Seconds of the data wait of which a device clock told how much was exposed.", "`Rank.WaitClocked`",
		func(p *trainer) uint64 { return p.WaitClocked }),
	nanoseconds("datawait_exposed_wait_seconds_total", "Seconds of the clocked data wait in which the device had nothing to run.",
		"`Rank.Exposed`; the exposed share of the wait is this by `datawait_data_wait_clocked_seconds_total`", func(p *trainer) uint64 { return p.Exposed }),
	nanoseconds("datawait_handoff_seconds_total", "Seconds of the data wait in which the batch had been built and sent already.",
		"`Rank.HandOff`; the share is this by `datawait_handoff_seen_seconds_total`", func(p *trainer) uint64 { return p.HandOff }),
	nanoseconds("datawait_handoff_seen_seconds_total", "Seconds of the data wait of which it is known when the batch was sent.", "`Rank.HandOffSeen`",
		func(p *trainer) uint64 { return p.HandOffSeen }),
	nanoseconds("datawait_epoch_start_seconds_total", "Seconds in which iterators were made, and their first batches waited for.", "`Rank.EpochStart`",
		func(p *trainer) uint64 { return p.EpochStart }),
	nanoseconds("datawait_validation_wait_seconds_total", "Seconds in which validation loops waited for data.", "`Rank.Validation`",
		func(p *trainer) uint64 { return p.Validation }),
	nanoseconds("datawait_checkpoint_seconds_total", "Seconds in which checkpoints were saved.", "`Rank.Checkpoint`", func(p *trainer) uint64 { return p.Checkpoint }),
}

var workerFamilies = []family[trainer]{
	level("datawait_workers", "Worker processes of the rank that are alive.", "`Rank.Workers.Running`", func(p *trainer) float64 { return float64(p.Workers.Running) }),
	total("datawait_worker_batches_total", "Batches that the rank's workers built.", "`Rank.Workers.Batches`", func(p *trainer) float64 { return float64(p.Workers.Batches) }),
	nanoseconds("datawait_worker_build_seconds_total", "Seconds the workers took for that, by the wall clock.", "`Rank.Workers.Build`", func(p *trainer) uint64 { return p.Workers.Build }),
	nanoseconds("datawait_worker_cpu_seconds_total", "Seconds the building threads were on a CPU.",
		"`Rank.Workers.CPU`; the share is this by `datawait_worker_cpu_seen_seconds_total`", func(p *trainer) uint64 { return p.Workers.CPU }),
	nanoseconds("datawait_worker_cpu_seen_seconds_total", "Seconds of building in which that was read.", "`Rank.Workers.CPUSeen`", func(p *trainer) uint64 { return p.Workers.CPUSeen }),
	nanoseconds("datawait_worker_run_queue_seconds_total", "Seconds the building threads could have run and had no CPU.",
		"`Rank.Workers.RunQueue`; the share is this by `datawait_worker_run_queue_seen_seconds_total`", func(p *trainer) uint64 { return p.Workers.RunQueue }),
	nanoseconds("datawait_worker_run_queue_seen_seconds_total", "Seconds of building in which that was read.", "`Rank.Workers.QueueSeen`",
		func(p *trainer) uint64 { return p.Workers.QueueSeen }),
	nanoseconds("datawait_worker_off_cpu_seconds_total", "Seconds of building, where both were read, in which the threads neither ran nor could have: they waited for something.",
		"`Rank.Workers.OffCPU`", func(p *trainer) uint64 { return p.Workers.OffCPU }),
	later(files, "datawait_files_opened_total", "Files that the workers opened.", "`Rank.Workers.Files`; per batch: by `datawait_io_seen_batches_total`", noFiles,
		func(p *trainer) uint64 { return p.Workers.Files }, func(p *trainer) bool { return p.Workers.IOSeen > 0 }),
	later(files, "datawait_requests_total", "HTTP requests that the workers sent.", "`Rank.Workers.Requests`; per batch: by `datawait_io_seen_batches_total`", noFiles,
		func(p *trainer) uint64 { return p.Workers.Requests }, func(p *trainer) bool { return p.Workers.IOSeen > 0 }),
	later(files, "datawait_io_seen_batches_total", "Batches of which files and requests were counted.", "`Rank.Workers.IOSeen`", noFiles,
		func(p *trainer) uint64 { return p.Workers.IOSeen }, func(p *trainer) bool { return p.Workers.IOSeen > 0 }),
	later(readBytes, "datawait_read_bytes_total", "Bytes that the workers' read calls returned: at least so many were read, for neither mapped files nor sockets count.",
		"`Rank.Workers.ReadBytes`; per batch: by `datawait_read_seen_batches_total`", noBytes,
		func(p *trainer) uint64 { return p.Workers.ReadBytes }, func(p *trainer) bool { return p.Workers.ReadSeen > 0 }),
	later(readBytes, "datawait_read_seen_batches_total", "Batches of which bytes were counted.", "`Rank.Workers.ReadSeen`", noBytes,
		func(p *trainer) uint64 { return p.Workers.ReadSeen }, func(p *trainer) bool { return p.Workers.ReadSeen > 0 }),
}

var hookFamilies = []family[trainer]{
	total("datawait_hook_records_total", "Records of the hook that were taken.", "`Rank.Hook.Records`", func(p *trainer) float64 { return float64(p.Hook.Records) }),
	total("datawait_hook_records_lost_total", "Records of the hook that were overwritten before they were read, or torn.", "`Rank.Hook.Lost`",
		func(p *trainer) float64 { return float64(p.Hook.Lost) }),
	total("datawait_hook_errors_total", "Errors caught inside the hook.", "`Rank.Hook.Errors`", func(p *trainer) float64 { return float64(p.Hook.Errors) }),
	level("datawait_hook_disabled", "1 if the hook switched itself off in a running process of the rank, else 0.", "`Rank.Hook.Disabled`",
		func(p *trainer) float64 { return truth(p.Hook.Disabled) }),
	nanoseconds("datawait_hook_own_seconds_total", "Seconds the hook itself took in the fetches in which it looked.",
		"`Rank.Hook.OwnTime`; per fetch: by `datawait_hook_looks_total`", func(p *trainer) uint64 { return p.Hook.OwnTime }),
	total("datawait_hook_looks_total", "Fetches in which the hook looked at what it takes itself.", "`Rank.Hook.Looks`", func(p *trainer) float64 { return float64(p.Hook.Looks) }),
}

// nanoseconds is a counter of seconds that the book keeps in ns.
func nanoseconds[T any](name, help, from string, ns func(*T) uint64) family[T] {
	return total(name, help, from, func(t *T) float64 { return seconds(ns(t)) })
}

// later is a counter that is there once something was seen.
func later[T any](p part, name, help, from, gone string, n func(*T) uint64, seen func(*T) bool) family[T] {
	return family[T]{metric: metric{name: name, help: help, from: from, gone: gone}, part: p, of: maybe(func(t *T) (float64, bool) {
		return float64(n(t)), seen(t)
	})}
}

// join adds a rank whose labels are the same: two jobs of one name, or names that are the same once they are clean.
func (p *trainer) join(q *trainer) {
	if q.Running && !p.Running {
		p.GPU, p.WorldSize = q.GPU, q.WorldSize
	}
	p.Running, p.Carried = p.Running || q.Running, p.Carried || q.Carried
	p.moved = max(p.moved, q.moved)
	p.Steps += q.Steps
	p.Fetches += q.Fetches
	p.Epochs += q.Epochs
	p.Training += q.Training
	p.Wait += q.Wait
	p.WaitClocked += q.WaitClocked
	p.Exposed += q.Exposed
	p.HandOff += q.HandOff
	p.HandOffSeen += q.HandOffSeen
	p.EpochStart += q.EpochStart
	p.Validation += q.Validation
	p.Checkpoint += q.Checkpoint
	w, v := &p.Workers, q.Workers
	*w = live.Workers{Running: w.Running + v.Running, Batches: w.Batches + v.Batches, Build: w.Build + v.Build, CPU: w.CPU + v.CPU, CPUSeen: w.CPUSeen + v.CPUSeen,
		RunQueue: w.RunQueue + v.RunQueue, QueueSeen: w.QueueSeen + v.QueueSeen, OffCPU: w.OffCPU + v.OffCPU, Files: w.Files + v.Files, Requests: w.Requests + v.Requests,
		IOSeen: w.IOSeen + v.IOSeen, ReadBytes: w.ReadBytes + v.ReadBytes, ReadSeen: w.ReadSeen + v.ReadSeen}
	h, g := &p.Hook, q.Hook
	*h = live.Hook{Records: h.Records + g.Records, Lost: h.Lost + g.Lost, Errors: h.Errors + g.Errors, Disabled: h.Disabled || g.Disabled,
		OwnTime: h.OwnTime + g.OwnTime, Looks: h.Looks + g.Looks}
}
