package fixes

import (
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// TestShardsTakeAwayWhatFilesCost: of 80 ms that a batch of eight files waits, 2 ms a file were measured to be for opening. Packed,
// that of seven goes: (80 − 14 + 1) / 2 = 33.5 ms with two workers. Without that measurement the interval is wide.
func TestShardsTakeAwayWhatFilesCost(t *testing.T) {
	j := scenario.Job{W: 2, K: 8, Sleep: 0.080, Burn: 0.001, Device: 0.010, Floor: 0.001, Files: 8, Read: 8e6, Solo: true}
	measured := rank(j, func(p *loader.Parameters) {
		p.Batch.PerReading = unit.Some(stat.Estimate{Value: 0.0020, Low: 0.0019, High: 0.0021, N: 200, Grade: stat.GradeC, Source: "line"})
	})
	f, ok := find(measured, ShardFiles)
	if !ok {
		t.Fatalf("no shards: %+v", measured.NoHelp)
	}
	step := f.Predicted.StepSeconds.Or(zero)
	if math.Abs(step.Value-0.0335) > 0.0005 || step.High-step.Low > 0.004 {
		t.Errorf("a step of %+v, want 33.5 ms", step)
	}
	guessed, _ := find(rank(j, nil), ShardFiles)
	if wide := guessed.Predicted.StepSeconds.Or(zero); wide.High-wide.Low < 2*(step.High-step.Low) {
		t.Errorf("unmeasured %+v is no wider than measured %+v", wide, step)
	}
}

// TestTheCacheNeedsRoomForWhatIsRead: where all of the set was seen, its size is told.
func TestTheCacheNeedsRoomForWhatIsRead(t *testing.T) {
	j := scenario.Job{W: 1, K: 8, Sleep: 0.040, Burn: 0.001, Device: 0.010, Floor: 0.001, Files: 8, Read: 8e6}
	r := rank(j, func(p *loader.Parameters) { p.Batch.Set = some(130e9) })
	if f, ok := find(r, NVMeCache); !ok || !strings.Contains(f.Needs, "room for 130 GB") {
		t.Errorf("%+v", f)
	}
}
