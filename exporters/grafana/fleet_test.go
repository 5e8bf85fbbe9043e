package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// series are time series as promtool is told of them: name and labels, and what they grow by in 15 seconds (or stand at).
type series map[string]string

func (s series) grows(labels string, by map[string]float64) {
	for name, n := range by {
		s["datawait_"+name+"{"+labels+"}"] = fmt.Sprintf("0+%gx240", n)
	}
}

func (s series) stands(labels string, at map[string]float64) {
	for name, n := range at {
		s["datawait_"+name+"{"+labels+"}"] = fmt.Sprintf("%gx240", n)
	}
}

// gpu is a GPU and what it does of every 15 seconds. Counters see it if seen.
func (s series) gpu(node, job, uuid string, seen bool, active float64, accounts map[string]float64, upperBound float64) {
	tenant := fmt.Sprintf(`instance=%q,training_job=%q,training_namespace="vision",training_pod="%s-%s",gpu_uuid=%q`, node, job, job, node, uuid)
	for _, a := range []string{"not_held", "startup", "epoch_start", "exposed_wait", "copy", "compute", "collective", "validation", "checkpoint", "host", "idle_held", "unattributed"} {
		s.grows(tenant+fmt.Sprintf(",account=%q", a), map[string]float64{"gpu_account_seconds_total": accounts[a]})
	}
	counted := 0.0
	if seen {
		counted = 15
	}
	s.grows(tenant, map[string]float64{"gpu_allocated_seconds_total": 15, "gpu_covered_seconds_total": counted, "gpu_wait_upper_bound_seconds_total": upperBound,
		"gpu_untrusted_seconds_total": 0, "gpu_sm_active_seconds_total": active, "gpu_sm_seen_seconds_total": counted, "gpu_resident_seconds_total": active,
		"gpu_resident_seen_seconds_total": counted, "gpu_tensor_active_seconds_total": active / 2, "gpu_tensor_seen_seconds_total": counted})
	s.stands(tenant, map[string]float64{"gpu_holder_info": 1})
	s.stands(fmt.Sprintf(`instance=%q,gpu_uuid=%q,name="NVIDIA A100",source="dcgm",grade="A",emulated="false",index="0"`, node, uuid), map[string]float64{"gpu_info": 1})
	if seen {
		s.stands(fmt.Sprintf(`instance=%q,gpu_uuid=%q`, node, uuid), map[string]float64{"gpu_last_window_timestamp_seconds": 3590})
	}
}

// rank is a training process with the hook.
func (s series) rank(node, job, rank, uuid string, wait, clocked, exposed float64) {
	tenant := fmt.Sprintf(`instance=%q,training_job=%q,training_namespace="vision",training_pod="%s-%s"`, node, job, job, node)
	own := tenant + fmt.Sprintf(",rank=%q", rank)
	s.grows(own, map[string]float64{"training_seconds_total": 15, "data_wait_seconds_total": wait, "data_wait_clocked_seconds_total": clocked, "exposed_wait_seconds_total": exposed,
		"steps_total": 30, "fetches_total": 30, "epochs_total": 0, "handoff_seconds_total": 0, "handoff_seen_seconds_total": wait, "epoch_start_seconds_total": 0,
		"validation_wait_seconds_total": 0, "checkpoint_seconds_total": 0, "worker_batches_total": 30, "worker_build_seconds_total": 60, "worker_cpu_seconds_total": 30,
		"worker_cpu_seen_seconds_total": 60, "worker_run_queue_seconds_total": 6, "worker_run_queue_seen_seconds_total": 60, "worker_off_cpu_seconds_total": 24,
		"hook_records_total": 90, "hook_records_lost_total": 10, "hook_errors_total": 0, "hook_own_seconds_total": 0.003, "hook_looks_total": 15})
	s.stands(own, map[string]float64{"rank_running": 1, "workers": 4, "hook_disabled": 0})
	s.stands(own+fmt.Sprintf(`,gpu_uuid=%q,world_size="2"`, uuid), map[string]float64{"rank_info": 1})
	for le, n := range map[string]float64{"0.25": 0, "0.5": 30, "1": 30, "+Inf": 30} {
		s.grows(tenant+fmt.Sprintf(",le=%q", le), map[string]float64{"step_duration_seconds_bucket": n})
	}
	s.grows(tenant, map[string]float64{"step_duration_seconds_sum": 15, "step_duration_seconds_count": 30, "cpu_throttled_seconds_total": 3})
	s.stands(tenant, map[string]float64{"usable_cores": 4})
}

// node is an agent and its machine.
func (s series) node(node string) {
	own := fmt.Sprintf("instance=%q", node)
	s.stands(own, map[string]float64{"machine_cores": 16, "machine_busy_cores": 4, "machine_runnable_tasks": 8, "machine_memory_available_bytes": 1 << 30, "series": 500, "series_limit": 20000,
		"series_dropped": 0, "agent_start_timestamp_seconds": 60})
	s.stands(own+`,version="1",goversion="go1.26"`, map[string]float64{"build_info": 1})
	for source, up := range map[string]float64{"gpu": 0, "spool": 1} {
		s.stands(own+fmt.Sprintf(",source=%q", source), map[string]float64{"source_up": up, "source_duration_seconds": 0.1})
		s.grows(own+fmt.Sprintf(",source=%q", source), map[string]float64{"source_runs_total": 15, "source_errors_total": 15 * (1 - up)})
	}
	s.stands(own+`,state="followed"`, map[string]float64{"spools": 10})
	for _, process := range []string{"agent", "gpu-child"} {
		s.grows(own+fmt.Sprintf(",process=%q", process), map[string]float64{"agent_cpu_seconds_total": 0.15})
		s.stands(own+fmt.Sprintf(",process=%q", process), map[string]float64{"agent_resident_bytes": 3e7})
	}
}

// someFleet has a job of two ranks on two nodes of which all is known, one with the hook and without counters or a device clock, one with
// counters and without the hook that idles, and a GPU that two jobs share.
func someFleet() series {
	s := series{}
	s.node("a")
	s.node("b")
	trains := map[string]float64{"compute": 7.5, "exposed_wait": 4.5, "epoch_start": 1.5, "host": 1.5}
	s.gpu("a", "resnet", "GPU-0", true, 11.25, trains, 0)
	s.gpu("b", "resnet", "GPU-1", true, 11.25, trains, 0)
	s.rank("a", "resnet", "0", "GPU-0", 9, 9, 4.5)
	s.rank("b", "resnet", "1", "GPU-1", 9, 9, 4.5)
	s.gpu("a", "blind", "GPU-2", false, 0, map[string]float64{"unattributed": 15}, 4.5)
	s.rank("a", "blind", "", "GPU-2", 4.5, 0, 0)
	s.gpu("b", "notebook", "GPU-3", true, 0, map[string]float64{"idle_held": 15}, 0)
	s.gpu("b", "(shared)", "GPU-4", true, 0, map[string]float64{"idle_held": 3, "compute": 12}, 0)
	s.stands(`instance="b",training_job="resnet",training_namespace="vision",training_pod="resnet-b",gpu_uuid="GPU-4"`, map[string]float64{"gpu_holder_info": 1})
	return s
}

// shows is what a query of a panel gives for someFleet after an hour: by labels, a thousandth near.
type shows struct {
	board, panel string
	query        int
	want         map[string]float64
}

// byJobs writes the labels of jobs.
func byJobs(values map[string]float64) map[string]float64 {
	labels := map[string]float64{}
	for job, v := range values {
		labels[fmt.Sprintf(`{training_job=%q,training_namespace="vision"}`, job)] = v
	}
	return labels
}

var expected = []shows{
	{"datawait-fleet", "GPUs allocated", 0, map[string]float64{"{}": 5}},
	{"datawait-fleet", "SM activity", 0, map[string]float64{"{}": 0.375}}, // of the four GPUs that counters see
	{"datawait-fleet", "Data wait", 0, map[string]float64{"{}": 0.5}},
	{"datawait-fleet", "GPU-hours lost to waiting", 0, map[string]float64{"{}": 0.8}},
	{"datawait-fleet", "GPU-hours lost to waiting", 1, map[string]float64{"{}": 1.1}},
	{"datawait-fleet", "GPU-hours idle", 0, map[string]float64{"{}": 1.2}},
	{"datawait-fleet", "Seen by counters", 0, map[string]float64{"{}": 0.8}},
	// A job without the hook has lost nothing that is known, which is not 0; one without a device clock has lost nothing for certain.
	{"datawait-fleet", "Jobs, by GPU-hours lost to waiting", 0, byJobs(map[string]float64{"resnet": 0.8, "blind": 0})},
	{"datawait-fleet", "Jobs, by GPU-hours lost to waiting", 1, byJobs(map[string]float64{"resnet": 0.8, "blind": 0.3})},
	{"datawait-fleet", "Jobs, by GPU-hours lost to waiting", 2, byJobs(map[string]float64{"resnet": 0, "notebook": 1, "(shared)": 0.2})},
	{"datawait-fleet", "Jobs, by GPU-hours lost to waiting", 3, byJobs(map[string]float64{"resnet": 2, "notebook": 1, "(shared)": 1, "blind": 1})},
	{"datawait-fleet", "Jobs, by GPU-hours lost to waiting", 4, byJobs(map[string]float64{"resnet": 0.6, "blind": 0.3})},
	{"datawait-fleet", "Jobs, by GPU-hours lost to waiting", 5, byJobs(map[string]float64{"resnet": 0.75, "notebook": 0, "(shared)": 0})},
	{"datawait-fleet", "Ranks that wait, by job", 0, byJobs(map[string]float64{"resnet": 1.2, "blind": 0.3})},
	{"datawait-fleet", "Untrusted counters, by GPU", 0, map[string]float64{`{gpu_uuid="GPU-0",instance="a"}`: 0, `{gpu_uuid="GPU-1",instance="b"}`: 0, `{gpu_uuid="GPU-3",instance="b"}`: 0,
		`{gpu_uuid="GPU-4",instance="b"}`: 0}},
	{"datawait-job", "Of it exposed", 0, map[string]float64{"{}": 0.5}}, // of the wait that was clocked
	{"datawait-job", "Data wait, by rank", 0, map[string]float64{`{rank="0",training_pod="resnet-a"}`: 0.6, `{rank="1",training_pod="resnet-b"}`: 0.6, `{training_pod="blind-a"}`: 0.3}},
	{"datawait-job", "SM activity, by GPU", 0, map[string]float64{`{gpu_uuid="GPU-0"}`: 0.75, `{gpu_uuid="GPU-1"}`: 0.75, `{gpu_uuid="GPU-3"}`: 0, `{gpu_uuid="GPU-4"}`: 0}},
	{"datawait-job", "What workers do while they build", 1, map[string]float64{"{}": 0.1}},
	{"datawait-job", "A batch takes", 0, map[string]float64{"{}": 2}},
	{"datawait-job", "Files and requests per batch", 0, map[string]float64{}}, // not counted
	{"datawait-job", "Step time, mean and quantiles", 0, map[string]float64{"{}": 0.5}},
	{"datawait-job", "Busy cores of its machines", 0, map[string]float64{`{instance="a"}`: 0.25, `{instance="b"}`: 0.25}},
	{"datawait-job", "Records lost", 0, map[string]float64{"{}": 0.1}},
	{"datawait-agent", "Sources that are down", 0, map[string]float64{"{}": 2}},
	{"datawait-agent", "Age of the newest counters, by GPU", 0, map[string]float64{`{gpu_uuid="GPU-0",instance="a"}`: 10, `{gpu_uuid="GPU-1",instance="b"}`: 10, `{gpu_uuid="GPU-3",instance="b"}`: 10,
		`{gpu_uuid="GPU-4",instance="b"}`: 10}},
	{"datawait-agent", "Series against the limit", 0, map[string]float64{`{instance="a"}`: 0.025, `{instance="b"}`: 0.025}},
}

// Every query is run against a fleet of which some is not measured, and what panels show of it is right.
func TestPanelsOfAFleet(t *testing.T) {
	var input, checks []map[string]any
	fleet := someFleet()
	for _, name := range slices.Sorted(maps.Keys(fleet)) {
		input = append(input, map[string]any{"series": name, "values": fleet[name]})
	}
	for _, s := range expected {
		samples := []map[string]any{}
		for labels, v := range s.want {
			samples = append(samples, map[string]any{"labels": labels, "value": v})
		}
		checks = append(checks, map[string]any{"expr": "round((" + s.expr(t) + "), 0.001)", "eval_time": "60m", "exp_samples": samples})
	}
	promtool(t, "test", "rules", write(t, "fleet.test.yml", map[string]any{"rule_files": []string{asRules(t)}, "evaluation_interval": "20m",
		"tests": []any{map[string]any{"interval": "15s", "input_series": input, "promql_expr_test": checks}}}))
}

func (s shows) expr(t *testing.T) string {
	t.Helper()
	for _, b := range boards() {
		for _, r := range b.rows {
			for _, p := range r.panels {
				if b.uid == s.board && p.title == s.panel {
					return chosen.Replace(p.queries[s.query].expr)
				}
			}
		}
	}
	t.Fatalf("%s has no panel %q", s.board, s.panel)
	return ""
}

// The fleet has every metric that a panel asks for, but for those of which it is said that they are not counted.
func TestFleetHasWhatPanelsAskFor(t *testing.T) {
	has := map[string]bool{}
	for name := range someFleet() {
		has[name[:strings.Index(name, "{")]] = true
	}
	for _, name := range []string{"files_opened_total", "requests_total", "io_seen_batches_total", "read_bytes_total", "read_seen_batches_total", "step_duration_seconds"} {
		has["datawait_"+name] = true
	}
	for _, q := range queries(t) {
		for _, name := range metric.FindAllString(q, -1) {
			if !has[name] {
				t.Errorf("nothing of the fleet is called %s", name)
			}
		}
	}
}
