package sample

import (
	"fmt"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Ranks is eight ranks on two nodes, one of which is late in every step; one GPU of another job is in the middle.
func Ranks() *analysis.Result {
	r := Retail()
	r.Emulated, r.Nodes, r.Baseline, r.Job.Ranks, r.Job.Throwaway = false, []string{"node-a", "node-b"}, nil, 8, false
	r.Ranks, r.GPUs = nil, nil
	for n := range 8 {
		k, g := retailRank(n%2), retailGPU("", n)
		uuid := fmt.Sprintf("GPU-%08x-11aa-4d2e-9f00-0123456789ab", 0x5b1c9a70+n*0x01010101)
		host := []string{"node-a", "node-b"}[n/4]
		wait, sm := 0.031+0.002*float64(n), 0.93
		if n == 5 {
			wait, sm = 0.462, 0.31
		}
		k.Rank, k.LocalRank, k.Host, k.PID, k.GPUUUID = n, unit.Some(n%4), host, 4100+n, unit.Some(uuid)
		k.DataWaitShare, k.ExposedWaitShare, k.Ended = num(wait), num(wait*0.9), "normally"
		g.UUID, g.Host, g.Name, g.Source, g.Emulated = uuid, host, "NVIDIA H100 80GB HBM3", "nvml-gpm", false
		g.SMActiveRatio, g.ResidentRatio = est(sm, sm-0.01, sm+0.01, 1612, stat.GradeA, "GPM counters"), num(sm+0.03)
		g.AccountsNS = map[string]int64{"compute": 70e9, "collective": g.AllocatedNS - 76e9, "startup": 6e9}
		g.CollectiveNS = unit.Some(g.AccountsNS["collective"])
		r.Ranks, r.GPUs = append(r.Ranks, k), append(r.GPUs, g)
	}
	r.Ranks[7].MeanStepSeconds, r.Ranks[7].MainCPUCores = unit.None[float64]("its spool was lost"), unit.None[float64]("its spool was lost")
	r.GPUs[3].SMActiveRatio = unit.Broken[stat.Estimate]("GPM stopped answering")
	r.Step.ExposedWaitShare, r.Step.DataWaitShare = est(0.084, 0.081, 0.088, 14, stat.GradeA, "device events"), est(0.093, 0.089, 0.098, 14, stat.GradeB, "hook clock")
	r.Step.Anatomy = []analysis.Part{{Name: "exposed_wait", Seconds: 0.0037, Share: 0.084}, {Name: "compute", Seconds: 0.0205, Share: 0.464}, {Name: "collective", Seconds: 0.0192, Share: 0.434}, {Name: "host", Seconds: 0.0008, Share: 0.018}}
	r.Verdicts = []analysis.Verdict{{
		ID: "rank-straggler", Title: "rank 5 waits 46 % of its steps for data; the other seven wait for it in the all-reduce", Confidence: 0.95, Share: num(0.434),
		Evidence:    []analysis.Evidence{{Metric: "data_wait_share_rank_5", Value: 0.462, Unit: "ratio", Source: "hook clock"}, {Metric: "data_wait_share_median", Value: 0.036, Unit: "ratio", Source: "hook clock"}},
		FalsifiedBy: "a rank 5 that is late with the data of another rank as well",
	}}
	r.Fixes = r.Fixes[:1]
	r.Fixes[0].ID, r.Fixes[0].Title, r.Fixes[0].Effort, r.Fixes[0].How, r.Fixes[0].Recipe = "fix-straggler", "give rank 5 the storage the others have", "one mount", "mount the data set on node-b as on node-a", ""
	r.Plan, r.Unpriced = nil, nil
	r.NoHelp = []analysis.NoHelp{{ID: "more-gpus", Title: "more GPUs", Reason: "they would wait for rank 5 as well", SavedShare: num(0)}}
	r.Timeline.Blocks, r.Timeline.Wait, r.Timeline.GPU = nil, nil, nil
	for n, g := range r.GPUs {
		r.Timeline.GPU = append(r.Timeline.GPU, rankTimeline(g.UUID, n))
	}
	return r
}

// rankTimeline is a GPU that computes throughout, but for the late one, which does in every third second, and the one whose counters stopped.
func rankTimeline(uuid string, n int) analysis.TimelineGPU {
	t := analysis.TimelineGPU{UUID: uuid}
	for second := range 161 {
		sm := 0.93 - 0.02*float64((second*7+n)%3)
		if n == 5 && second%3 != 0 {
			sm = 0.02
		}
		if second < 6 {
			sm = 0
		}
		if n != 3 || second < 70 {
			t.Windows = append(t.Windows, analysis.Window{Begin: float64(second), End: float64(second + 1), SM: sm, Resident: sm})
		}
	}
	return t
}
