package fleet

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/probe/unit"
)

var day = Options{Until: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC), Window: 24 * time.Hour}

// row makes a row of labels written as "name=value".
func row(hours float64, labels ...string) Row {
	r := Row{Labels: map[string]string{}, Value: hours * 3600}
	for _, l := range labels {
		name, value, _ := strings.Cut(l, "=")
		r.Labels[name] = value
	}
	return r
}

// trained are the answers about one job on one GPU with a hook: hours allocated, exposed wait, idle.
func trained(allocated, exposed, idle float64) Answers {
	job, gpu := "training_job=train", "gpu_uuid=GPU-1"
	return Answers{
		QuerySeen: {row(24)}, QueryGPUs: {row(0, gpu, "grade=A", "emulated=false")}, QueryWatched: {row(24, gpu)}, QueryAssigned: {row(0, gpu)},
		QueryAllocated: {row(allocated, job, gpu)},
		QueryAccounts:  {row(exposed, job, "account=exposed_wait"), row(idle, job, "account=idle_held"), row(allocated-exposed-idle, job, "account=compute")},
		QueryActive:    {row(allocated/2, job)}, QueryActiveOf: {row(allocated, job)}, QueryCovered: {row(allocated, job)},
		QueryTraining: {row(allocated, job, "rank=0")}, QueryWait: {row(exposed, job, "rank=0")}, QueryHooked: {row(0, job, gpu)},
	}
}

func near(t *testing.T, what string, got analysis.Ratio, want float64) {
	t.Helper()
	if x, ok := got.Get(); !ok || math.Abs(x-want) > 1e-9 {
		t.Errorf("%s: %v (known: %t, %s), want %v", what, x, ok, got.Why(), want)
	}
}

func unknown(t *testing.T, what string, got analysis.Ratio, why string) {
	t.Helper()
	if got.IsKnown() || !strings.Contains(got.Why(), why) {
		t.Errorf("%s: known %t, because %q; want unknown, because %q", what, got.IsKnown(), got.Why(), why)
	}
}

func TestAJobThatWaits(t *testing.T) {
	a := trained(20, 5, 2)
	a[QueryBound] = []Row{row(1, "training_job=train")}
	f := Build(a, trained(20, 2, 2), Options{Until: day.Until, Window: day.Window, HourCost: 3})
	w := f.Workloads[0]
	near(t, "allocated", w.Use.Allocated, 20)
	near(t, "waiting", w.Use.Waiting.Hours, 5)
	near(t, "at most", w.Use.AtMost.Hours, 6)
	near(t, "idle", w.Use.Idle.Hours, 2)
	near(t, "lost", w.Use.Lost.Hours, 7)
	near(t, "what it costs", w.Use.Lost.Money, 21)
	near(t, "SM activity", w.Use.SMActive, 0.5)
	near(t, "data wait", w.Use.Wait, 0.25)
	near(t, "free", f.Total.Free, 4)
	near(t, "GPUs lost", f.Total.Equivalent.Lost, 7.0/24)
	if w.Use.Waiting.Grade != "B" || w.Use.AtMost.Grade != "C" || w.Use.Working.Grade != "A" {
		t.Errorf("grades %s, %s, %s", w.Use.Waiting.Grade, w.Use.AtMost.Grade, w.Use.Working.Grade)
	}
	for i, want := range []Outcome{Worse, Worse, Same} {
		if w.Shifts[i].Outcome != want {
			t.Errorf("%s is %s", w.Shifts[i].ID, w.Shifts[i].Outcome)
		}
	}
	near(t, "more lost", w.Shifts[0].Difference, 3)
}

// A wait that no hook looked at is unknown, though its counters read 0.
func TestAWaitNobodyLookedAtIsUnknown(t *testing.T) {
	a := trained(20, 0, 2)
	delete(a, QueryTraining)
	delete(a, QueryHooked)
	f := Build(a, Answers{}, day)
	w := f.Workloads[0]
	unknown(t, "waiting", w.Use.Waiting.Hours, "no hook")
	unknown(t, "at most", w.Use.AtMost.Hours, "no hook")
	unknown(t, "data wait", w.Use.Wait, "no hook")
	near(t, "lost", w.Use.Lost.Hours, 2)
	near(t, "of which nobody knows", w.Use.Unasked, 20)
	if !w.Use.Partial || !f.Total.Use.Partial {
		t.Error("what is lost is not said to be a lower bound")
	}
	near(t, "of all, of which nobody knows", f.Total.Use.Unasked, 20)
	unknown(t, "money", w.Use.Lost.Money, "nobody said")
}

// A hook on some of a job's GPUs does not tell whether the others waited.
func TestAHookOnSomeGPUs(t *testing.T) {
	a := trained(20, 5, 2)
	job := "training_job=train"
	a[QueryAllocated] = append(a[QueryAllocated], row(10, job, "gpu_uuid=GPU-2"))
	a[QueryAccounts] = append(a[QueryAccounts], row(10, job, "account=compute"))
	u := Build(a, Answers{}, day).Workloads[0].Use
	near(t, "waiting", u.Waiting.Hours, 5)
	near(t, "of which nobody knows", u.Unasked, 10)
	if !u.Partial {
		t.Error("what is lost is not said to be a lower bound")
	}
	a[QueryHooked] = append(a[QueryHooked], row(0, job, "gpu_uuid="))
	w := Build(a, Answers{}, day).Workloads[0]
	near(t, "of which nobody knows", w.Use.Unasked, 0)
	if w.Hooked.IsKnown() {
		t.Error("on how many GPUs hooks look is known of ranks whose GPU is not")
	}
}

// What cannot be is withheld, and is in no sum.
func TestCountersThatCannotBeAreWithheld(t *testing.T) {
	for name, a := range map[string]Answers{
		"grew by more than the time that passed": trained(30, 5, 2),
		"do not add up": func() Answers {
			a := trained(20, 5, 2)
			a[QueryAccounts] = append(a[QueryAccounts], row(20, "training_job=train", "account=host"))
			return a
		}(),
	} {
		f := Build(a, Answers{}, day)
		unknown(t, "allocated", f.Workloads[0].Use.Allocated, name)
		unknown(t, "lost", f.Workloads[0].Use.Lost.Hours, name)
		if f.Total.Use.Allocated.IsKnown() {
			t.Errorf("%s: it is in a sum", name)
		}
		if len(f.Workloads[0].Use.Accounts) > 0 || len(f.Workloads[0].Use.Parts) > 0 {
			t.Errorf("%s: its accounts are shown", name)
		}
	}
}

func TestWhatIsNoDifference(t *testing.T) {
	known := unit.Some[float64]
	full := bounds{Stretch{Seen: known(1)}, Stretch{Seen: known(1)}}
	use := func(lost, wait float64) Use {
		u := Use{Allocated: known(100), Wait: known(wait), SMActive: known(0.5)}
		u.Lost.Hours, u.Idle.Hours = known(lost), known(0)
		return u
	}
	for _, c := range []struct {
		name          string
		w             bounds
		before, now   Use
		there         bool
		lost, waiting Outcome
		why           string
	}{
		{"the same", full, use(10, 0.2), use(10.4, 0.205), true, Same, Same, ""},
		{"less", full, use(10, 0.2), use(8, 0.15), true, Better, Better, ""},
		{"more", full, use(10, 0.2), use(12, 0.3), true, Worse, Worse, ""},
		{"little of much", full, use(0.1, 0.2), use(0.9, 0.2), true, Same, Same, ""},
		{"new", full, Use{}, use(10, 0.2), false, Unknown, Unknown, New},
		{"half of the window before", bounds{Stretch{Seen: known(1)}, Stretch{Seen: known(0.5)}}, use(5, 0.2), use(10, 0.2), true, Unknown, Unknown, "only 50 % of the window before"},
		{"nothing before", bounds{Stretch{Seen: known(1)}, Stretch{Seen: known(0)}}, Use{}, use(10, 0.2), false, Unknown, Unknown, "no data of the window before"},
		{"half of the window", bounds{Stretch{Seen: known(0.5)}, Stretch{Seen: known(1)}}, use(5, 0.2), use(10, 0.2), true, Unknown, Unknown, "only 50 % of the window"},
	} {
		s := c.w.shifts(c.before, c.now, c.there)
		if s[0].Outcome != c.lost || s[1].Outcome != c.waiting || !strings.Contains(s[0].Why, c.why) || (s[0].Why == "") != (c.why == "") {
			t.Errorf("%s: %s, %s (%s)", c.name, s[0].Outcome, s[1].Outcome, s[0].Why)
		}
		if s[0].Difference.IsKnown() != (c.why == "") {
			t.Errorf("%s: a difference %v", c.name, s[0].Difference)
		}
	}
}

// More is known where hooks came to a job that had none; that is not more lost.
func TestMoreKnownIsNotMoreLost(t *testing.T) {
	before := trained(20, 0, 2)
	delete(before, QueryTraining)
	delete(before, QueryHooked)
	s := Build(trained(20, 5, 2), before, day).Workloads[0].Shifts[0]
	if s.ID != ShiftLost || s.Outcome != Unknown || !strings.Contains(s.Why, "not the same part") {
		t.Errorf("%+v", s)
	}
}

func TestSlowRanks(t *testing.T) {
	b := newBook(owner{})
	for rank, wait := range map[string]float64{"0": 0.05, "1": 0.06, "2": 0.9, "3": 0.3, "4": 0.05, "5": 0.17, "": 1} {
		b.training[rank], b.wait[rank] = 3600, 3600*wait
	}
	b.training["6"], b.wait["6"] = 60, 60 // too short to tell
	got := b.slow()
	if len(got) != 2 || got[0].Rank != "2" || got[1].Rank != "3" || math.Abs(got[0].Median-0.115) > 1e-9 {
		t.Errorf("%+v", got)
	}
}

// exporter makes the answers about GPUs of an exporter; labels are as a server gives them.
func exporter(present, held, shared []Row, active map[string][]Row) Answers {
	a := Answers{QueryPresent: present, QueryHeld: held, QueryShared: shared}
	for _, rows := range active {
		for _, r := range rows {
			a[QueryExporter] = append(a[QueryExporter], Row{r.Labels, 10 * 3600})
			for _, k := range kinds {
				if _, asked := active[k.id]; asked {
					a[activitySeenOf+k.id] = append(a[activitySeenOf+k.id], Row{r.Labels, 10 * 3600})
				}
			}
		}
	}
	for id, rows := range active {
		a[activityOf+id] = rows
	}
	return a
}

func TestLabelsOfExporters(t *testing.T) {
	for _, c := range []struct {
		labels []string
		want   pod
	}{
		{[]string{"exported_pod=p", "exported_namespace=n", "pod=exporter-1", "namespace=gpu-operator"}, pod{"n", "p", ""}},
		{[]string{"pod=p", "namespace=n", "container=main"}, pod{"n", "p", ""}},
		{[]string{"pod_name=p", "pod_namespace=n", "pod=nvidia-dcgm-exporter-1", "namespace=gpu-operator"}, pod{"n", "p", ""}},
		{[]string{"pod=nvidia-dcgm-exporter-1", "namespace=gpu-operator", "container=nvidia-dcgm-exporter"}, pod{}},
		{[]string{"pod=x", "namespace=gpu-operator", "container=nvidia-dcgm-exporter"}, pod{}},
		{[]string{"hpc_job=4711"}, pod{"", "", "4711"}},
		{[]string{"namespace=n"}, pod{}},
	} {
		if got := podOf(row(0, c.labels...).Labels); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.labels, got, c.want)
		}
	}
}

func TestOwnersOfPods(t *testing.T) {
	first := map[string]bool{"n/bert": true, "n/llm-worker": true}
	for name, want := range map[string]string{
		"train-x7k2p": "train", "infer-6c9f8d7b5c-2xk4d": "infer", "bert-3": "bert", "resnet-50": "resnet-50", "llm-worker-12": "llm", "train-bert": "train-bert", "plain": "plain",
	} {
		if got := (pod{namespace: "n", name: name}).owner(first); got != want {
			t.Errorf("%s belongs to %s, want %s", name, got, want)
		}
	}
}

// An exporter repeats the values of a GPU for every pod that has it: they are one GPU.
func TestASharedGPUIsOne(t *testing.T) {
	gpu := "UUID=GPU-1"
	a := exporter([]Row{row(24, gpu)}, []Row{row(10, gpu)}, []Row{row(10, gpu)},
		map[string][]Row{"sm": {row(4, gpu, "exported_pod=a", "exported_namespace=n"), row(4, gpu, "exported_pod=b", "exported_namespace=n")}})
	f := Build(a, Answers{}, day)
	if len(f.Workloads) != 1 || f.Workloads[0].Job != SharedJob || !slices.Equal(f.Workloads[0].Holders, []string{"n/a", "n/b"}) {
		t.Fatalf("%+v", f.Workloads)
	}
	near(t, "allocated", f.Workloads[0].Use.Allocated, 10)
	near(t, "SM activity", f.Workloads[0].Use.SMActive, 0.4)
	near(t, "work", f.Workloads[0].Use.Working.Hours, 4)
	near(t, "free", f.Total.Free, 14)
	unknown(t, "waiting", f.Workloads[0].Use.Waiting.Hours, "an exporter does not know")
}

// One pod that is named in two ways, by two scrape jobs, is one.
func TestAPodNamedTwiceIsOne(t *testing.T) {
	gpu := "UUID=GPU-1"
	a := exporter([]Row{row(24, gpu)}, []Row{row(10, gpu)}, []Row{row(10, gpu)},
		map[string][]Row{"sm": {row(4, gpu, "exported_pod=a", "exported_namespace=n"), row(4, gpu, "pod=a", "namespace=n")}})
	f := Build(a, Answers{}, day)
	if len(f.Workloads) != 1 || f.Workloads[0].Job != "a" {
		t.Fatalf("%+v", f.Workloads)
	}
	near(t, "allocated", f.Workloads[0].Use.Allocated, 10)
	near(t, "work", f.Workloads[0].Use.Working.Hours, 4)
}

func TestWhatAnExporterDoesNotTell(t *testing.T) {
	gpu, held := "UUID=GPU-1", "exported_pod=a"
	f := Build(exporter([]Row{row(24, gpu)}, []Row{row(10, gpu)}, nil, map[string][]Row{"util": {row(4, gpu, held)}}), Answers{}, day)
	u := f.Workloads[0].Use
	unknown(t, "SM activity", u.SMActive, "not read")
	unknown(t, "work", u.Working.Hours, "not read")
	near(t, "resident", u.Resident, 0.4)
	unknown(t, "covered", u.Covered, "does not tell")

	f = Build(exporter([]Row{row(24, gpu)}, nil, nil, map[string][]Row{"sm": {row(1, gpu)}}), Answers{}, day)
	if len(f.Workloads) != 0 {
		t.Errorf("jobs where nobody names any: %+v", f.Workloads)
	}
	unknown(t, "allocated", f.Total.Use.Allocated, "no series says whose")
	near(t, "hours of which nobody knows whose they are", f.Total.Unlabelled.Hours, 24)
	near(t, "their SM activity", f.Total.Unlabelled.SMActive, 0.1)
}

// What an agent watches is not counted again from an exporter; a slice that an agent watches has another name there.
func TestAGPUIsCountedOnce(t *testing.T) {
	a := trained(20, 5, 2)
	for name, rows := range exporter([]Row{row(24, "UUID=GPU-1"), row(24, "UUID=GPU-2", "GPU_I_ID=1"), row(24, "UUID=GPU-2")}, []Row{row(10, "UUID=GPU-1"), row(10, "UUID=GPU-2", "GPU_I_ID=1"), row(10, "UUID=GPU-2")}, nil,
		map[string][]Row{"sm": {row(4, "UUID=GPU-1", "pod=a"), row(4, "UUID=GPU-2", "GPU_I_ID=1", "pod=b"), row(4, "UUID=GPU-2", "pod=c")}}) {
		a[name] = append(a[name], rows...)
	}
	f := Build(a, Answers{}, day)
	if f.Total.GPUs != 2 || len(f.Workloads) != 2 {
		t.Errorf("%d GPUs, jobs %+v", f.Total.GPUs, f.Workloads)
	}
	near(t, "allocated", f.Total.Use.Allocated, 30)
	if s := strings.Join(f.Remarks, "; "); !strings.Contains(s, "watch the same GPUs (1)") || !strings.Contains(s, "MIG slices are among the GPUs, 1") {
		t.Errorf("remarks: %s", s)
	}
}

func TestNothing(t *testing.T) {
	f := Build(Answers{}, Answers{}, day)
	unknown(t, "watched", f.Total.Watched, "no GPU")
	unknown(t, "lost", f.Total.Use.Lost.Hours, "nothing was allocated")
	if seen, ok := f.Window.Seen.Get(); !ok || seen != 0 {
		t.Error("of nothing some was seen")
	}
}

// Every question has both of its forms, and a piece of any length has a whole number of seconds.
func TestQueriesSayHowLong(t *testing.T) {
	names := map[string]bool{}
	for _, q := range Queries() {
		if names[q.Name] {
			t.Errorf("two questions are called %s", q.Name)
		}
		names[q.Name] = true
		for _, severally := range []bool{false, true} {
			s := q.Expr(6*time.Hour, severally)
			if !strings.Contains(s, "[21600s]") && !strings.Contains(s, "[21599s:") {
				t.Errorf("%s does not ask about the piece: %s", q.Name, s)
			}
			if strings.Contains(s, "%!") {
				t.Errorf("%s: %s", q.Name, s)
			}
		}
	}
}
