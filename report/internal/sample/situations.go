package sample

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// ComputeBound is a job whose loader keeps up: no fix of the input pipeline is worth making.
func ComputeBound() *analysis.Result {
	r := Retail()
	r.Emulated, r.Job.Name, r.Job.Command = false, "pretrain.py", []string{"python3", "pretrain.py"}
	r.Step.MeanSeconds = est(0.412, 0.410, 0.414, 20, stat.GradeA, "device events")
	r.Step.DataWaitShare, r.Step.ExposedWaitShare = est(0.0034, 0.0029, 0.0040, 20, stat.GradeB, "hook clock"), est(0.0021, 0.0016, 0.0027, 20, stat.GradeA, "device events")
	r.Step.Anatomy = []analysis.Part{{Name: "exposed_wait", Seconds: 0.00087, Share: 0.0021}, {Name: "copy", Seconds: 0.0021, Share: 0.0051}, {Name: "compute", Seconds: 0.40703, Share: 0.9879}, {Name: "host", Seconds: 0.002, Share: 0.0049}}
	for i := range r.GPUs {
		g := &r.GPUs[i]
		g.Name, g.Source, g.Emulated = "NVIDIA A100-SXM4-80GB", "dcgm", false
		g.ResidentRatio, g.SMActiveRatio, g.TensorActiveRatio = num(0.989), est(0.913, 0.911, 0.915, 1612, stat.GradeA, "DCGM counters"), num(0.524)
		g.AccountsNS = map[string]int64{"compute": g.AllocatedNS - 9e9, "startup": 6e9, "host": 3e9}
	}
	r.Baseline.Legs = map[string]analysis.Leg{
		"live":        {StepSeconds: est(0.412, 0.410, 0.414, 10, stat.GradeA, "device events"), SMActiveRatio: est(0.93, 0.928, 0.932, 10, stat.GradeA, "DCGM counters"), Blocks: 10, Steps: 160},
		"host-cached": {StepSeconds: est(0.411, 0.409, 0.413, 10, stat.GradeA, "device events"), SMActiveRatio: est(0.93, 0.928, 0.933, 10, stat.GradeA, "DCGM counters"), Blocks: 10, Steps: 160},
	}
	r.Baseline.Ceiling, r.Baseline.SavedSeconds = est(1.002, 0.996, 1.009, 10, stat.GradeA, "device events"), est(0.001, -0.002, 0.004, 10, stat.GradeA, "device events")
	r.Baseline.Conclusion, r.Baseline.Why, r.Baseline.Skipped = "not-input", "", nil
	r.Verdicts = []analysis.Verdict{{ID: "compute-bound", Title: "the GPUs compute for 99 % of a step", Confidence: 0.97, Share: num(0.988), FalsifiedBy: "a faster step on batches in memory"}}
	r.Fixes, r.Plan, r.Unpriced = nil, nil, nil
	r.NoHelp = []analysis.NoHelp{{ID: "more-workers", Title: "more workers", Reason: "the queue is never empty", SavedShare: num(0)}, {ID: "preprocess-once", Title: "preprocess once per data version", Reason: "workers are idle 83 % of the time", SavedShare: num(0.0012)}}
	r.Quality.GPU.Why = "a host engine runs on this node"
	r.Timeline = analysis.Timeline{}
	return r
}

// NoGPU is a job on a machine where no GPU could be sampled; what it waits for is known all the same.
func NoGPU() *analysis.Result {
	r := Retail()
	r.Emulated = false
	r.GPUs, r.Timeline.GPU = nil, nil
	none := unit.None[stat.Estimate]("no GPU was sampled")
	r.Step.ExposedWaitShare = none
	r.Step.Anatomy = []analysis.Part{{Name: "data_wait", Seconds: 0.0286, Share: 0.648}, {Name: "host", Seconds: 0.0156, Share: 0.352}}
	for i := range r.Ranks {
		r.Ranks[i].GPUUUID, r.Ranks[i].ExposedWaitShare = unit.None[string]("the hook saw no CUDA device"), unit.None[float64]("no GPU was sampled")
	}
	for id, leg := range r.Baseline.Legs {
		leg.SMActiveRatio = none
		r.Baseline.Legs[id] = leg
	}
	r.Quality.GPU = analysis.GPUQuality{WindowSeconds: unit.None[float64]("no GPU was sampled"), Coverage: unit.None[float64]("no GPU was sampled"), Why: "libnvidia-ml.so.1 was not found"}
	return r
}

// NoSteps is a run whose hook never loaded.
func NoSteps() *analysis.Result {
	r := Retail()
	why := "the hook was not loaded"
	r.Job.Steps, r.Job.FetchesPerStep, r.Job.StepsPerSecond, r.Job.SamplesPerBatch = 0, unit.None[float64](why), unit.None[stat.Estimate](why), unit.None[float64](why)
	r.Step = analysis.Step{MeanSeconds: unit.None[stat.Estimate](why), DataWaitShare: unit.None[stat.Estimate](why), ExposedWaitShare: unit.None[stat.Estimate](why)}
	r.Ranks, r.Loaders, r.Baseline, r.Fixes, r.NoHelp, r.Plan, r.Unpriced, r.Dropped = nil, nil, nil, nil, nil, nil, nil, nil
	r.Verdicts = []analysis.Verdict{{ID: "hook-not-loaded", Title: "no spool appeared within 30 s of a Python process: it runs with -I, or its launcher drops the environment", Confidence: 1}}
	r.Model = analysis.Model{Reason: "no step was seen, so there is nothing to predict from"}
	r.Quality.Hook = analysis.HookQuality{AddedSeconds: unit.None[float64](why)}
	r.Timeline.Wait, r.Timeline.Blocks, r.Timeline.Marks = nil, nil, nil
	return r
}

// Untrusted is a job whose counters contradict each other.
func Untrusted() *analysis.Result {
	r := Retail()
	r.Emulated = false
	for i := range r.GPUs {
		g := &r.GPUs[i]
		g.Name, g.Source, g.Emulated, g.Grade, g.Untrusted = "NVIDIA A100-SXM4-80GB MIG 3g.40gb", "dcgm", false, stat.GradeC, num(0.94)
		g.GI, g.CI = unit.Some(2), unit.Some(0)
		g.SMActiveRatio = unit.Broken[stat.Estimate]("SM activity read 1.29, which no GPU can")
		g.TensorActiveRatio, g.SMActiveComputing = unit.NotSupported[float64]("not offered for a MIG slice"), unit.Broken[stat.Estimate]("counters not trusted")
		g.SMActiveWaiting = unit.Broken[stat.Estimate]("counters not trusted")
		g.AccountsNS = map[string]int64{"unattributed": g.AllocatedNS - 6e9, "startup": 6e9}
		g.WaitUpperBoundNS = unit.Some(int64(98e9))
	}
	r.Verdicts = append([]analysis.Verdict{{ID: "metric-untrusted", Title: "in 94 % of the windows SM activity is above 1 or contradicts GPU-util", Confidence: 0.99}}, r.Verdicts...)
	r.Timeline.GPU = nil
	return r
}

// Killed is a run that was killed in its second minute: the agent never finished the recording.
func Killed() *analysis.Result {
	r := Retail()
	r.EndedBy, r.ExitCode = unit.Some("signal"), unit.Some(137)
	r.Baseline, r.Job.Throwaway = nil, false
	r.Ranks[1].Ended, r.Ranks[0].Ended = "killed", "killed"
	r.Quality.Damage = analysis.DamageReport{TornTails: 2, Lost: 37, Unfinished: true}
	r.Quality.Hook.Dropped = 37
	r.Quality.Warnings = []string{"the last 0.8 s of rank 1 are missing", "a segment ends in the middle of a record"}
	r.Model = analysis.Model{Name: "replay of the loader's queue", ReplayError: num(0.147), Reason: "the recorded run was reproduced within 15 % only; 10 % is the limit. Record two full epochs"}
	r.Fixes, r.Plan, r.NoHelp, r.Unpriced = nil, nil, nil, nil
	r.Timeline.Blocks = nil
	return r
}

// Hostile is a job whose every name tries to be something else.
func Hostile() *analysis.Result {
	const script, rtl, ansi = `<script>alert("x")</script>`, "evil\u202etxt.exe", "\x1b[2J\x1b[31mred\x07"
	const markdown = "`code` | cell | [link](https://evil.example) ![i](https://evil.example/x.png) **b** @everyone #1 <img src=x onerror=alert(1)>"
	r := Retail()
	r.Job.Name, r.Job.Command = script+rtl+ansi, []string{"python3", "it's", "a  b", "x\ny", ansi, strings.Repeat("A", 10_000)[:900]}
	r.Nodes = []string{script}
	r.Ranks[0].Host, r.Ranks[1].Host, r.Ranks[0].Ended = script, ansi+rtl, "]]>--><svg onload=alert(1)>"
	l := &r.Loaders[0]
	l.Dataset, l.Role, l.BytesSource = strings.Repeat("Ж", 10_000), markdown, "}</style><script>alert(2)</script>"
	l.Arguments = map[string]json.RawMessage{"\"><b>": json.RawMessage(`"</script>"`), "broken": json.RawMessage("{"), "none": json.RawMessage("null")}
	g := &r.GPUs[0]
	g.Name, g.Source, g.Grade = "z̷̡̧͖̟̭͎̱̾̈́͐͑̕a̸l̶g̴o̵ 日本語のGPU", "\xff\xfe"+script, stat.Grade("A\" onmouseover=alert(1) \"")
	g.AccountsNS = map[string]int64{"compute": g.AllocatedNS - 1e9, `x" fill="red`: 1e9}
	r.Verdicts[0].Title, r.Verdicts[0].ID = markdown, "storage-latency"
	r.Verdicts[0].Evidence[0] = analysis.Evidence{Metric: script, Value: math.NaN(), Unit: rtl, Source: markdown}
	r.Verdicts[1].ID, r.Verdicts[1].FalsifiedBy = script, strings.Repeat("very long ", 1000)
	f := &r.Fixes[0]
	f.Title, f.How, f.Recipe, f.Effort, f.Needs = markdown, script, markdown, "a | b\n| c | d |", ansi
	r.Fixes[1].Title = strings.Repeat("界", 200)
	r.Plan[1].BottleneckAfter = markdown
	r.NoHelp[0].Title, r.NoHelp[0].Reason = script, rtl+"\n\n# A heading"
	r.Dropped[0].Reason = "\u2028\u2029\ufeff\u200b" + script
	r.Quality.Warnings = []string{markdown, strings.Repeat("w", 10_000)}
	r.Quality.Hook.Errors = []string{"Traceback (most recent call last):\n  File \"<string>\", line 1\nValueError: " + script}
	r.Timeline.Blocks[0].Leg, r.Timeline.Marks[0].Name = script, script
	r.Baseline.Legs[script] = r.Baseline.Legs["live"]
	r.Baseline.Skipped[0].Leg = markdown
	return r
}

// Marginal is a small wait that must not be called critical, and whose best fix makes no meaningful difference.
func Marginal() *analysis.Result {
	r := ComputeBound()
	r.Emulated = false
	r.Job.Name = "finetune.py"
	r.Step.MeanSeconds = est(0.105, 0.1046, 0.1054, 20, stat.GradeA, "device events")
	r.Step.DataWaitShare, r.Step.ExposedWaitShare = est(0.062, 0.058, 0.066, 20, stat.GradeB, "hook clock"), est(0.048, 0.044, 0.052, 20, stat.GradeA, "device events")
	r.Step.Anatomy = []analysis.Part{{Name: "exposed_wait", Seconds: 0.00504, Share: 0.048}, {Name: "compute", Seconds: 0.09996, Share: 0.952}}
	r.Baseline.Legs = map[string]analysis.Leg{
		"live":        {StepSeconds: est(0.105, 0.1046, 0.1054, 10, stat.GradeA, "device events"), SMActiveRatio: est(0.88, 0.878, 0.882, 10, stat.GradeA, "DCGM counters"), Blocks: 10, Steps: 160},
		"host-cached": {StepSeconds: est(0.1002, 0.0999, 0.1005, 10, stat.GradeA, "device events"), SMActiveRatio: est(0.923, 0.921, 0.926, 10, stat.GradeA, "DCGM counters"), Blocks: 10, Steps: 160},
	}
	r.Baseline.Ceiling, r.Baseline.SavedSeconds = est(1.048, 1.043, 1.053, 10, stat.GradeA, "device events"), est(0.0048, 0.0043, 0.0053, 10, stat.GradeA, "device events")
	r.Baseline.Conclusion = "input-pipeline"
	r.Verdicts = []analysis.Verdict{{ID: "too-few-workers", Title: "1 worker builds a batch in 105 ms, and a step computes for 100 ms", Confidence: 0.78, Share: num(0.048), FalsifiedBy: "a run with 2 workers that waits as long"}}
	two := Retail().Fixes[1]
	two.Position, two.Title, two.How, two.Measured = 1, "2 workers instead of 1", "set num_workers=2", unit.None[stat.Estimate]("not tried in this run")
	two.Predicted.StepSeconds, two.Predicted.StepSavedShare = est(0.1004, 0.1001, 0.1009, 500, stat.GradeB, "loader model"), est(0.044, 0.039, 0.047, 500, stat.GradeB, "loader model")
	two.Predicted.WaitRemovedShare, two.Predicted.EpochSeconds, two.Predicted.GPUHoursPerDay = num(0.912), num(1.9), num(2.1)
	deeper := Retail().Fixes[3]
	deeper.Position = 2
	deeper.Predicted.StepSeconds, deeper.Predicted.StepSavedShare = est(0.1049, 0.1043, 0.1055, 500, stat.GradeB, "loader model"), est(0.001, -0.005, 0.007, 500, stat.GradeB, "loader model")
	deeper.Predicted.WaitRemovedShare = num(0.004)
	r.Fixes = []analysis.Fix{two, deeper}
	return r
}
