package prometheus

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/live"
	"github.com/datawait/datawait/probe/unit"
)

// health is how many series the agent and the machine take in these tests.
func healthSeries(t *testing.T) int { return len(newTarget(t, Options{}).at(1, node(0, 0, 1))) }

// Where there is not enough room GPUs come before tenancies, those before ranks, those before jobs, and what has ended comes last.
func TestOrderOfRoom(t *testing.T) {
	s := node(2, 2, 10)
	s.Ranks[0].Running, s.Tenancies[0].Running = false, false
	least := healthSeries(t)
	names := []string{"datawait_gpu_info", "datawait_gpu_holder_info", "datawait_gpu_allocated_seconds_total", "datawait_steps_total", "datawait_step_duration_seconds_count"}
	for _, c := range []struct {
		room int
		want []int // subjects that are shown of each
	}{
		{0, []int{0, 0, 0, 0, 0}},
		{deviceTable.size, []int{1, 0, 0, 0, 0}},
		{2*deviceTable.size + 1, []int{2, 1, 0, 0, 0}},
		{2*deviceTable.size + 2 + tenancyTable.size, []int{2, 2, 1, 0, 0}},
		{2*deviceTable.size + 2 + tenancyTable.size + rankTable.size, []int{2, 2, 1, 1, 0}},
		{2*deviceTable.size + 2 + tenancyTable.size + rankTable.size + jobTable.size, []int{2, 2, 1, 1, 1}},
		{2*deviceTable.size + 2 + 2*tenancyTable.size + rankTable.size + jobTable.size, []int{2, 2, 2, 1, 1}},
		{2*deviceTable.size + 2 + 2*tenancyTable.size + 2*rankTable.size + jobTable.size, []int{2, 2, 2, 2, 1}},
	} {
		x := newTarget(t, Options{Limit: least + c.room})
		got := x.at(100, s)
		for i, name := range names {
			if n := len(named(got, name)); n != c.want[i] {
				t.Errorf("with room for %d series: %d of %s, want %d", c.room, n, name, c.want[i])
			}
		}
		whole := 2*deviceTable.size + 2 + 2*tenancyTable.size + 2*rankTable.size + jobTable.size
		expect(t, got, map[string]float64{"datawait_series_dropped{}": float64(whole - used(c.want)), "datawait_series_limit{}": float64(least + c.room), "datawait_series{}": float64(len(got))})
	}
}

// used are the series that so many subjects may have.
func used(n []int) int {
	return n[0]*deviceTable.size + n[1]*holderTable.size + n[2]*tenancyTable.size + n[3]*rankTable.size + n[4]*jobTable.size
}

// The agent's health is shown whatever the limit is.
func TestHealthIsAlwaysShown(t *testing.T) {
	x := newTarget(t, Options{Limit: 1})
	x.agent.Sources = []Source{{Name: "gpu"}, {Name: "spool", Up: true}}
	got := x.at(100, node(1, 1, 10))
	expect(t, got, map[string]float64{"datawait_source_up{source=gpu}": 0, "datawait_source_up{source=spool}": 1, "datawait_machine_cores{}": 64, "datawait_series_limit{}": 1})
	if len(named(got, "datawait_steps_total")) != 0 {
		t.Error("a rank is shown beside them")
	}
}

// A rank that comes later does not push out one that is shown, though it comes before it in the snapshot and the other has ended; it gets the
// room once that is gone, and begins at 0 then.
func TestShownSetsKeepTheirPlace(t *testing.T) {
	const old, young = "datawait_steps_total{rank=0 job=old}", "datawait_steps_total{rank=0 job=a-young}"
	row := func(job string, running bool) live.Rank {
		return live.Rank{Tenant: live.Tenant{Job: job}, Rank: unit.Some(0), Running: running, Steps: 7}
	}
	var said strings.Builder
	x := newTarget(t, Options{Limit: healthSeries(t) + rankTable.size, ScrapeInterval: time.Second, Log: slog.New(slog.NewTextHandler(&said, nil))})
	full := func(s uint64, ranks ...live.Rank) map[string]float64 {
		return x.at(s, live.Snapshot{Ranks: ranks, Machine: node(0, 0, 1).Machine})
	}
	full(100, row("old", true))
	got := full(110, row("a-young", true), row("old", false))
	expect(t, got, map[string]float64{old: 7, "datawait_series_dropped{}": float64(rankTable.size)})
	absent(t, got, young)
	full(120, row("a-young", true), row("old", false))
	if n := strings.Count(said.String(), "--series-limit"); n != 1 {
		t.Errorf("it was said %d times that series are dropped:\n%s", n, said.String())
	}
	expect(t, full(130, row("a-young", true)), map[string]float64{young: 0, "datawait_series_dropped{}": 0})
	expect(t, full(140, row("a-young", true)), map[string]float64{young: 7})
}

// Jobs come and go in any order: no scrape fails, no more series are shown than allowed, none falls, and none is gone while its
// subject is there.
func TestAnyHistory(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := 200 + random.IntN(1000)
		x := newTarget(t, Options{Limit: limit, ScrapeInterval: 10 * time.Second})
		var before map[string]float64
		rows := map[int]live.Rank{}
		for now := uint64(100); now < 400; now += 5 {
			s := evolve(random, rows)
			got := x.at(now, s)
			if len(got) > limit {
				t.Fatalf("seed %d: %d series, of %d", seed, len(got), limit)
			}
			if n := got["datawait_series{}"]; n != float64(len(got)) {
				t.Fatalf("seed %d: it says %v series and shows %d", seed, n, len(got))
			}
			there := map[string]bool{}
			for _, r := range s.Ranks {
				there[fmt.Sprintf("datawait_steps_total{rank=%s job=%s}", number(r.Rank.Get()), r.Tenant.Job)] = true
			}
			for name, v := range counters(before) {
				w, still := got[name]
				if still && w < v {
					t.Fatalf("seed %d, %d s: %s fell from %v to %v", seed, now, name, v, w)
				}
				if !still && there[name] {
					t.Fatalf("seed %d, %d s: %s is not shown any more", seed, now, name)
				}
			}
			before = got
		}
	}
}

// evolve lets ranks come, count, end and go; some have the names of others.
func evolve(random *rand.Rand, rows map[int]live.Rank) (s live.Snapshot) {
	for i := range 40 {
		r, there := rows[i]
		switch {
		case !there && random.IntN(8) == 0:
			rows[i] = live.Rank{Tenant: live.Tenant{Job: fmt.Sprint("job", i/3)}, Rank: unit.Some(i % 2), Running: true, Carried: random.IntN(4) == 0, Steps: uint64(random.IntN(50))}
		case there && random.IntN(12) == 0:
			delete(rows, i)
		case there:
			r.Steps += uint64(random.IntN(9))
			r.Workers.IOSeen += uint64(random.IntN(2))
			r.Workers.Files += 3
			r.Running = r.Running && random.IntN(10) > 0
			rows[i] = r
		}
	}
	for _, i := range slices.Sorted(maps.Keys(rows)) {
		s.Ranks = append(s.Ranks, rows[i])
	}
	return s
}
