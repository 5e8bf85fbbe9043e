package frameworks

import (
	"strings"
	"testing"
)

// A loader that does not come through PyTorch's is not seen, which the report says with its name and the call that changes it. With
// that call its wait is the one that the script's clock shows.
func TestALoaderThatIsNotSeenIsNamed(t *testing.T) {
	j := job{modules: "torchdata", script: []string{"train_nodes.py", "--steps", "70"}, steps: 70, fetches: 1, kind: "watch", unbuilt: true, own: 0.04}
	t.Run("as it is", func(t *testing.T) {
		o := j.record(t)
		o.checkHook(t)
		if o.Job.Steps != j.steps || o.Step.Share != nil || o.Ranks[0].Share != nil || o.Job.FetchesPerStep != nil {
			t.Errorf("%d steps, and a wait of %s, %s fetches a step", o.Job.Steps, value(o.Step.Share.value()), value(o.Job.FetchesPerStep))
		}
		if len(o.Verdicts) == 0 || o.Verdicts[0].ID != "loader-not-seen" {
			t.Fatalf("verdicts %+v", o.Verdicts)
		}
		v := o.Verdicts[0]
		if !strings.Contains(v.Title, "torchdata.nodes") || !strings.Contains(v.Do, "datawait.watch(loader, workers=N)") {
			t.Errorf("the verdict does not name it, or not what to do: %+v", v)
		}
	})
	t.Run("with watch()", func(t *testing.T) {
		j.script = append(j.script, "--watch")
		j.test(t, j.record)
	})
}
