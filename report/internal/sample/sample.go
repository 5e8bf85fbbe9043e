// Package sample builds results of jobs that never ran, one per situation a report must put into words.
//
// They are the input of the golden tests of every renderer. Their numbers are invented and consistent with each other:
// parts sum to their wholes, accounts to their allocation.
package sample

import (
	"encoding/json"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stage"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Case is one sample and its name, which is also the name of its golden files.
type Case struct {
	Name   string
	Result *analysis.Result
}

// All returns every sample, built anew.
func All() []Case {
	return []Case{
		{"retail", climbed(Retail(), 0)}, {"compute-bound", reported(climbed(ComputeBound(), 2.5))}, {"no-gpu", NoGPU()}, {"no-steps", climbed(NoSteps(), 0)},
		{"untrusted", climbed(Untrusted(), 2.5)}, {"killed", climbed(Killed(), 0)}, {"hostile", reported(climbed(Hostile(), 1e-9))}, {"ranks", climbed(Ranks(), 0)},
		{"marginal", climbed(Marginal(), 0)}, {"empty", &analysis.Result{}},
	}
}

func num(x float64) analysis.Ratio { return unit.Some(x) }

func est(value, low, high float64, n int, grade stat.Grade, source string) analysis.Est {
	return unit.Some(stat.Estimate{Value: value, Low: low, High: high, N: n, Grade: grade, Source: source})
}

// Retail is the job of the README: two ranks read a product catalogue of small files from an object store, with two workers on two cores.
func Retail() *analysis.Result {
	r := &analysis.Result{
		Schema: analysis.Schema, Version: "0.1.0", Emulated: true, Nodes: []string{"node-a"},
		StartedAt: unit.Some(time.Date(2026, 11, 30, 7, 12, 0, 0, time.UTC)), EndedBy: unit.Some("datawait"), ExitCode: unit.Some(0),
		Job: analysis.Job{
			Name: "train.py", Command: []string{"python3", "train.py", "--epochs", "1"}, Ranks: 2, Steps: 412, FetchesPerStep: num(1), StepIs: "optimizer step",
			WallSeconds: num(161.2), StepsPerSecond: est(22.62, 22.1, 23.1, 14, stat.GradeB, "hook clock"), SamplesPerBatch: num(64), Throwaway: true,
		},
		Step:     retailStep(),
		Ranks:    []analysis.Rank{retailRank(0), retailRank(1)},
		Loaders:  []analysis.Loader{retailLoader()},
		GPUs:     []analysis.GPU{retailGPU("GPU-5b1c9a70-11aa-4d2e-9f00-0123456789ab", 0), retailGPU("GPU-7e02dd41-22bb-4c3f-8e11-ba9876543210", 1)},
		Baseline: retailBaseline(),
		Model: analysis.Model{
			Trusted: true, Name: "replay of the loader's queue", ReplayError: num(0.021), UsableCores: num(2), ComputeSeconds: num(0.0149),
			SharedSeconds: unit.None[float64]("one level of parallelism was seen"), WorkerSeconds: num(0.0425), CoreSeconds: num(0.012), Binding: "workers",
		},
		Host:    retailHost(),
		Quality: retailQuality(),
	}
	retailFindings(r)
	retailFixes(r)
	r.Timeline = retailTimeline()
	return r
}

func retailStep() analysis.Step {
	return analysis.Step{
		MeanSeconds: est(0.0442, 0.0431, 0.0453, 14, stat.GradeA, "device events"), DataWaitShare: est(0.648, 0.639, 0.657, 14, stat.GradeB, "hook clock"),
		ExposedWaitShare: est(0.636, 0.627, 0.645, 14, stat.GradeA, "emulated device events"), HandoffShare: num(0.024), EpochStartShare: num(0.003),
		P50WaitSeconds: num(0.0011), P99WaitSeconds: num(0.0874), N: 824,
		Anatomy: []analysis.Part{
			{Name: "compute", Seconds: 0.0149, Share: 0.337}, {Name: "exposed_wait", Seconds: 0.0281, Share: 0.636},
			{Name: "copy", Seconds: 0.0004, Share: 0.009}, {Name: "host", Seconds: 0.0008, Share: 0.018},
		},
	}
}

func retailRank(n int) analysis.Rank {
	uuid := []string{"GPU-5b1c9a70-11aa-4d2e-9f00-0123456789ab", "GPU-7e02dd41-22bb-4c3f-8e11-ba9876543210"}[n]
	return analysis.Rank{
		Rank: n, LocalRank: unit.Some(n), Host: "node-a", PID: 4100 + n, Restart: unit.Some(0), GPUUUID: unit.Some(uuid), Steps: 412,
		DataWaitShare: num(0.648 + 0.002*float64(n)), ExposedWaitShare: num(0.636 + 0.001*float64(n)), MeanStepSeconds: num(0.0442), MainCPUCores: num(0.31), Ended: "parked",
	}
}

func retailLoader() analysis.Loader {
	return analysis.Loader{
		ID: 1, Role: "training", Kind: "torch", Dataset: "CatalogueDataset",
		Arguments:   map[string]json.RawMessage{"num_workers": json.RawMessage("2"), "prefetch_factor": json.RawMessage("2"), "pin_memory": json.RawMessage("true")},
		WorkersSeen: 2, BatchesPerEpoch: unit.Some(412), Fetches: 824, WaitSeconds: 23.6,
		BuildSeconds: est(0.085, 0.083, 0.087, 824, stat.GradeB, "hook clock"), SoloBuildSeconds: est(0.079, 0.077, 0.082, 64, stat.GradeB, "hook clock"),
		CPUSeconds: num(0.022), RunQueueSeconds: num(0.002), OffCPUSeconds: num(0.061), CollateSeconds: num(0.0031), HandoffSeconds: num(0.0011),
		Bytes: num(4.6e6), BytesSource: "socket diagnostics", BatchBytes: num(38.5e6), Tensors: num(2), Files: num(0), Requests: num(38), Samples: num(64),
		EpochStartSeconds: est(0.42, 0.31, 0.55, 2, stat.GradeB, "hook clock"), Epochs: 1,
		Stages: retailStages(), Stacks: retailStacks(), Transforms: []analysis.TransformTime{
			{Name: "torchvision/transforms/transforms:RandomResizedCrop", Stage: "random augmentation", Calls: 52_736, SecondsPerCall: 112e-6, Seconds: num(0.00717), Share: num(0.0843)},
			{Name: "torchvision/transforms/transforms:ToTensor", Stage: "transform", Calls: 52_736, SecondsPerCall: 31e-6, Seconds: num(0.00198), Share: num(0.0233)},
		},
		Sampling: analysis.Sampling{Samples: 3180, Processes: 2, OutsideShare: num(0), Cores: num(0.0021), CountersOnCPU: num(0.282), Agree: unit.Some(true)},
	}
}

// retailStages is where a batch of 85 ms goes inside.
func retailStages() []analysis.Stage {
	kind := func(name string, on, off float64, functions ...analysis.StageFunction) analysis.Stage {
		share := func(v float64) analysis.Est {
			return est(v, max(0, v-0.018), v+0.018, 3180, stat.GradeB, "looks at the workers' stacks")
		}
		return analysis.Stage{Stage: name, Share: share(on + off), OnCPUShare: share(on), OffCPUShare: share(off), Seconds: num((on + off) * 0.085), Functions: functions}
	}
	return []analysis.Stage{
		kind("read", 0.021, 0.712, analysis.StageFunction{Function: "requests/sessions.py:Session.get", Share: 0.733, OnCPUShare: 0.021}),
		kind("decode", 0.125, 0.006, analysis.StageFunction{Function: "PIL/ImageFile.py:ImageFile.load", Share: 0.131, OnCPUShare: 0.125}),
		kind("random augmentation", 0.077, 0.006, analysis.StageFunction{Function: "torchvision/transforms/transforms.py:RandomResizedCrop.forward", Share: 0.083, OnCPUShare: 0.077}),
		kind("collate", 0.030, 0.006, analysis.StageFunction{Function: "torch/utils/data/_utils/collate.py:collate_tensor_fn", Share: 0.036, OnCPUShare: 0.030}),
		kind("other", 0.011, 0.006, analysis.StageFunction{Function: "catalogue/data.py:CatalogueDataset.__getitem__", Share: 0.017, OnCPUShare: 0.011}),
	}
}

// retailStacks is the same as the looks found it, in seconds.
func retailStacks() *stage.Tree {
	const item = "catalogue/data.py:CatalogueDataset.__getitem__"
	const fetch = "torch/utils/data/_utils/fetch.py:_MapDatasetFetcher.fetch"
	var t stage.Tree
	add := func(on, off float64, samples int, path ...string) {
		t.Add(append([]string{fetch}, path...), on, off, 0, samples)
	}
	add(3.3, 113.2, 2331, item, "requests/sessions.py:Session.get", "http/client.py:HTTPConnection.getresponse", "socket.py:SocketIO.readinto")
	add(19.9, 0.9, 417, item, "catalogue/data.py:decode", "PIL/Image.py:Image.convert", "PIL/ImageFile.py:ImageFile.load")
	add(12.3, 0.9, 264, item, "torchvision/transforms/transforms.py:Compose.__call__", "torchvision/transforms/transforms.py:RandomResizedCrop.forward", "torchvision/transforms/functional.py:resized_crop")
	add(4.8, 0.9, 114, "torch/utils/data/_utils/collate.py:default_collate", "torch/utils/data/_utils/collate.py:collate_tensor_fn")
	add(1.7, 1.0, 54, item)
	t.Sort()
	return &t
}

func retailGPU(uuid string, n int) analysis.GPU {
	const allocated = 161_200_000_000
	accounts := map[string]int64{
		"not_held": 1_100_000_000, "startup": 5_300_000_000, "epoch_start": 500_000_000, "exposed_wait": 97_200_000_000, "copy": 1_400_000_000,
		"compute": 46_100_000_000, "host": 2_800_000_000, "idle_held": 3_600_000_000,
	}
	rest := int64(allocated)
	for _, ns := range accounts {
		rest -= ns
	}
	accounts["unattributed"] = rest
	return analysis.GPU{
		UUID: uuid, GI: unit.None[int]("not a MIG slice"), CI: unit.None[int]("not a MIG slice"), Name: "Emulated A100-SXM4-40GB", Host: "node-a", Source: "emulated", Emulated: true,
		Grade: stat.GradeA, Coverage: num(1), Untrusted: num(0), Holders: []string{"train.py (4100)"}, AllocatedNS: allocated,
		HeldRatio: num(0.993), ResidentRatio: num(0.288 + 0.001*float64(n)), SMActiveRatio: est(0.259+0.002*float64(n), 0.251, 0.269, 1612, stat.GradeA, "emulated counters"),
		TensorActiveRatio: num(0.129), SMActiveComputing: est(0.882, 0.871, 0.893, 402, stat.GradeA, "emulated counters"),
		SMActiveWaiting: est(0.004, 0, 0.011, 402, stat.GradeA, "emulated counters"), AccountsNS: accounts, CollectiveNS: unit.None[int64]("no source tells kernels that exchange gradients from others"), WaitUpperBoundNS: unit.None[int64]("exposure is known"),
	}
}

func retailBaseline() *analysis.Baseline {
	leg := func(step, low, high, sm, smLow, smHigh float64, blocks int) analysis.Leg {
		return analysis.Leg{
			StepSeconds:   est(step, low, high, blocks, stat.GradeA, "device events"),
			SMActiveRatio: est(sm, smLow, smHigh, blocks, stat.GradeA, "emulated counters"), Blocks: blocks, Steps: blocks * 16,
		}
	}
	return &analysis.Baseline{
		Legs: map[string]analysis.Leg{
			"live": leg(0.0442, 0.0431, 0.0453, 0.261, 0.251, 0.270, 14), "host-cached": leg(0.0159, 0.0156, 0.0162, 0.881, 0.872, 0.889, 14),
			"host-cached-busy": leg(0.0168, 0.0163, 0.0174, 0.842, 0.829, 0.853, 8), "device-cached": leg(0.0152, 0.0150, 0.0155, 0.902, 0.894, 0.910, 8),
		},
		Ceiling: est(2.78, 2.64, 2.95, 14, stat.GradeA, "device events"), SavedSeconds: est(0.0283, 0.0272, 0.0294, 14, stat.GradeA, "device events"),
		CopyShare: num(0.016), InterferenceShare: num(0.020), UnexplainedShare: num(0.004), Pairs: 14,
		Skipped:    []analysis.SkippedLeg{{Leg: "reread", Reason: "the dataset is no map-style dataset"}},
		Conclusion: "input-pipeline", Why: "SM activity rises from 26 % to 88 % on cached data",
	}
}

func retailHost() analysis.Host {
	return analysis.Host{
		Cores: num(2), UsableCores: num(2), QuotaCores: num(2), BusyCores: num(0.92), ForeignCores: num(0.04), JobCores: num(0.86), WorkerRunQueue: num(0.05),
		ThrottledRatio: num(0), CPUPressure: num(0.03), IOPressure: num(0.01), MemoryPressure: num(0),
		ReadBytesRate: num(0), ReceivedRate: num(104e6),
	}
}

func retailQuality() analysis.Quality {
	return analysis.Quality{
		Hook:    analysis.HookQuality{Records: 9_871, AddedSeconds: num(4.4e-6)},
		GPU:     analysis.GPUQuality{WindowSeconds: num(0.1), Coverage: num(1), Why: "the emulated device was asked for"},
		Clock:   analysis.ClockQuality{ResidualSeconds: num(0.00012)},
		OwnCost: analysis.OwnCost{AgentCores: num(0.011), AgentRSS: num(41.3e6)},
	}
}
