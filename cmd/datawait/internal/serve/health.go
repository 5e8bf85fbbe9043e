package serve

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	exporter "github.com/datawait/datawait/exporters/prometheus"
	"github.com/datawait/datawait/probe/clock"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/spool"
	"github.com/datawait/datawait/probe/unit"
)

// health is how the agent does, as its loop saw it last.
type health struct {
	counts spool.YardCounts
	gpu    gpuHealth
	child  bool // a GPU child runs
}

func (a *agent) newHealth(uint64) *health {
	h := &health{counts: a.yard.Counts(), gpu: a.wire.gpu}
	state, started := a.gpu.State()
	h.child = started && state.PID != 0
	return h
}

// agent is what is shown of the agent itself. It is asked from other goroutines.
func (a *agent) agent() exporter.Agent {
	shown := exporter.Agent{Version: a.options.Version, Started: a.began, Processes: []exporter.Process{ownProcess()}}
	shown.Sources = a.sources()
	if h := a.health.Load(); h != nil {
		shown.Spools = exporter.Spools{Followed: h.counts.Followed, Waiting: h.counts.Waiting, Refused: h.counts.Refused + h.counts.Bad}
		if h.child {
			shown.Processes = append(shown.Processes, h.gpu.process())
		}
	}
	return shown
}

func ownProcess() exporter.Process {
	p := exporter.Process{Name: "agent", CPU: unit.Some(float64(clock.ProcessCPU()) / 1e9)}
	if pages, err := os.ReadFile("/proc/self/statm"); err == nil { // pages: size resident … (proc_pid_statm(5))
		var size, resident uint64
		if _, err := fmt.Sscan(string(pages), &size, &resident); err == nil {
			p.Resident = unit.Some(resident * uint64(os.Getpagesize()))
		}
	}
	return p
}

func (h *gpuHealth) process() exporter.Process {
	p := exporter.Process{Name: "gpu-child", CPU: unit.Some(h.cpu)}
	if h.rss != recording.Unknown64 {
		p.Resident = unit.Some(h.rss)
	}
	return p
}

// sources lists the probes. Those that look at one job each are one source: it is up if all are.
func (a *agent) sources() (all []exporter.Source) {
	for _, h := range a.sampler.Health() {
		s := exporter.Source{Name: h.Name, Up: h.Success, Why: strings.ReplaceAll(h.Why, "\n", "; "), Took: unit.Some(h.Duration.Seconds()), Runs: h.Runs, Errors: h.Errors}
		if h.Runs == 0 {
			s.Took = unit.Maybe[float64]{}
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(x, y exporter.Source) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

// trouble says once what is wrong, and again only when it is something else.
func (a *agent) trouble(what, why string) {
	if a.troubles[what] == why {
		return
	}
	a.troubles[what] = why
	if why == "" {
		a.log.Info("works again", "what", what)
		return
	}
	a.log.Warn("trouble", "what", what, "reason", why)
}

// tellTroubles says which sources fail, and which work again.
func (a *agent) tellTroubles() {
	for _, s := range a.sources() {
		switch {
		case !s.Up && s.Why != "":
			a.trouble(s.Name, s.Why)
		case s.Up && a.troubles[s.Name] != "":
			a.trouble(s.Name, "")
		}
	}
}
