package traps

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/examples/internal/trial"
)

// What a wait consists of is told: the workers' own time and how it splits, the start, validation, percentiles, SM activity, what would
// help, and what the observation itself cost and lost.
func TestTheReportTellsWhatAWaitIsMadeOf(t *testing.T) {
	r := shared(t, []string{"--gpu", "emulated"}, "tells.py")
	training, validation := role(r, "training"), role(r, "validation")
	if training == nil || validation == nil {
		t.Fatalf("loaders %+v", r.report.Loaders)
	}
	within := func(what string, got *float64, own, tolerance float64) {
		t.Helper()
		if got == nil {
			t.Errorf("%s is unknown; the script's own clock says %.4f", what, own)
			return
		}
		near(t, what, &estimate{Value: *got}, own, tolerance)
	}
	if training.Workers != 1 || training.Fetches != 320 || validation.Fetches != 8 {
		t.Errorf("%d workers, %d and %d batches", training.Workers, training.Fetches, validation.Fetches)
	}
	within("a batch's CPU time", training.CPU, r.truth.CPU, 0.4*r.truth.CPU+0.0005) // the loader's own part is not in the script's
	within("a batch's time off the CPU", training.OffCPU, 0.008, 0.001)
	near(t, "the start of an epoch", training.EpochStart, mean(r.truth.Starts), 0.25*mean(r.truth.Starts))
	near(t, "the share of data wait", r.report.Step.Share, r.truth.Share, 2*shares) // the script's has epoch starts in it
	waits := slices.Sorted(slices.Values(r.truth.Waits))
	within("the median wait", r.report.Step.P50, waits[len(waits)/2], 0.1*waits[len(waits)/2]+0.0003)
	if p := r.report.Step.P99; p == nil || *p < waits[len(waits)*9/10]*0.9 || *p > waits[len(waits)-1] {
		t.Errorf("the wait that 1 %% exceeds is %v; the script saw %.4f to %.4f in its last tenth", p, waits[len(waits)*9/10], waits[len(waits)-1])
	}
	if r.report.Step.Exposed == nil || r.report.Step.EpochStart == nil || r.report.Step.Handoff == nil {
		t.Errorf("exposed wait, epoch start or hand-off is unknown: %+v", r.report.Step)
	}
	if g := r.report.GPUs; len(g) != 1 || g[0].SMActive == nil || g[0].SMActive.Value <= 0 {
		t.Errorf("SM activity: %+v", g)
	}
	if m := r.report.Model; len(r.report.Verdicts) == 0 || len(r.report.Fixes) == 0 && (m.Trusted || m.Reason == "") {
		t.Errorf("verdicts %+v, fixes %+v, model %+v", r.report.Verdicts, r.report.Fixes, m) // on a busy machine they may be withheld, with a reason
	}
	q := r.report.Quality
	if q.Hook.Added == nil || *q.Hook.Added <= 0 || q.Cost.Cores == nil || *q.Cost.Cores <= 0 || q.Cost.RSS == nil || *q.Cost.RSS < 1<<20 || q.Hook.Dropped != 0 {
		t.Errorf("the observation's own cost and losses: %+v", q)
	}
}

func role(r run, name string) *loader {
	for i := range r.report.Loaders {
		if l := &r.report.Loaders[i]; l.Role == name {
			return l
		}
	}
	return nil
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

// What nobody measured is null, with the reason; it never reads as 0.
func TestWhatIsNotMeasuredIsNotZero(t *testing.T) {
	r := shared(t, nil, "outside.py", "--optimizer", "yes")
	if r.report.Step.Exposed != nil || len(r.report.GPUs) != 0 {
		t.Errorf("no GPU was watched, yet exposed wait is %v, GPUs %+v", r.report.Step.Exposed, r.report.GPUs)
	}
	if l := r.report.Loaders[0]; l.Bytes != nil {
		t.Errorf("the loader reads nothing that was seen, yet a batch reads %v bytes by %q", *l.Bytes, l.BytesSource)
	}
	for _, path := range []string{"$.step.exposed_wait_share", "$.baseline", "$.loaders[0].bytes_per_batch"} {
		if why, ok := r.report.Reasons[path]; !ok || why.Text == "" {
			t.Errorf("%s is null without a reason", path)
		}
	}
}

// Time in collectives is not told apart by any source: it is unknown, and no account of 0 stands for it.
func TestCollectivesAreUnknown(t *testing.T) {
	r := shared(t, []string{"--gpu", "emulated"}, "tells.py")
	g := r.report.GPUs[0]
	if _, there := g.Accounts["collective"]; there || g.Collective != nil {
		t.Errorf("collectives: account %v, %v ns", g.Accounts["collective"], g.Collective)
	}
	if r.report.Reasons["$.gpus[0].collective_ns"].Text == "" {
		t.Error("nothing says why")
	}
}

// A batch that comes over the network reads its bytes or an unknown number of them, never the few that came through read().
func TestBytesOverTheNetworkAreCountedOrUnknown(t *testing.T) {
	for workers, seconds := range map[string]string{"1": "4", "0": "1"} {
		r := recorded(t, nil, "network.py", "--workers", workers, "--seconds", seconds)
		switch l := role(r, "training"); {
		case l == nil:
			t.Fatalf("loaders %+v", r.report.Loaders)
		case l.Bytes == nil && r.report.Reasons["$.loaders[0].bytes_per_batch"].Text == "":
			t.Error("bytes are unknown without a reason")
		case l.Bytes == nil && workers == "1":
			t.Error("the worker's sockets were open for seconds, and what they received is unknown")
		case l.Bytes != nil && math.Abs(*l.Bytes-r.truth.Bytes) > 0.1*r.truth.Bytes:
			t.Errorf("%s workers: %.0f bytes a batch by %q; the script received %.0f", workers, *l.Bytes, l.BytesSource, r.truth.Bytes)
		}
	}
}

// Each rank's own wait is told, so the one that the others wait for is seen.
func TestTheStragglerIsSeenAmongTheRanks(t *testing.T) {
	r := start(t, []string{"record"}, "ranks.py")
	done := r.wait(t)
	if len(done.report.Ranks) != 2 {
		t.Fatalf("ranks %+v", done.report.Ranks)
	}
	for _, rank := range done.report.Ranks {
		var own truth
		read(t, r.own+"."+itoa(rank.Rank), &own)
		if rank.Share == nil || rank.Steps != own.Steps {
			t.Errorf("rank %d: share %v, %d of %d steps", rank.Rank, rank.Share, rank.Steps, own.Steps)
			continue
		}
		near(t, "the wait of rank "+itoa(rank.Rank), &estimate{Value: *rank.Share}, own.Share, shares)
	}
}

// A page needs nothing from outside: no script, no address.
func TestThePageIsWholeInItself(t *testing.T) {
	dir := t.TempDir()
	command := exec.Command(trial.Binary, "record", "-q", "--format", "html", "--out", dir, "--force", "--",
		trial.Python(t, "torch"), absolute(t, "together.py"), "--truth", filepath.Join(dir, "truth.json"))
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?i)<script|<link|<iframe|@import|url\(|(src|href)\s*=\s*"[^#"]|https?://`).Find(page); found != nil {
		t.Errorf("the page holds %q", found)
	}
	if !strings.Contains(string(page), "data wait") {
		t.Error("the page says nothing of data wait")
	}
}
