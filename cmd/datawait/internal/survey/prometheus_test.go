package survey

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/fleet"
	"github.com/datawait/datawait/cmd/datawait/internal/promserver"
	"github.com/datawait/datawait/probe/promapi"
)

const week = 7 * 24 * time.Hour

// books are shares of the allocated time.
func books(exposed, start, compute, idle, unattributed float64) map[string]float64 {
	return map[string]float64{"exposed_wait": exposed, "epoch_start": start, "compute": compute, "idle_held": idle, "unattributed": unattributed,
		"not_held": 0, "startup": 0, "copy": 0, "collective": 0, "validation": 0, "checkpoint": 0, "host": 1 - exposed - start - compute - idle - unattributed}
}

// watched are the jobs of the history that an agent watches. Numbers are hours from the beginning of the window.
func watched() []job {
	hours := func(from, to float64) span { return span{at(from), at(to)} }
	plain := books(0, 0, 0.5, 0.5, 0)
	return []job{
		// Two runs of one job, a week apart: it waits more than it did.
		{name: "train", namespace: "team-a", pod: "train-0", instance: "n1", gpus: []string{"GPU-a", "GPU-b"}, runs: hours(-167, -3), accounts: books(0.1, 0.02, 0.8, 0.03, 0.05), bound: 0.04, active: 0.7, waits: []float64{0.12, 0.12}},
		{name: "train", namespace: "team-a", pod: "train-1", instance: "n1", gpus: []string{"GPU-a", "GPU-b"}, runs: hours(2, 167), accounts: books(0.3, 0.02, 0.6, 0.03, 0.05), bound: 0.04, active: 0.5, waits: []float64{0.34, 0.34}},
		// Begins and ends within a piece, and is gone at the end.
		{name: "short", pod: "", instance: "n2", gpus: []string{"GPU-c"}, runs: hours(58, 61), accounts: books(0.2, 0, 0.8, 0, 0), active: 0.6, waits: []float64{0.2}},
		// Its agent began anew, with counters at 0.
		{name: "reset", instance: "n3", gpus: []string{"GPU-d"}, runs: hours(20, 90), accounts: plain, active: 0.4},
		{name: "reset", instance: "n3", gpus: []string{"GPU-d"}, runs: hours(90.2, 140.2), accounts: plain, active: 0.4},
		// Nobody scraped for two hours, and the counters went on.
		{name: "gap", instance: "n4", gpus: []string{"GPU-e"}, runs: hours(10, 150), gap: hours(100, 102), accounts: plain, active: 0.4},
		{name: "(shared)", instance: "n5", gpus: []string{"GPU-f"}, runs: hours(5, 105), accounts: plain, active: 0.4},
		// Scraped by two scrape jobs.
		{name: "twice", instance: "n6", gpus: []string{"GPU-g"}, runs: hours(150, 160), accounts: books(0.25, 0, 0.75, 0, 0), active: 0.6, waits: []float64{0.25}, scrapes: []string{"datawait", "podmonitor"}},
		// Its agent was restarted under another address, and carried the counters on.
		{name: "moved", instance: "n7", gpus: []string{"GPU-h"}, runs: hours(121, 131), accounts: books(0.25, 0, 0.75, 0, 0), active: 0.6, waits: []float64{0.25}},
		{name: "moved", instance: "n8", gpus: []string{"GPU-h"}, runs: hours(131.2, 141.2), carried: 36000, accounts: books(0.25, 0, 0.75, 0, 0), active: 0.6, waits: []float64{0.25}},
		// One of its ranks waits, and the others for it.
		{name: "ddp", namespace: "team-d", pod: "ddp-0", instance: "n9", gpus: []string{"GPU-l", "GPU-m", "GPU-n", "GPU-o"}, runs: hours(30, 80), accounts: books(0.05, 0, 0.9, 0, 0), active: 0.5, waits: []float64{0.05, 0.06, 0.5, 0.05}},
		{name: "nohook", namespace: "team-d", pod: "nohook-0", instance: "n9", gpus: []string{"GPU-k"}, runs: hours(0, 100), accounts: plain, active: 0.4},
		{name: "demo", instance: "n10", gpus: []string{"GPU-z"}, runs: hours(0, 2), accounts: books(0.5, 0, 0.5, 0, 0), active: 0.4, waits: []float64{0.5}, emulated: true},
	}
}

// exported adds the series of a dcgm-exporter, as a server shows them that does not honour a target's labels.
func exported(h *history) {
	own := `job="dcgm",instance="10.0.0.9:9400",namespace="gpu-operator",pod="nvidia-dcgm-exporter-x7k2p",container="nvidia-dcgm-exporter",Hostname="n20"`
	gauge := func(name, gpu, holder string, value func(time.Time) float64, from, to float64) {
		h.add(name, "gauge", fmt.Sprintf(`UUID=%q,gpu="0",modelName="NVIDIA A100",%s%s`, gpu, own, holder), value, span{at(from), at(to)})
	}
	held := func(pod, namespace string) string {
		return fmt.Sprintf(`,exported_pod=%q,exported_namespace=%q,exported_container="main"`, pod, namespace)
	}
	until48 := func(x float64) func(time.Time) float64 {
		return func(t time.Time) float64 {
			if t.Before(at(48)) {
				return x
			}
			return 0
		}
	}
	for _, g := range []struct {
		gpu, pod string
		sm       func(time.Time) float64
	}{{"GPU-p", "bert-0", until48(0.5)}, {"GPU-q", "bert-1", constant(0.5)}} {
		for _, x := range []struct {
			holder   string
			from, to float64
			sm       func(time.Time) float64
		}{{"", 0, 24, constant(0)}, {held(g.pod, "team-b"), 24, 72, g.sm}, {"", 72, 168, constant(0)}} {
			gauge("DCGM_FI_PROF_SM_ACTIVE", g.gpu, x.holder, x.sm, x.from, x.to)
			gauge("DCGM_FI_DEV_GPU_TEMP", g.gpu, x.holder, constant(40), x.from, x.to)
		}
	}
	// Time-sliced: the values of the GPU are repeated for each pod. SM activity is not served.
	for _, pod := range []string{"infer-6c9f8d7b5c-2xk4d", "infer-6c9f8d7b5c-zz9wq", "notebook-0"} {
		gauge("DCGM_FI_DEV_GPU_UTIL", "GPU-r", held(pod, "team-c"), constant(40), 0, 50)
	}
	gauge("DCGM_FI_PROF_SM_ACTIVE", "GPU-s", "", constant(0.1), 0, 168)
	// An agent watches this one as well.
	gauge("DCGM_FI_PROF_SM_ACTIVE", "GPU-a", held("train-1", "team-a"), constant(0.5), 2, 167)
	// What DCGM writes where it knows nothing.
	gauge("DCGM_FI_PROF_SM_ACTIVE", "GPU-t", held("blank-0", "team-c"), constant(1.4e16), 0, 10)
}

func known() []byte {
	h := newHistory()
	for _, j := range watched() {
		j.write(h)
	}
	for _, holder := range []string{"x", "y"} {
		h.add("datawait_gpu_holder_info", "gauge", fmt.Sprintf(`training_job=%q,training_namespace="team-s",training_pod="",gpu_uuid="GPU-f",job="datawait",instance="n5"`, holder), constant(1), span{at(5), at(105)})
	}
	exported(h)
	return h.text()
}

func TestAgainstPrometheus(t *testing.T) {
	server, err := promserver.Start(t.TempDir(), known())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	client, err := promapi.Dial(promapi.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the numbers are those of the history", func(t *testing.T) { fleetIsWhatHappened(t, client) })
	t.Run("smaller pieces give the same", func(t *testing.T) { smallerPieces(t, client) })
}

// fleetIsWhatHappened compares with the history, by arithmetic.
func fleetIsWhatHappened(t *testing.T, client Asker) {
	s := Surveyor{Server: client}
	now, before, err := s.Two(context.Background(), until, week)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Warnings) > 0 {
		t.Errorf("warnings: %v", s.Warnings)
	}
	f := fleet.Build(now, before, fleet.Options{Until: until, Window: week, HourCost: 2})
	// Hours: half a scrape at each end of a run, five minutes of a gauge whose series nobody ends, ten minutes at a restart.
	for _, want := range []struct {
		name                                   string
		allocated, waiting, atMost, idle, work float64 // -1 = unknown
		gpus                                   int
		slack                                  float64
	}{
		{"team-a/train", 330, 330 * 0.32, 330 * 0.36, 330 * 0.03, 330 * 0.5 * 0.98, 2, 0.1},
		{"short", 3, 0.6, 0.6, 0, 3 * 0.6 * 0.98, 1, 0.05},
		{"reset", 120, -1, -1, 60, 120 * 0.4 * 0.98, 1, 0.1},
		{"gap", 140, -1, -1, 70, 140 * 0.4 * 0.98, 1, 0.1},
		{"(shared)", 100, -1, -1, 50, 100 * 0.4 * 0.98, 1, 0.1},
		{"twice", 10, 2.5, 2.5, 0, 10 * 0.6 * 0.98, 1, 0.1},
		{"moved", 20, 5, 5, 0, 20 * 0.6 * 0.98, 1, 0.25},
		{"team-d/ddp", 200, 10, 10, 0, 200 * 0.5 * 0.98, 4, 0.1},
		{"team-d/nohook", 100, -1, -1, 50, 100 * 0.4 * 0.98, 1, 0.1},
		{"demo", 2, 1, 1, 0, 2 * 0.4 * 0.98, 1, 0.05},
		{"team-b/bert", 96, -1, -1, 24, 12 + 24, 2, 0.25},
		{"/(shared) exporter", 50, -1, -1, 0, -1, 1, 0.15},
		{"team-c/blank", 10, -1, -1, -1, -1, 1, 0.15},
	} {
		w, ok := find(f, want.name)
		if !ok {
			t.Errorf("%s is not there", want.name)
			continue
		}
		for _, x := range []struct {
			what string
			got  interface{ Get() (float64, bool) }
			want float64
		}{{"allocated", w.Use.Allocated, want.allocated}, {"waiting", w.Use.Waiting.Hours, want.waiting}, {"at most", w.Use.AtMost.Hours, want.atMost}, {"idle", w.Use.Idle.Hours, want.idle}, {"work", w.Use.Working.Hours, want.work}} {
			got, known := x.got.Get()
			if known != (x.want >= 0) || known && math.Abs(got-x.want) > want.slack+0.002*x.want {
				t.Errorf("%s: %s is %.3f (known: %t), want %.3f", want.name, x.what, got, known, x.want)
			}
		}
		if w.GPUs != want.gpus {
			t.Errorf("%s had %d GPUs, want %d", want.name, w.GPUs, want.gpus)
		}
		var cut float64
		for _, p := range w.Use.Parts {
			cut += p.Hours
		}
		if math.Abs(cut-w.Use.Allocated.Or(0)) > 1e-6 {
			t.Errorf("%s: its parts add up to %.3f", want.name, cut)
		}
	}
	if len(f.Workloads) != 13 {
		t.Errorf("%d jobs", len(f.Workloads))
	}
	checkTrain(t, f)
	checkRest(t, f)
}

func find(f *fleet.Fleet, name string) (fleet.Workload, bool) {
	i := slices.IndexFunc(f.Workloads, func(w fleet.Workload) bool {
		full := w.Job
		if w.Namespace != "" {
			full = w.Namespace + "/" + w.Job
		}
		if w.Source == fleet.Exporter && w.Job == fleet.SharedJob {
			full = "/(shared) exporter"
		}
		return full == name
	})
	if i < 0 {
		return fleet.Workload{}, false
	}
	return f.Workloads[i], true
}

// checkTrain looks at the job that was there in both weeks.
func checkTrain(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	w, _ := find(f, "team-a/train")
	near := func(what string, got interface{ Get() (float64, bool) }, want, slack float64) {
		t.Helper()
		if x, ok := got.Get(); !ok || math.Abs(x-want) > slack {
			t.Errorf("%s is %.4f (known: %t), want %.4f", what, x, ok, want)
		}
	}
	near("the wait share", w.Use.Wait, 0.34, 0.002)
	near("SM activity", w.Use.SMActive, 0.5, 0.002)
	near("coverage", w.Use.Covered, 0.98, 0.002)
	near("the cost of what was lost", w.Use.Lost.Money, 2*330*0.35, 1)
	if w.Before == nil {
		t.Fatal("nothing is known of the week before")
	}
	near("the week before's waiting", w.Before.Waiting.Hours, 328*0.12, 0.2)
	for i, want := range []fleet.Outcome{fleet.Worse, fleet.Worse, fleet.Worse} {
		if w.Shifts[i].Outcome != want {
			t.Errorf("%s is %s (%s)", w.Shifts[i].ID, w.Shifts[i].Outcome, w.Shifts[i].Why)
		}
	}
	near("the difference", w.Shifts[0].Difference, 330*0.35-328*0.15, 0.3)
}

// checkRest looks at the whole, and at what is said besides numbers.
func checkRest(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	if ddp, _ := find(f, "team-d/ddp"); len(ddp.Slow) != 1 || ddp.Slow[0].Rank != "2" || math.Abs(ddp.Slow[0].Wait-0.5) > 0.002 || math.Abs(ddp.Slow[0].Median-0.055) > 0.002 {
		t.Errorf("slow ranks: %+v", ddp.Slow)
	}
	if shared, _ := find(f, "(shared)"); !slices.Equal(shared.Holders, []string{"team-s/x", "team-s/y"}) {
		t.Errorf("holders of the shared GPU: %q", shared.Holders)
	}
	if shared, _ := find(f, "/(shared) exporter"); !slices.Equal(shared.Holders, []string{"team-c/infer", "team-c/notebook"}) {
		t.Errorf("holders of the sliced GPU: %q", shared.Holders)
	} else if r, ok := shared.Use.Resident.Get(); !ok || math.Abs(r-0.4) > 0.002 {
		t.Errorf("resident on the sliced GPU: %.3f, %t", r, ok)
	}
	if demo, _ := find(f, "demo"); !demo.Emulated || !f.Emulated {
		t.Error("an emulated GPU is not said to be one")
	}
	if nohook, _ := find(f, "team-d/nohook"); nohook.Hooked.Or(-1) != 0 {
		t.Errorf("hooked GPUs of a job without a hook: %v", nohook.Hooked)
	}
	whole := 330 + 3 + 120 + 140 + 100 + 10 + 20 + 200 + 100 + 2 + 96 + 50 + 10.0
	if got := f.Total.Use.Allocated.Or(0); math.Abs(got-whole) > 1.5 {
		t.Errorf("%.2f GPU-hours were allocated, want %.2f", got, whole)
	}
	if got := f.Total.Unlabelled.Hours.Or(0); math.Abs(got-168) > 0.2 {
		t.Errorf("%.2f GPU-hours without labels, want 168", got)
	}
	if got := f.Total.Unlabelled.SMActive.Or(0); math.Abs(got-0.1) > 0.001 {
		t.Errorf("their SM activity is %.3f", got)
	}
	// The series of an agent are there for some scrapes before and after each of the jobs, and nobody ends them.
	if got := f.Total.Free.Or(0); math.Abs(got-2*120) > 13*0.2 {
		t.Errorf("%.2f GPU-hours were free, want 240", got)
	}
	if got := f.Window.Seen.Or(0); got < 0.999 {
		t.Errorf("%.4f of the window was seen", got)
	}
}

// smallerPieces asks a server that refuses large questions.
func smallerPieces(t *testing.T, client Asker) {
	ask := func(a Asker) *fleet.Fleet {
		s := Surveyor{Server: a}
		now, before, err := s.Two(context.Background(), until, week)
		if err != nil {
			t.Fatal(err)
		}
		return fleet.Build(now, before, fleet.Options{Until: until, Window: week})
	}
	whole, pieces := ask(client), ask(&impatient{Asker: client, most: 6 * time.Hour})
	for _, w := range whole.Workloads {
		x, ok := find(pieces, nameOf(w))
		if !ok {
			t.Errorf("%s is gone", nameOf(w))
			continue
		}
		lost := 0.0
		if w.Job == "gap" {
			lost = 2 // it ends at the border of a piece: what was counted meanwhile is in neither of the two
		}
		if a, b := w.Use.Allocated.Or(-1), x.Use.Allocated.Or(-1); math.Abs(a-lost-b) > 0.1 {
			t.Errorf("%s: %.3f GPU-hours at once, %.3f in pieces", nameOf(w), a, b)
		}
	}
}
