package main

// agent is for whoever runs datawait: does it see everything, and what does it cost.
func agent() board {
	return board{
		file: "agent.json", uid: "datawait-agent", title: "datawait / agent health",
		about:     "The agents themselves: what they see, how late, what they lose and what they cost. What is not measured is a gap, never 0.",
		variables: append([]variable{{name: "instance", title: "Agent", label: "instance", metric: "datawait_build_info", all: true}}, jobVariables(true)...),
		rows:      []row{sourcesOfAgent(), spoolsOfAgent(), costOfAgent()},
	}
}

func sourcesOfAgent() row {
	return row{"Sources", []panel{
		{kind: number, title: "Agents", unit: "none", width: 6, height: 5,
			about:   "How many agents answer. No value: none does.",
			queries: []query{{expr: "count(datawait_build_info" + node + ")"}}},
		{kind: number, title: "Sources that are down", unit: "none", width: 6, height: 5,
			about:   "Over all agents. What a source measures is absent while it is down. No value: no agent answers.",
			queries: []query{{expr: "count(datawait_source_up" + node + ") - sum(datawait_source_up" + node + ")"}}},
		{kind: number, title: "Started", unit: "dateTimeFromNow", width: 6, height: 5,
			about:   "When the agent that started last did. Counters go on from its state file. No value: no agent answers.",
			queries: []query{{expr: "max(datawait_agent_start_timestamp_seconds" + node + ") * 1000"}}},
		{kind: number, title: "Series left out", unit: "none", width: 6, height: 5,
			about:   "Over the limit of an agent, so that sums over jobs of its node are too low. No value: no agent answers.",
			queries: []query{{expr: "sum(datawait_series_dropped" + node + ")"}}},
		{kind: onOff, title: "Sources", unit: "none", width: 12, height: 10,
			about:   "Each source of each agent: whether its last run worked. A gap: the agent did not answer, or it does not have that source.",
			queries: []query{{"min by (instance, source) (datawait_source_up" + node + ")", "{{instance}} {{source}}"}}},
		{kind: lines, title: "A run of a source takes", unit: "s", width: 12, height: 10,
			about:   "How long its last run took. A source that takes longer than its interval is late. A gap: the agent did not answer.",
			queries: []query{{"max by (instance, source) (datawait_source_duration_seconds" + node + ")", "{{instance}} {{source}}"}}},
		{kind: lines, title: "Runs that fail", unit: "percentunit", width: 12, height: 9,
			about: "Of the runs of a source. A gap: it did not run.",
			queries: []query{{share(perSecond("instance, source", "datawait_source_errors_total", node), perSecond("instance, source", "datawait_source_runs_total", node)),
				"{{instance}} {{source}}"}}},
		{kind: lines, title: "Age of the newest counters, by GPU", unit: "s", width: 12, height: 9,
			about: "Time from the end of the newest window to the scrape: by the clocks of the node and of Prometheus, so a clock that is off shows too. A line that climbs: no counters " +
				"come. No line: none ever came.",
			queries: []query{{"max by (instance, gpu_uuid) (timestamp(datawait_gpu_last_window_timestamp_seconds" + node + ") - datawait_gpu_last_window_timestamp_seconds" + node + ")",
				"{{instance}} {{gpu_uuid}}"}}},
	}}
}

func spoolsOfAgent() row {
	ofNode := `{instance=~"$instance",training_namespace=~"$training_namespace",training_job=~"$training_job"}`
	return row{"Spools", []panel{
		{kind: lines, title: "Spools", unit: "none", width: 12, height: 9,
			about:   "Followed: read. Waiting: of a process that has not begun. Refused: not read, its process is not measured; the log says why. A gap: the agent did not answer.",
			queries: []query{{"sum by (state) (datawait_spools" + node + ")", "{{state}}"}}},
		{kind: lines, title: "Records read", unit: "none", width: 12, height: 9,
			about:   "Per second, by agent. A gap: no hook tells anything there.",
			queries: []query{{perSecond("instance", "datawait_hook_records_total", ofNode), "{{instance}}"}}},
		{kind: lines, title: "Records lost", unit: "percentunit", width: 12, height: 9,
			about:   "Share that was overwritten before it was read, by agent. What was lost is in no counter. A gap: no hook tells anything there.",
			queries: []query{{recordsLost("instance", ofNode), "{{instance}}"}}},
		{kind: lines, title: "Hooks with errors", unit: "none", width: 12, height: 9,
			about: "Errors that were caught inside hooks (in the range of a rate, added up), and ranks whose hook is off. The training goes on. A gap: no hook tells anything.",
			queries: []query{
				{total("", "increase", "datawait_hook_errors_total", ofNode, "$__rate_interval"), "errors"},
				{"sum(datawait_hook_disabled" + ofNode + ")", "off"},
			}},
	}}
}

func costOfAgent() row {
	return row{"What it costs", []panel{
		{kind: lines, title: "CPU", unit: "percentunit", width: 8, height: 9,
			about:   "Of one core: the agent, its child that holds the GPU libraries, and the host engine, which others use too. A gap: that process is not there or cannot be read.",
			queries: []query{{perSecond("instance, process", "datawait_agent_cpu_seconds_total", node), "{{instance}} {{process}}"}}},
		{kind: lines, title: "Memory", unit: "bytes", width: 8, height: 9,
			about:   "Resident. It should be flat while jobs come and go. A gap: that process is not there or cannot be read.",
			queries: []query{{"max by (instance, process) (datawait_agent_resident_bytes" + node + ")", "{{instance}} {{process}}"}}},
		{kind: lines, title: "Series against the limit", unit: "percentunit", width: 8, height: 9, most: 1,
			about:   "At 100 % the series of new jobs are left out. A gap: the agent did not answer.",
			queries: []query{{"max by (instance) (datawait_series" + node + ") / (max by (instance) (datawait_series_limit" + node + ") > 0)", "{{instance}}"}}},
		{kind: grid, title: "Versions", unit: "none", width: 24, height: 7,
			about:   "Of each agent. An empty table: no agent answers.",
			queries: []query{{"max by (instance, version, goversion) (datawait_build_info" + node + ")", "one"}},
			columns: []column{{"instance", "Agent", ""}, {"version", "Version", ""}, {"goversion", "Go", ""}}},
	}}
}
