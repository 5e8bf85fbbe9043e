package prometheus

import (
	"runtime"

	"github.com/datawait/datawait/analysis/live"
)

var machineTable = table[live.Machine]{
	title:   "The machine",
	subject: "this machine: the newest sample",
	values:  func(*live.Machine) (v values) { return v },
	merge:   func(_, _ *live.Machine) {},
	order:   func(*live.Machine) order { return health },
	families: []family[live.Machine]{
		shown("datawait_machine_cores", "CPU cores that are online.", "`Machine.Cores`", "not known",
			func(m *live.Machine) (float64, bool) { return m.Cores.Get() }),
		shown("datawait_machine_busy_cores", "CPU cores that were busy.", "`Machine.BusyCores`", "not known",
			func(m *live.Machine) (float64, bool) { return m.BusyCores.Get() }),
		shown("datawait_machine_runnable_tasks", "Tasks that ran or could have run.", "`Machine.RunnableTasks`", "not known",
			func(m *live.Machine) (float64, bool) { return m.RunnableTasks.Get() }),
		shown("datawait_machine_memory_available_bytes", "Bytes of memory that new processes could use.", "`Machine.MemoryAvailable`", "not known",
			func(m *live.Machine) (float64, bool) {
				n, known := m.MemoryAvailable.Get()
				return float64(n), known
			}),
	},
}.made()

var sourceTable = table[Source]{
	title:   "What the agent looks at",
	subject: "one source of the agent: `gpu`, `spool`, `holders`, `host/limits`, …",
	labels:  []string{"source"},
	values:  func(s *Source) values { return values{Clean(s.Name)} },
	merge:   func(_, _ *Source) {},
	order:   func(*Source) order { return health },
	plain:   true,
	families: []family[Source]{
		level("datawait_source_up", "1 if the source delivers, else 0; the agent's first page and /readyz say why.", "`Source.Up`",
			func(s *Source) float64 { return truth(s.Up) }),
		shown("datawait_source_duration_seconds", "Seconds the source's last run took.", "`Source.Took`", "it has not run yet",
			func(s *Source) (float64, bool) { return s.Took.Get() }),
		total("datawait_source_runs_total", "Runs of the source since the agent started.", "`Source.Runs`", func(s *Source) float64 { return float64(s.Runs) }),
		total("datawait_source_errors_total", "Runs of the source that failed.", "`Source.Errors`", func(s *Source) float64 { return float64(s.Errors) }),
	},
}.made()

var spoolTable = table[Spools]{
	title:   "Spools of hooks",
	subject: "the spool folder",
	values:  func(*Spools) (v values) { return v },
	merge:   func(_, _ *Spools) {},
	order:   func(*Spools) order { return health },
	families: []family[Spools]{
		{metric: metric{name: "datawait_spools", kind: gauge, most: 3, more: []string{"state"},
			help: "Rings in the spool folder: followed are read, waiting are found and not read yet, refused are not trustworthy.", from: "`Spools`"},
			of: func(s *Spools, e emit) {
				e(float64(s.Followed), "followed")
				e(float64(s.Waiting), "waiting")
				e(float64(s.Refused), "refused")
			}},
	},
}.made()

var processTable = table[Process]{
	title:   "What the agent costs",
	subject: "one process of the agent: `agent`, `gpu-child`, `host-engine`",
	labels:  []string{"process"},
	values:  func(p *Process) values { return values{Clean(p.Name)} },
	merge:   func(_, _ *Process) {},
	order:   func(*Process) order { return health },
	plain:   true,
	families: []family[Process]{
		{metric: metric{name: "datawait_agent_cpu_seconds_total", help: "Seconds of CPU the process took since it started.", from: "`Process.CPU`", gone: "not known"},
			of: maybe(func(p *Process) (float64, bool) { return p.CPU.Get() })},
		shown("datawait_agent_resident_bytes", "Bytes of memory the process holds.", "`Process.Resident`", "not known",
			func(p *Process) (float64, bool) {
				n, known := p.Resident.Get()
				return float64(n), known
			}),
	},
}.made()

// itself is what the agent tells of itself as a whole.
type itself struct {
	version, goVersion string
	started            float64 // s since 1970
	shown              func() int
	limit, dropped     int
}

func (c *Collector) itself(a Agent, shown func() int, dropped int) itself {
	return itself{version: a.Version, goVersion: runtime.Version(), started: float64(a.Started.UnixNano()) / 1e9, shown: shown, limit: c.o.Limit, dropped: dropped}
}

var agentTable = table[itself]{
	title:   "The agent",
	subject: "this agent",
	values:  func(*itself) (v values) { return v },
	merge:   func(_, _ *itself) {},
	order:   func(*itself) order { return health },
	families: []family[itself]{
		shown("datawait_agent_start_timestamp_seconds", "Unix time at which the agent started, in seconds.", "`Agent.Started`", "not known",
			func(a *itself) (float64, bool) { return a.started, a.started > 0 }),
		{metric: metric{name: "datawait_build_info", kind: gauge, help: "1, and the version of datawait and of the Go it was built with.", from: "`Agent.Version`",
			more: []string{"version", "goversion"}},
			of: func(a *itself, e emit) { e(1, Clean(a.version), Clean(a.goVersion)) }},
		level("datawait_series_limit", "Series of datawait that are shown at the most (--series-limit).",
			"`--series-limit`", func(a *itself) float64 { return float64(a.limit) }),
		level("datawait_series_dropped", "Series that are not shown because they did not fit: those that the subjects left out could have.",
			"those left out, each with as many series as one of its kind can have",
			func(a *itself) float64 { return float64(a.dropped) }),
		level("datawait_series", "Series of datawait that this scrape shows; a histogram has one for each bucket.",
			"those above, without `go_*` and `promhttp_*`", func(a *itself) float64 { return float64(a.shown()) }),
	},
}.made()
