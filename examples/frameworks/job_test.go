package frameworks

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/datawait/datawait/examples/internal/trial"
)

// job is one of the scripts, and what is known of it without datawait.
type job struct {
	name, modules string
	script        []string
	ranks         int     // 0 = one, without a launcher
	fetching      int     // of the ranks, how many fetch; 0 = all
	steps         int     // of each rank
	fetches       float64 // per step
	perReading    float64 // fetches between two readings of the script's clock; 0 = one
	byFetch       bool    // no optimizer step is seen, so a step is a fetch
	kind          string  // of the training loader; "" = torch
	unbuilt       bool    // nobody tells of its batches being built
	epochs        int     // 0 = one
	validation    int     // fetches of the validation loader; 0 = there is none
	own           float64 // share of a step that the framework itself takes between the two readings of the clock, at most
}

// observed is one run: what datawait says of it, and each rank's own clock.
type observed struct {
	report
	clocks []clock
}

// test runs the job and holds the report against what is known of it.
func (j job) test(t *testing.T, run func(*testing.T) observed) { attempt(t, run, j.counts, j.times) }

// What the shares of both sides may differ by, for they do not leave out exactly the same steps; and what no busy machine explains,
// for both saw the same one.
const (
	tolerance = 0.03
	gross     = 0.20
)

// attempt runs a job and checks it. What is counted must be right always. Where a time is off, the job is run again with the machine
// to itself; while something else is busy there, nothing can be concluded from what is not grossly wrong, and that is said.
func attempt(t *testing.T, run func(*testing.T) observed, counts func(*testing.T, observed), times func(observed, float64) []string) {
	const quiet = 0.5 // cores busy with something else: jobs that sleep need little of the two
	o := holding(machine.RLocker(), t, run)
	counts(t, o)
	wrong := times(o, tolerance)
	for try := 2; len(wrong) > 0 && try <= 3; try++ {
		t.Logf("once more, alone: %v", wrong)
		o = holding(&machine, t, run)
		counts(t, o)
		if wrong = times(o, tolerance); o.foreign() <= quiet {
			break
		}
	}
	if len(wrong) > 0 && o.foreign() > quiet && len(times(o, gross)) == 0 && !t.Failed() {
		t.Skipf("INCONCLUSIVE: %.2f cores were busy with something else in the last of three tries, and %v", o.foreign(), wrong)
	}
	for _, claim := range wrong {
		t.Error(claim)
	}
}

func holding(lock sync.Locker, t *testing.T, run func(*testing.T) observed) observed {
	lock.Lock()
	defer lock.Unlock()
	return run(t)
}

// record runs the job under one `datawait record`, around torchrun if it has ranks.
func (j job) record(t *testing.T) observed { return j.under(t, 0, "record") }

// under runs the job under one datawait with these arguments, which must end with this status.
func (j job) under(t *testing.T, status int, arguments ...string) observed {
	t.Helper()
	python, dir := trial.Latest(t, j.modules), t.TempDir()
	out := filepath.Join(dir, "out")
	arguments = append(arguments, "--out", out, "--", python)
	if j.ranks > 0 {
		arguments = append(arguments, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", fmt.Sprint(j.ranks))
	}
	finish(t, status, dir, exec.Command(trial.Binary, append(arguments, j.script...)...))
	return observed{readReport(t, out), readClocks(t, dir, max(j.ranks, 1))}
}

// recordEachRank lets torchrun start every rank through its own `datawait record`.
func (j job) recordEachRank(t *testing.T) observed {
	t.Helper()
	python, dir := trial.Latest(t, j.modules), t.TempDir()
	out := filepath.Join(dir, "out")
	arguments := []string{"-m", "torch.distributed.run", "--standalone", "--nproc_per_node", fmt.Sprint(j.ranks), "--no-python",
		trial.Binary, "record", "--out", out, "--", python}
	finish(t, 0, dir, exec.Command(python, append(arguments, j.script...)...))
	return observed{readReport(t, out), readClocks(t, dir, j.ranks)}
}

// finish runs a command to its end. The scripts write their clocks into dir.
func finish(t *testing.T, status int, dir string, command *exec.Cmd) {
	t.Helper()
	command.Env = append(os.Environ(), "TRUTH="+filepath.Join(dir, "clock"), "OMP_NUM_THREADS=1")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); command.ProcessState == nil || command.ProcessState.ExitCode() != status {
		t.Fatalf("%v: %v, want status %d\n%s", command.Args, err, status, output.String())
	}
}

// counts holds what can be counted against what the script was told to do.
func (j job) counts(t *testing.T, o observed) {
	t.Helper()
	if o.EndedBy != "command" || o.ExitCode == nil || *o.ExitCode != 0 {
		t.Errorf("ended by %s with %v", o.EndedBy, o.ExitCode)
	}
	o.checkHook(t)
	stepIs := "optimizer step"
	if j.byFetch {
		stepIs = "fetch"
	}
	if o.Job.StepIs != stepIs || o.Job.Steps != j.steps || o.Job.Ranks != len(o.clocks) || len(o.Ranks) != len(o.clocks) {
		t.Fatalf("%d ranks made %d steps, a step is one %s; want %d, %d, %s", o.Job.Ranks, o.Job.Steps, o.Job.StepIs, len(o.clocks), j.steps, stepIs)
	}
	if f := o.Job.FetchesPerStep; f == nil || *f < 0.99*j.fetches || *f > 1.01*j.fetches {
		t.Errorf("%s fetches a step, want %v", value(f), j.fetches)
	}
	for i, k := range o.Ranks {
		if k.Ended != "normally" {
			t.Errorf("rank %d ended: %s", k.Rank, k.Ended)
		}
		if i >= j.fetchers(o) && k.Share != nil {
			t.Errorf("rank %d fetches nothing, and waits %s of a step", k.Rank, value(k.Share))
		}
	}
	j.countLoaders(t, o)
}

// fetchers is how many ranks fetch; the first ones do.
func (j job) fetchers(o observed) int { return cmp.Or(j.fetching, len(o.clocks)) }

// countLoaders wants one loader that trains, and one that validates if there is a validation.
func (j job) countLoaders(t *testing.T, o observed) {
	t.Helper()
	training := o.role(t, "training")
	kind, epochs, fetches := cmp.Or(j.kind, "torch"), cmp.Or(j.epochs, 1), j.fetchers(o)*int(float64(j.steps)*j.fetches)
	if training.Fetches != fetches || training.Workers != workers || training.Kind != kind || training.Epochs != epochs {
		t.Errorf("training loader %+v; want %d fetches, %d workers, %d epochs, kind %s", training, fetches, workers, epochs, kind)
	}
	if v := o.role(t, "validation"); v.Fetches != j.validation {
		t.Errorf("validation loader %+v; want %d fetches", v, j.validation)
	}
	if other := o.role(t, "other"); other.Role != "" {
		t.Errorf("a loader of no known role: %+v", other)
	}
}

// times returns what does not agree with the scripts' own clocks, or with what nothing can be faster than.
func (j job) times(o observed, tolerance float64) (wrong []string) {
	claim := claims(&wrong)
	agrees := func(whose string, share *float64, clock float64) {
		claim(share != nil && *share <= clock+tolerance && *share >= clock-tolerance-j.own,
			"%s data wait is %s of a step, by the script's clock %.3f (less %.2f at most)", whose, value(share), clock, j.own)
	}
	fed := o.clocks[:j.fetchers(o)]
	for i, c := range fed {
		agrees(fmt.Sprintf("rank %d's", i), o.Ranks[i].Share, c.share())
	}
	agrees("the job's", o.Step.Share.value(), sum(fed).share())
	waits := sum(fed).share()
	claim(waits > 0.15 && waits < 0.92, "by the script's clock %.3f of a step waits: the job is not what it says it is", waits)

	all := sum(o.clocks)
	step := all.time / float64(all.batches) * j.fetches / cmp.Or(j.perReading, 1)
	mean := o.Step.Mean.value()
	claim(mean != nil && math.Abs(*mean-step) < 2*tolerance*step, "a step takes %s s, by the script's clock %.4f", value(mean), step)
	least := j.fetches * buildSeconds / workers
	claim(step > 0.99*least, "the script's clock says %.4f s a step, and nothing can be faster than %.4f", step, least)
	build := o.role(nil, "training").Build.value()
	if j.unbuilt {
		claim(build == nil, "a batch takes %s s to build, which nobody told", value(build))
		return wrong
	}
	claim(build != nil && *build > 0.99*buildSeconds && *build < (1+15*tolerance)*buildSeconds, "a batch takes %s s to build, want %v", value(build), buildSeconds)
	return wrong
}

// claims returns a function that notes what is not so.
func claims(wrong *[]string) func(ok bool, format string, arguments ...any) {
	return func(ok bool, format string, arguments ...any) {
		if !ok {
			*wrong = append(*wrong, fmt.Sprintf(format, arguments...))
		}
	}
}
