package gate

import (
	"slices"
	"testing"

	"github.com/datawait/datawait/analysis/fleet"
	"github.com/datawait/datawait/probe/unit"
)

func TestJobsThatLoseTooMuch(t *testing.T) {
	job := func(name, namespace string, allocated, waiting, idle float64) fleet.Workload {
		w := fleet.Workload{Job: name, Namespace: namespace}
		w.Use.Allocated = unit.Some(allocated)
		if waiting >= 0 {
			w.Use.Waiting.Hours = unit.Some(waiting)
		}
		w.Use.Idle.Hours, w.Use.Lost.Hours = unit.Some(idle), unit.Some(max(0, waiting)+idle)
		return w
	}
	f := &fleet.Fleet{Workloads: []fleet.Workload{job("train", "a", 100, 30, 5), job("quiet", "", 100, 1, 1), job("nohook", "", 100, -1, 60), job("tiny", "", 0.5, 0.5, 0)}}
	for _, c := range []struct {
		list  string
		found []string
		bad   bool
	}{
		{"", nil, false},
		{"35%", []string{`"a/train": 35 % of its GPU-hours (lost), at or above 35 %`, `"nohook": 60 % of its GPU-hours (lost), at or above 35 %`}, false},
		{"waiting=0.3", []string{`"a/train": 30 % of its GPU-hours (waiting), at or above 30 %`}, false},
		{"waiting=31%", nil, false},
		{"idle", []string{`"nohook": 60 % of its GPU-hours (idle), at or above 10 %`}, false},
	} {
		g, err := ParseFleet(c.list)
		if err != nil {
			t.Fatal(err)
		}
		found, err := g.Findings(f)
		if !slices.Equal(found, c.found) || (err != nil) != c.bad {
			t.Errorf("%q: %q, %v", c.list, found, err)
		}
	}
	g, err := ParseFleet("waiting")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := g.Findings(&fleet.Fleet{Workloads: f.Workloads[2:]}); err == nil || len(found) > 0 {
		t.Errorf("what nobody knows passes: %q", found)
	}
	for _, list := range []string{"slow", "waiting=0", "waiting=fast", "101%"} {
		if _, err := ParseFleet(list); err == nil {
			t.Errorf("%q is accepted", list)
		}
	}
}
