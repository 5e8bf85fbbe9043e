package main

// job is for one training: do its GPUs work or wait, on which ranks, and what holds its loader up.
func job() board {
	return board{
		file: "job.json", uid: "datawait-job", title: "datawait / job",
		about: "One training: activity of its GPUs against the wait for data, where the allocated time goes, its ranks, its loader and its host. The report has the causes and " +
			"the fixes: datawait report DIR --job NAME, on the node. What was not measured is a gap, never 0.",
		variables: jobVariables(false),
		rows:      []row{nowOfJob(), activityAgainstWait(), ranksOfJob(), loaderOfJob(), hostOfJob(), hookOfJob()},
	}
}

func nowOfJob() row {
	return row{"Now", []panel{
		{kind: number, title: "Data wait", unit: "percentunit", width: 4, height: 4,
			about:   "Share of training time in which ranks wait for their loaders. No value: the job does not train now, or no hook is in it.",
			queries: []query{{expr: waitShare("")}}},
		{kind: number, title: "Of it exposed", unit: "percentunit", width: 4, height: 4,
			about: "Share of the wait in which the device had nothing to run, of the wait that a device clock saw: all that a fix can win back. No value: no device clock, it is " +
				"unknown how much is hidden.",
			queries: []query{{expr: share(perSecond("", "datawait_exposed_wait_seconds_total", ofJob), perSecond("", "datawait_data_wait_clocked_seconds_total", ofJob))}}},
		{kind: number, title: "SM activity", unit: "percentunit", width: 4, height: 4,
			about:   "Share of cycles in which multiprocessors have work, of the allocated time in which that counter was read. No value: no source reads it.",
			queries: []query{{expr: activity("sm_active", "")}}},
		{kind: number, title: "GPUs", unit: "none", width: 4, height: 4,
			about:   "How many GPUs the job has. No value: no agent sees its GPUs, or it is unknown whose they are.",
			queries: []query{{expr: perSecond("", "datawait_gpu_allocated_seconds_total", ofGPU)}}},
		{kind: number, title: "Ranks running", unit: "none", width: 4, height: 4,
			about:   "Training processes that live. No value: no hook is in the job, or it ended longer ago than ended ranks are kept.",
			queries: []query{{expr: "sum(datawait_rank_running" + ofJob + ")"}}},
		{kind: number, title: "GPU-hours lost", unit: "h", width: 4, height: 4,
			about: "In the range shown. Certain: exposed wait and epoch starts. At most: with the waits that no device clock saw (grade C). Not measured: no process with the hook trained, " +
				"or its GPUs are shared.",
			queries: []query{{hours(lost(inRange, "")), "certain"}, {hours(lostAtMost(inRange, "")), "at most"}}},
	}}
}

func activityAgainstWait() row {
	return row{"Activity against data wait", []panel{
		{kind: lines, title: "Activity against data wait", unit: "percentunit", width: 24, height: 10, most: 1,
			about: "The GPUs' activity (of the time in which it was read) and the ranks' wait (of training time) on one axis. When the one falls as the other rises, the input " +
				"pipeline is the cause; when activity is low without wait, look at the training itself. A gap: that one was not measured.",
			colors: map[string]string{"SM activity": "green", "kernel resident": "light-green", "tensor activity": "dark-green", "data wait": "red"},
			queries: []query{
				{activity("sm_active", ""), "SM activity"},
				{activity("resident", ""), "kernel resident"},
				{activity("tensor_active", ""), "tensor activity"},
				{waitShare(""), "data wait"},
			}},
		{kind: stack, title: "Where the allocated time goes", unit: "percentunit", width: 12, height: 10, most: 1, colors: accountColors,
			about:   "The accounts of the job's GPUs, which add up to their allocated time. Unattributed: not known, among it waits that no device clock saw. A gap: no GPU is allocated.",
			queries: []query{{shareOfAll(perSecond("account", "datawait_gpu_account_seconds_total", ofGPU), perSecond("", "datawait_gpu_allocated_seconds_total", ofGPU)), "{{account}}"}}},
		{kind: lines, title: "SM activity, by GPU", unit: "percentunit", width: 12, height: 10, most: 1,
			about:   "Each GPU of the job. A GPU that stands out waits for something of its own, or makes the others wait. A gap: its counters were not read, or contradicted one another.",
			queries: []query{{activity("sm_active", "gpu_uuid"), "{{gpu_uuid}}"}}},
	}}
}

func ranksOfJob() row {
	const rank, byRank = "{{training_pod}} rank {{rank}}", "training_pod, rank"
	return row{"Ranks", []panel{
		{kind: lines, title: "Data wait, by rank", unit: "percentunit", width: 12, height: 9,
			about: "Share of training time that each rank waits for its own data. In training with an exchange of gradients the rank that lies above the others holds them up: they " +
				"wait for it, and not for data. A gap or a missing rank: not measured.",
			queries: []query{{waitShare(byRank), rank}}},
		{kind: lines, title: "Steps per second, by rank", unit: "none", width: 12, height: 9,
			about:   "Optimizer steps. Ranks that train together lie upon one another. No line: no step was seen (a compiled optimizer hides them), or no hook is in the rank.",
			queries: []query{{perSecond(byRank, "datawait_steps_total", ofJob) + " > 0", rank}}},
		{kind: lines, title: "Epoch starts, validation and checkpoints", unit: "none", width: 12, height: 9,
			about: "How many ranks are at it at a time: making iterators and waiting for their first batch, waiting in validation loops, saving. It is not training time. A gap: no hook " +
				"is in the job.",
			queries: []query{
				{perSecond("", "datawait_epoch_start_seconds_total", ofJob), "epoch start"},
				{perSecond("", "datawait_validation_wait_seconds_total", ofJob), "validation, waiting"},
				{perSecond("", "datawait_checkpoint_seconds_total", ofJob), "checkpoint"},
			}},
		{kind: lines, title: "Hand-off", unit: "percentunit", width: 12, height: 9,
			about: "Share of the wait in which the batch had already been built and sent: unpickling, re-ordering, pinning. Of the wait of which it is known when the batch was sent. A " +
				"gap: it is not known, or nothing waits.",
			queries: []query{{share(perSecond("", "datawait_handoff_seconds_total", ofJob), perSecond("", "datawait_handoff_seen_seconds_total", ofJob)), "hand-off"}}},
		{kind: heat, title: "Step time", unit: "s", width: 12, height: 9,
			about:   "How long steps take, all ranks together; the buckets are powers of 2. Empty: no step was seen, or the agent exports native histograms (the quantiles beside show those).",
			queries: []query{{total("le", "rate", "datawait_step_duration_seconds_bucket", ofJob, "$__rate_interval"), "{{le}}"}}},
		{kind: lines, title: "Step time, mean and quantiles", unit: "s", width: 12, height: 9,
			about: "The mean is exact; quantiles are read off buckets that double, so they are within a factor of 2 (native histograms: 9 %). A gap: no step was seen.",
			queries: []query{
				{share(perSecond("", "datawait_step_duration_seconds_sum", ofJob), perSecond("", "datawait_step_duration_seconds_count", ofJob)), "mean"},
				{quantile("0.5"), "median"},
				{quantile("0.99"), "99 %"},
			}},
		{kind: grid, title: "Who they are", unit: "none", width: 24, height: 7,
			about:   "Each rank with its pod, GPU, world size and node. An empty cell: it does not know, or nobody told. An empty table: no hook is in the job.",
			queries: []query{{"max by (rank, training_pod, gpu_uuid, world_size, instance) (datawait_rank_info" + ofJob + ")", "one"}},
			columns: []column{{"rank", "Rank", ""}, {"training_pod", "Pod", ""}, {"gpu_uuid", "GPU", ""}, {"world_size", "World size", ""}, {"instance", "Node", ""}}},
		{kind: grid, title: "Where its GPU numbers are from", unit: "none", width: 24, height: 7,
			about: "Source and grade of the counters of the job's GPUs: A the GPU's own, B one source or a coarse one, C inferred. Emulated: an invented device. An empty table: no agent " +
				"sees a GPU of this job.",
			queries: []query{{"max by (gpu_uuid, training_job, training_pod) (datawait_gpu_holder_info" + ofGPU + ")" +
				" * on (gpu_uuid) group_left (name, source, grade, emulated) max by (gpu_uuid, name, source, grade, emulated) (datawait_gpu_info)", "one"}},
			columns: []column{{"gpu_uuid", "GPU", ""}, {"training_job", "Held by", ""}, {"training_pod", "Pod", ""}, {"name", "Name", ""}, {"source", "Source", ""}, {"grade", "Grade", ""}, {"emulated", "Emulated", ""}}},
	}}
}

// quantile of step times, of a classic histogram or of a native one.
func quantile(q string) string {
	return "histogram_quantile(" + q + ", " + total("le", "rate", "datawait_step_duration_seconds_bucket", ofJob, "$__rate_interval") + ") or histogram_quantile(" + q + ", " +
		total("", "rate", "datawait_step_duration_seconds", ofJob, "$__rate_interval") + ")"
}

func loaderOfJob() row {
	const build = "datawait_worker_build_seconds_total"
	return row{"Loader", []panel{
		{kind: lines, title: "Workers", unit: "none", width: 8, height: 8,
			about: "Worker processes that live, and how many of them build at a time: fewer than there are means that the loader keeps up or that they wait for indices. No line: no " +
				"workers (batches are built in the training process), or no hook.",
			queries: []query{{"sum(datawait_workers" + ofJob + ") > 0", "living"}, {perSecond("", build, ofJob) + " > 0", "building"}}},
		{kind: lines, title: "What workers do while they build", unit: "percentunit", width: 8, height: 8,
			about: "Of the time in which batches are built: on a core; runnable without one (too few cores); and, at least, off the CPU (storage, network, locks). Each of the time in " +
				"which it was read. A gap: not read, or nothing is built.",
			queries: []query{
				{share(perSecond("", "datawait_worker_cpu_seconds_total", ofJob), perSecond("", "datawait_worker_cpu_seen_seconds_total", ofJob)), "CPU"},
				{share(perSecond("", "datawait_worker_run_queue_seconds_total", ofJob), perSecond("", "datawait_worker_run_queue_seen_seconds_total", ofJob)), "run queue"},
				{share(perSecond("", "datawait_worker_off_cpu_seconds_total", ofJob), perSecond("", "datawait_worker_run_queue_seen_seconds_total", ofJob)), "off the CPU"},
			}},
		{kind: lines, title: "A batch takes", unit: "s", width: 8, height: 8,
			about:   "Mean time from the first sample of a batch to the last, in the worker. Divided by the workers it must be below a step. A gap: no worker builds.",
			queries: []query{{share(perSecond("", build, ofJob), perSecond("", "datawait_worker_batches_total", ofJob)), "build"}}},
		{kind: lines, title: "Files and requests per batch", unit: "none", width: 12, height: 8,
			about: "Opened files and HTTP requests, of the batches in which they were counted. Many of either make the store's latency count. No line: not counted in this job, which is " +
				"not 0.",
			queries: []query{
				{share(perSecond("", "datawait_files_opened_total", ofJob), perSecond("", "datawait_io_seen_batches_total", ofJob)), "files"},
				{share(perSecond("", "datawait_requests_total", ofJob), perSecond("", "datawait_io_seen_batches_total", ofJob)), "requests"},
			}},
		{kind: lines, title: "Bytes per batch", unit: "bytes", width: 12, height: 8,
			about:   "What read calls returned: a lower bound, for sockets and memory maps do not count. No line: not counted in this job, which is not 0.",
			queries: []query{{share(perSecond("", "datawait_read_bytes_total", ofJob), perSecond("", "datawait_read_seen_batches_total", ofJob)), "read"}}},
	}}
}

func hostOfJob() row {
	here := " and on (instance) (datawait_rank_running" + ofJob + " == 1)"
	return row{"Host", []panel{
		{kind: lines, title: "Usable cores", unit: "none", width: 8, height: 8,
			about:   "The least of CPU limit, cpuset and affinity, by pod: what workers may use, whatever the machine has. No line: it is unknown.",
			queries: []query{{"min by (training_pod) (datawait_usable_cores" + ofJob + ")", "{{training_pod}}"}}},
		{kind: lines, title: "Throttled by the CPU limit", unit: "s", width: 8, height: 8,
			about:   "Seconds per second in which the control group is kept from running, added up over its CPUs, so it can be above 1. No line: no limit, or it cannot be read.",
			queries: []query{{"max by (training_pod) (rate(datawait_cpu_throttled_seconds_total" + ofJob + "[$__rate_interval]))", "{{training_pod}}"}}},
		{kind: lines, title: "Busy cores of its machines", unit: "percentunit", width: 8, height: 8, most: 1,
			about:   "Of the machine's cores, whoever keeps them busy. Full cores with few usable ones of its own: neighbours. A gap: not measured, or no rank runs there.",
			queries: []query{{"datawait_machine_busy_cores / (datawait_machine_cores > 0)" + here, "{{instance}}"}}},
		{kind: lines, title: "Tasks that want to run, per core", unit: "none", width: 12, height: 8,
			about:   "Runnable tasks of the machine over its cores. Above 1 they stand in line. A gap: not measured, or no rank runs there.",
			queries: []query{{"datawait_machine_runnable_tasks / (datawait_machine_cores > 0)" + here, "{{instance}}"}}},
		{kind: lines, title: "Memory available", unit: "bytes", width: 12, height: 8,
			about:   "Of its machines: what the page cache can still take. Data that does not fit is read anew in every epoch. A gap: not measured, or no rank runs there.",
			queries: []query{{"datawait_machine_memory_available_bytes" + here, "{{instance}}"}}},
	}}
}

func hookOfJob() row {
	return row{"How much of it is known", []panel{
		{kind: lines, title: "Records lost", unit: "percentunit", width: 8, height: 8,
			about:   "Share of what the hook told that was overwritten before it was read. What was lost is in no counter. A gap: the hook tells nothing.",
			queries: []query{{recordsLost("", ofJob), "lost"}}},
		{kind: lines, title: "Ranks whose hook is off", unit: "none", width: 8, height: 8,
			about:   "It switches itself off when something fails inside it; the training goes on, unmeasured. No line: no hook is in the job.",
			queries: []query{{"sum(datawait_hook_disabled" + ofJob + ")", "off"}}},
		{kind: lines, title: "What the hook takes, per fetch", unit: "s", width: 8, height: 8,
			about:   "Its own time in the fetches in which it looked, which are few: most take a few microseconds. A gap: it did not look.",
			queries: []query{{share(perSecond("", "datawait_hook_own_seconds_total", ofJob), perSecond("", "datawait_hook_looks_total", ofJob)), "a look"}}},
	}}
}
