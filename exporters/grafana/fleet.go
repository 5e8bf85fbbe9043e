package main

const byJob = "training_job, training_namespace"

// fleet is for whoever is asked for more GPUs: what those that are allocated do, and which jobs lose most of them.
func fleet() board {
	return board{
		file: "fleet.json", uid: "datawait-fleet", title: "datawait / fleet",
		about: "Allocation against work: what the allocated GPUs do, which jobs wait for data or hold idle GPUs, and how much of it was seen. " +
			"What was not measured is a gap or an empty cell, never 0.",
		variables: jobVariables(true),
		rows: []row{
			{"Allocation against work", []panel{
				{kind: number, title: "GPUs allocated", unit: "none", width: 4, height: 5,
					about:   "How many GPUs jobs have, on average over the last minutes. No value: no agent reports a GPU, or its allocation is unknown.",
					queries: []query{{expr: perSecond("", "datawait_gpu_allocated_seconds_total", ofGPU)}}},
				{kind: number, title: "SM activity", unit: "percentunit", width: 4, height: 5,
					about: "Share of cycles in which multiprocessors have work, of the allocated time in which that counter was read. 80 % is a GPU at work; no value: " +
						"no source reads SM activity here.",
					queries: []query{{expr: activity("sm_active", "")}}},
				{kind: number, title: "Data wait", unit: "percentunit", width: 4, height: 5,
					about:   "Share of training time in which training processes wait for their loaders, over all ranks. No value: no process with the hook trains.",
					queries: []query{{expr: waitShare("")}}},
				{kind: number, title: "GPU-hours lost to waiting", unit: "h", width: 4, height: 5,
					about: "In the range shown. Certain: a device clock saw nothing to run while the process waited for data, and epoch starts. At most: with the waits that no device " +
						"clock saw (grade C). Not measured: no process with the hook trained.",
					queries: []query{{hours(lost(inRange, "")), "certain"}, {hours(lostAtMost(inRange, "")), "at most"}}},
				{kind: number, title: "GPU-hours idle", unit: "h", width: 4, height: 5,
					about: "In the range shown: allocated, seen by counters, and without a process or without a sign of life. Time without counters is not in it. Not measured: no " +
						"counters saw an allocated GPU.",
					queries: []query{{expr: hours(idling(inRange, ""))}}},
				{kind: number, title: "Seen by counters", unit: "percentunit", width: 4, height: 5,
					about: "Share of the allocated time that trustworthy counters saw. What they did not see is unattributed, and in no panel of activity. No value: no GPU is " +
						"allocated.",
					queries: []query{{expr: share(perSecond("", "datawait_gpu_covered_seconds_total", ofGPU), perSecond("", "datawait_gpu_allocated_seconds_total", ofGPU))}}},
				{kind: lines, title: "GPUs allocated, seen and at work", unit: "none", width: 12, height: 9,
					about: "Allocated: GPUs that jobs have. Seen: those of them whose SM activity was read. SM active: their activity added up, so 4 GPUs at 50 % are 2. The gap between " +
						"seen and SM active is what a cluster dashboard does not show; a GPU that is not seen is unknown and not idle. A gap in a line: nothing was measured.",
					queries: []query{
						{perSecond("", "datawait_gpu_allocated_seconds_total", ofGPU), "allocated"},
						{perSecond("", "datawait_gpu_sm_seen_seconds_total", ofGPU), "seen"},
						{seenBy(perSecond("", "datawait_gpu_sm_active_seconds_total", ofGPU), "", perSecond("", "datawait_gpu_sm_seen_seconds_total", ofGPU)), "SM active"},
					}},
				{kind: stack, title: "Where the allocated time goes", unit: "percentunit", width: 12, height: 9, most: 1, colors: accountColors,
					about: "The accounts of all allocated GPUs, which add up to the allocated time. Unattributed: not known, among it waits that no device clock saw. A gap: no GPU " +
						"is allocated.",
					queries: []query{{shareOfAll(perSecond("account", "datawait_gpu_account_seconds_total", ofGPU), perSecond("", "datawait_gpu_allocated_seconds_total", ofGPU)), "{{account}}"}}},
			}},
			{"Which jobs", []panel{
				{kind: grid, title: "Jobs, by GPU-hours lost to waiting", unit: "none", width: 24, height: 10,
					about: "In the range shown. Lost: a device clock saw nothing to run, and epoch starts. At most: waits without a device clock added (grade C). Idle: allocated and " +
						"without a sign of life. An empty cell: not measured for that job; one without the hook has no wait, one without counters neither idle time nor SM activity.",
					queries: []query{
						{hours(lost(inRange, byJob)), "lost"},
						{hours(lostAtMost(inRange, byJob)), "most"},
						{hours(idling(inRange, byJob)), "idle"},
						{hours(inRange(byJob, "datawait_gpu_allocated_seconds_total", ofGPU)), "allocated"},
						{share(inRange(byJob, "datawait_data_wait_seconds_total", ofJob), inRange(byJob, "datawait_training_seconds_total", ofJob)), "wait"},
						{share(inRange(byJob, "datawait_gpu_sm_active_seconds_total", ofGPU), inRange(byJob, "datawait_gpu_sm_seen_seconds_total", ofGPU)), "active"},
					},
					columns: []column{{"training_job", "Job", ""}, {"training_namespace", "Namespace", ""}, {"lost", "GPU-hours lost", "h"}, {"most", "At most", "h"}, {"idle", "Idle", "h"},
						{"allocated", "Allocated", "h"}, {"wait", "Data wait", "percentunit"}, {"active", "SM activity", "percentunit"}}},
				{kind: lines, title: "The ten jobs that wait most", unit: "percentunit", width: 12, height: 9,
					about:   "Share of training time that is waited for data, over all ranks of a job. A job that is missing here waits less, or has no hook. A gap: it does not train.",
					queries: []query{{"topk(10, " + waitShare(byJob) + ")", "{{training_job}} {{training_namespace}}"}}},
				{kind: lines, title: "Ranks that wait, by job", unit: "none", width: 12, height: 9,
					about: "How many ranks of a job wait for data at a time: what its wait costs. Half of a job of 64 ranks is more than all of a job of 2. A gap: it does not train, or " +
						"has no hook.",
					queries: []query{{"topk(10, " + perSecond(byJob, "datawait_data_wait_seconds_total", ofJob) + " and " + perSecond(byJob, "datawait_training_seconds_total", ofJob) + " > 0)", "{{training_job}} {{training_namespace}}"}}},
			}},
			{"Allocated and idle", []panel{
				{kind: grid, title: "Idle GPUs, by hours", unit: "none", width: 12, height: 9,
					about: "In the range shown: allocated GPUs without a process or without a sign of life, and whose they are. The job (shared) stands for several at once. A GPU " +
						"without counters is not listed: it is unknown whether it idles.",
					queries: []query{{hours("topk(50, " + inRange("training_job, training_namespace, training_pod, gpu_uuid, instance", "datawait_gpu_account_seconds_total", and(ofGPU, idle)) + " > 0)"), "idle"}},
					columns: []column{{"training_job", "Job", ""}, {"training_namespace", "Namespace", ""}, {"training_pod", "Pod", ""}, {"instance", "Node", ""}, {"gpu_uuid", "GPU", ""}, {"idle", "Hours idle", "h"}}},
				{kind: lines, title: "Idle GPUs", unit: "none", width: 12, height: 9,
					about: "How many allocated GPUs do nothing at a time. Not held: no process has a context. Held: one has, and makes no step and runs no kernel. A gap: no " +
						"counters see an allocated GPU.",
					queries: []query{{seenBy(perSecond("account", "datawait_gpu_account_seconds_total", and(ofGPU, idle)), "", perSecond("", "datawait_gpu_covered_seconds_total", ofGPU)), "{{account}}"}}},
			}},
			{"How much of it is known", []panel{
				{kind: lines, title: "Untrusted counters, by GPU", unit: "percentunit", width: 12, height: 9,
					about: "Share of the time with counters in which they contradict one another (the ten worst). That time is unattributed, not idle. A GPU that is missing here has less, " +
						"or no counters at all.",
					queries: []query{{"topk(10, " + untrusted("gpu_uuid, instance") + ")", "{{instance}} {{gpu_uuid}}"}}},
				{kind: grid, title: "Where the numbers are from", unit: "none", width: 12, height: 9,
					about: "Source and grade of each GPU's counters: A the GPU's own, B one source or a coarse one, C inferred. Emulated: an invented device for tests and demonstrations. " +
						"An empty table: no agent sees a GPU.",
					queries: []query{{"max by (gpu_uuid, name, source, grade, emulated, instance) (datawait_gpu_info{gpu_uuid=~\"$gpu_uuid\"})", "one"}},
					columns: []column{{"instance", "Node", ""}, {"gpu_uuid", "GPU", ""}, {"name", "Name", ""}, {"source", "Source", ""}, {"grade", "Grade", ""}, {"emulated", "Emulated", ""}}},
				{kind: grid, title: "Alerts", unit: "none", width: 24, height: 7,
					about:   "Alerts of datawait that are firing (exporters/rules). An empty table: none is, or the rules are not loaded.",
					queries: []query{{`max by (alertname, severity, training_job, training_namespace, rank, instance) (ALERTS{alertname=~"Datawait.*",alertstate="firing"})`, "one"}},
					columns: []column{{"alertname", "Alert", ""}, {"severity", "Severity", ""}, {"training_job", "Job", ""}, {"training_namespace", "Namespace", ""}, {"rank", "Rank", ""}, {"instance", "Node", ""}}},
			}},
		},
	}
}

// accountColors: work is green, what a fix wins back red and orange, what is not known grey.
var accountColors = map[string]string{
	"compute": "green", "collective": "dark-green", "copy": "yellow", "host": "blue", "exposed_wait": "red", "epoch_start": "orange", "validation": "purple",
	"checkpoint": "light-purple", "startup": "light-blue", "idle_held": "dark-red", "not_held": "semi-dark-red", "unattributed": "gray",
}
