package sample

import (
	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

func retailFindings(r *analysis.Result) {
	r.Verdicts = []analysis.Verdict{
		{
			ID: "storage-latency", Title: "each batch waits 61 ms for 38 small requests, one after the other", Confidence: 0.93, Share: num(0.58),
			Evidence: []analysis.Evidence{
				{Metric: "off_cpu_seconds_per_batch", Value: 0.061, Unit: "seconds", Source: "hook clock"},
				{Metric: "requests_per_batch", Value: 38, Unit: "count", Source: "hook"},
				{Metric: "host_busy_cores", Value: 0.92, Unit: "cores", Source: "/proc/stat"},
				{Metric: "bytes_per_batch", Value: 4.6e6, Unit: "bytes", Source: "socket diagnostics"},
			},
			FalsifiedBy: "a run on shards that does not become faster",
		},
		{
			ID: "too-few-workers", Title: "2 workers cannot hide 85 ms of building behind 14.9 ms of computing", Confidence: 0.81, Share: num(0.48),
			Evidence:    []analysis.Evidence{{Metric: "workers_that_would_do", Value: 6, Unit: "count", Source: "loader model"}},
			FalsifiedBy: "a run with 8 workers that waits as long",
		},
	}
	r.Dropped = []analysis.Dropped{
		{ID: "cpu-transform", Reason: "workers compute 22 ms of 85 ms; both cores are idle 54 % of the time"},
		{ID: "storage-bandwidth", Reason: "104 MB/s received, and a block with more workers in flight received more"},
		{ID: "copy", Reason: "batches already on the GPU save 1.6 % of a step"},
	}
}

func retailFixes(r *analysis.Result) {
	fix := func(position int, id, title string, step, low, high, wait float64, effort, how string) analysis.Fix {
		return analysis.Fix{
			ID: id, Position: position, Title: title, Effort: effort, How: how, Recipe: fixes.Recipe(id),
			Predicted: analysis.Prediction{
				StepSeconds:    est(step, low, high, 500, stat.GradeB, "loader model"),
				StepSavedShare: est(1-step/0.0442, 1-high/0.0442, 1-low/0.0442, 500, stat.GradeB, "loader model"), WaitRemovedShare: num(wait),
				EpochSeconds: num((0.0442 - step) * 412), GPUHoursPerDay: num(48 * (1 - step/0.0442)),
			},
			Measured: unit.None[stat.Estimate]("not tried in this run"),
		}
	}
	shards := fix(1, "shard-files", "pack small files into shards", 0.0186, 0.0179, 0.0198, 0.91, "a build step per data version", "write the 64 files of a batch into one shard and read it in one request")
	shards.Assumes = []string{"a request for a shard takes as long as one for a file of today, plus its bytes"}
	shards.Needs = "room for a second copy of the data set"
	workers := fix(2, "more-workers", "8 workers instead of 2", 0.0225, 0.0210, 0.0259, 0.77, "one argument", "set num_workers=8 in the DataLoader of train.py")
	workers.Measured = est(0.478, 0.455, 0.501, 6, stat.GradeA, "device events")
	once := fix(3, "preprocess-once", "preprocess once per data version", 0.0379, 0.0366, 0.0390, 0.22, "a job per data version", "decode and resize when the data version is built, and store tensors")
	fetch := fix(4, "prefetch-factor", "prefetch 4 batches per worker", 0.0439, 0.0428, 0.0451, 0.01, "one argument", "set prefetch_factor=4")
	r.Fixes = []analysis.Fix{shards, workers, once, fetch}
	r.Plan = []analysis.PlanStep{{ID: "shard-files", StepSeconds: 0.0186, BottleneckAfter: "loader-bound"}, {ID: "preprocess-once", StepSeconds: 0.0162, BottleneckAfter: "compute-bound"}}
	r.NoHelp = []analysis.NoHelp{
		{ID: "mixed-precision", Title: "mixed precision", Reason: "compute hides behind the wait", SavedShare: num(0)},
		{ID: "pin-memory", Title: "pin_memory", Reason: "it is on already", SavedShare: num(0)},
		{ID: "nvme-cache", Title: "local NVMe cache of raw files", Reason: "the bytes are few; opening them is what takes time", SavedShare: num(0.04)},
		{ID: "more-gpus", Title: "more GPUs", Reason: "they would wait as well", SavedShare: num(0)},
	}
	r.Unpriced = []analysis.Unpriced{{ID: "parallel-filesystem", Title: "a parallel file system", How: "mount the data set from it", Reason: "its latency was not measured"}}
}
