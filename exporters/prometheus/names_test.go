package prometheus

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/unit"
)

func TestClean(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct{ name, want string }{
		{"", ""},
		{"resnet50", "resnet50"},
		{"训练 été", "训练 été"},
		{"a\"b\\c{}=,", "a\"b\\c{}=,"},
		{"a\nb\tc\x00", "a�b�c�"},
		{"a\xff\xfeb", "a�b"},
		{"x\u202efdp.exe", "x�fdp.exe"},
		{long, long[:197] + "…"},
		{strings.Repeat("é", 150), strings.Repeat("é", 98) + "…"},
		{strings.Repeat("\xff", 1<<20), "�…"},
	} {
		if got := Clean(c.name); got != c.want {
			t.Errorf("Clean(%.40q) = %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := Clean(name)
		if !utf8.ValidString(got) || len(got) > longest {
			t.Errorf("Clean(%q) = %q", name, got)
		}
		if again := Clean(got); again != got {
			t.Errorf("Clean(%q) = %q, and of that %q", name, got, again)
		}
	})
}

// hostile are names by which a series could be forged, a line broken, or two series become one.
var hostile = []string{"", "a", "a\n", "a\x00", "a\xff", "a\xfe", "a\xff\xfe", "(shared)", `a",job="b`, "a\\", "# HELP x", strings.Repeat("x", 199), strings.Repeat("x", 200),
	strings.Repeat("x", 201), strings.Repeat("x", 1<<16), strings.Repeat("x", 1<<16) + "y", "\u202eevil", "\ufeff", "\ufffd", "{}", "le", "+Inf", "NaN", "é", "e\u0301", strings.Repeat("\xff", 1000)}

// No name and no two names make a scrape fail, and each series is there once (the registry refuses two).
func TestHostileNames(t *testing.T) {
	x := newTarget(t, Options{ScrapeInterval: time.Second})
	var s live.Snapshot
	for _, a := range hostile {
		for _, b := range hostile {
			tenant := live.Tenant{Job: a, Namespace: b, Pod: b}
			s.Ranks = append(s.Ranks, live.Rank{Tenant: tenant, GPU: b, Steps: 1})
			s.Jobs = append(s.Jobs, live.Job{Tenant: tenant})
			s.Tenancies = append(s.Tenancies, live.Tenancy{GPU: a, Tenant: tenant})
			s.Holders = append(s.Holders, live.Holder{GPU: a, Tenant: tenant})
		}
		s.GPUs = append(s.GPUs, live.GPU{UUID: a, Name: a, Source: a, Grade: a})
		x.agent.Sources = append(x.agent.Sources, Source{Name: a})
		x.agent.Processes = append(x.agent.Processes, Process{Name: a, CPU: unit.Some(1.0)})
	}
	x.collector.o.Limit = 1 << 30
	x.at(100, s)
	total := 0.0
	for s, v := range x.at(110, s) {
		if strings.HasPrefix(s, "datawait_steps_total") {
			total += v
		}
	}
	if want := float64(len(hostile) * len(hostile)); total != want {
		t.Errorf("%v steps are counted, want %v: a row was lost", total, want)
	}
}

func FuzzScrape(f *testing.F) {
	f.Add("a", "b", "c", "a", "b", "c")
	f.Add("a\xff", "", "", "a\xfe", "", "")
	f.Fuzz(func(t *testing.T, job, pod, gpu, otherJob, otherPod, otherGPU string) {
		x := newTarget(t, Options{})
		a, b := live.Tenant{Job: job, Pod: pod}, live.Tenant{Job: otherJob, Pod: otherPod}
		x.at(1, live.Snapshot{GPUs: []live.GPU{{UUID: gpu, Name: job}, {UUID: otherGPU, Source: otherJob}}, Holders: []live.Holder{{GPU: gpu, Tenant: a}, {GPU: otherGPU, Tenant: b}},
			Tenancies: []live.Tenancy{{GPU: gpu, Tenant: a}, {GPU: otherGPU, Tenant: b}}, Ranks: []live.Rank{{Tenant: a, GPU: gpu}, {Tenant: b, GPU: otherGPU}},
			Jobs: []live.Job{{Tenant: a}, {Tenant: b}}})
	})
}

// Two rows whose labels are the same are one: their counters are added, and it runs while one of them does. When one is gone the
// other goes on from what was shown.
func TestRowsOfOneName(t *testing.T) {
	x := newTarget(t, Options{ScrapeInterval: time.Second})
	two := func(n, m uint64) live.Snapshot {
		s, other := oneJob(n), oneJob(m)
		other.Ranks[0].Running, other.Ranks[0].Hook.Disabled = false, true
		s.Ranks, s.Jobs, s.Tenancies = append(s.Ranks, other.Ranks...), append(s.Jobs, other.Jobs...), append(s.Tenancies, other.Tenancies...)
		s.GPUs = append(s.GPUs, other.GPUs...)
		return s
	}
	x.at(100, two(10, 40))
	expect(t, x.at(110, two(20, 40)), map[string]float64{steps: 300, allocated: 60, "datawait_rank_running{rank=0 job=a}": 1, "datawait_hook_disabled{rank=0 job=a}": 1,
		"datawait_workers{rank=0 job=a}": 16, "datawait_step_duration_seconds_count{job=a}": 2, throttled: 60})
	gone := oneJob(21)
	gone.Jobs[0].StepTimes.Add(0.5)
	expect(t, x.at(120, gone), map[string]float64{steps: 300, allocated: 60, "datawait_hook_disabled{rank=0 job=a}": 0, "datawait_step_duration_seconds_count{job=a}": 3})
	gone = oneJob(23)
	gone.Jobs[0].StepTimes.Add(0.5)
	gone.Jobs[0].StepTimes.Add(0.5)
	expect(t, x.at(130, gone), map[string]float64{steps: 310, allocated: 62, "datawait_step_duration_seconds_count{job=a}": 4,
		"datawait_step_duration_seconds_bucket{le=0.25 job=a}": 2, "datawait_step_duration_seconds_bucket{le=0.5 job=a}": 4})
}

// Of two jobs of one name it is known how many cores they may use only where both may use as many.
func TestUsableCoresOfOneName(t *testing.T) {
	for _, c := range []struct {
		a, b unit.Maybe[float64]
		want map[string]float64
	}{
		{unit.Some(4.0), unit.Some(4.0), map[string]float64{"datawait_usable_cores{job=a}": 4}},
		{unit.Some(4.0), unit.Some(2.0), nil},
		{unit.Some(4.0), unit.None[float64](""), nil},
		{unit.None[float64](""), unit.Some(4.0), nil},
	} {
		a := live.Tenant{Job: "a"}
		got := newTarget(t, Options{}).at(1, live.Snapshot{Jobs: []live.Job{{Tenant: a, UsableCores: c.a}, {Tenant: a, UsableCores: c.b}}})
		maps.DeleteFunc(got, func(s string, _ float64) bool { return !strings.HasPrefix(s, "datawait_usable_cores") })
		if fmt.Sprint(got) != fmt.Sprint(c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%v and %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
