package sample

import (
	"maps"
	"strings"
	"time"

	"github.com/datawait/datawait/analysis/fleet"
)

// Cluster is a fleet and what it shows.
type Cluster struct {
	Name  string
	Fleet *fleet.Fleet
}

// Clusters returns every situation of a fleet.
func Clusters() []Cluster {
	return []Cluster{
		{"fleet-week", Week()},
		{"fleet-exporter", OnlyExporters()},
		{"fleet-withheld", Withheld()},
		{"fleet-hostile", HostileFleet()},
		{"fleet-empty", fleet.Build(fleet.Answers{}, fleet.Answers{}, weekOptions(0))},
	}
}

func weekOptions(price float64) fleet.Options {
	return fleet.Options{Version: "test", Server: "http://prometheus:9090", Until: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC), Window: 7 * 24 * time.Hour, HourCost: price}
}

// told is a row: hours, and labels in pairs.
func told(hours float64, labels ...string) fleet.Row {
	r := fleet.Row{Labels: map[string]string{}, Value: hours * 3600}
	for i := 0; i+1 < len(labels); i += 2 {
		r.Labels[labels[i]] = labels[i+1]
	}
	return r
}

// trainer is a job that an agent watches. Shares are of its allocated time.
type trainer struct {
	namespace, name string
	gpus            []string
	hours           float64 // on each GPU
	shares          map[string]float64
	bound, active   float64
	waits           []float64 // by rank; none: no hook
}

// tell adds the answers about a job.
func (j trainer) tell(a fleet.Answers) {
	job := []string{"training_job", j.name, "training_namespace", j.namespace}
	with := func(more ...string) []string { return append(append([]string{}, job...), more...) }
	all := j.hours * float64(len(j.gpus))
	add := func(name string, r fleet.Row) { a[name] = append(a[name], r) }
	for i, gpu := range j.gpus {
		add(fleet.QueryGPUs, told(0, "gpu_uuid", gpu, "grade", "A", "emulated", "false"))
		add(fleet.QueryWatched, told(168, "gpu_uuid", gpu))
		add(fleet.QueryAssigned, told(0, "gpu_uuid", gpu))
		add(fleet.QueryAllocated, told(j.hours, with("gpu_uuid", gpu)...))
		if i < len(j.waits) {
			add(fleet.QueryHooked, told(0, with("gpu_uuid", gpu)...))
		}
	}
	rest := 1.0
	for account, share := range j.shares {
		add(fleet.QueryAccounts, told(all*share, with("account", account)...))
		rest -= share
	}
	add(fleet.QueryAccounts, told(all*rest, with("account", "compute")...))
	add(fleet.QueryBound, told(all*j.bound, job...))
	add(fleet.QueryCovered, told(all*0.97, job...))
	add(fleet.QueryActive, told(all*j.active, job...))
	add(fleet.QueryActiveOf, told(all*0.97, job...))
	for rank, wait := range j.waits {
		r := string(rune('0' + rank))
		add(fleet.QueryTraining, told(0.9*j.hours, with("rank", r)...))
		add(fleet.QueryWait, told(0.9*j.hours*wait, with("rank", r)...))
	}
}

// exports adds what an exporter tells of one GPU; pod "" is nobody.
func exports(a fleet.Answers, gpu, namespace, pod, kind string, hours, ratio, idle float64) {
	labels := []string{"UUID", gpu}
	if pod != "" {
		labels = append(labels, "exported_namespace", namespace, "exported_pod", pod)
		a[fleet.QueryHeld] = append(a[fleet.QueryHeld], told(hours, "UUID", gpu))
	}
	a[fleet.QueryPresent] = append(a[fleet.QueryPresent], told(168, "UUID", gpu))
	a[fleet.QueryExporter] = append(a[fleet.QueryExporter], told(hours, labels...))
	a["activity_"+kind] = append(a["activity_"+kind], told(hours*ratio, labels...))
	a["read_"+kind] = append(a["read_"+kind], told(hours, labels...))
	a["idle_"+kind] = append(a["idle_"+kind], told(idle, labels...))
}

// Week is a cluster of agents and exporters, after a week in which one job began to wait.
func Week() *fleet.Fleet {
	now, before := fleet.Answers{fleet.QuerySeen: {told(168)}}, fleet.Answers{fleet.QuerySeen: {told(166)}}
	images := trainer{"vision", "images", []string{"GPU-1", "GPU-2"}, 160, map[string]float64{"exposed_wait": 0.31, "epoch_start": 0.04, "idle_held": 0.02, "unattributed": 0.06, "checkpoint": 0.01}, 0.04, 0.49, []float64{0.36, 0.37}}
	images.tell(now)
	images.shares = maps.Clone(images.shares)
	images.hours, images.shares["exposed_wait"], images.active, images.waits = 150, 0.05, 0.75, []float64{0.07, 0.06}
	images.tell(before)
	for _, a := range []fleet.Answers{now, before} {
		trainer{"nlp", "pretrain", []string{"GPU-3", "GPU-4", "GPU-5", "GPU-6"}, 140, map[string]float64{"exposed_wait": 0.01, "epoch_start": 0.002, "idle_held": 0.01, "host": 0.02}, 0, 0.86, []float64{0.02, 0.02, 0.31, 0.02}}.tell(a)
		exports(a, "GPU-8", "nlp", "finetune-x7k2p", "sm", 90, 0.35, 41)
	}
	trainer{"", "notebook.py", []string{"GPU-7"}, 120, map[string]float64{"not_held": 0.3, "idle_held": 0.55}, 0, 0.06, nil}.tell(now)
	trainer{"", "old.py", []string{"GPU-7"}, 110, map[string]float64{"not_held": 0.1}, 0, 0.8, nil}.tell(before)
	exports(now, "GPU-9", "serving", "llm-0", "util", 168, 0.62, 20)
	exports(before, "GPU-9", "serving", "llm-0", "util", 160, 0.6, 5)
	exports(now, "GPU-10", "", "", "sm", 168, 0.04, 150)
	o := weekOptions(2.5)
	o.Warnings = []string{"fetched partial data from store gateway"}
	return fleet.Build(now, before, o)
}

// OnlyExporters is a cluster without any agent, and without a price; the server knows nothing of the week before.
func OnlyExporters() *fleet.Fleet {
	a := fleet.Answers{fleet.QuerySeen: {told(120)}}
	exports(a, "GPU-1", "nlp", "finetune-x7k2p", "sm", 90, 0.35, 41)
	exports(a, "GPU-2", "nlp", "finetune-z2k4d", "sm", 30, 0.9, 0)
	return fleet.Build(a, fleet.Answers{}, weekOptions(0))
}

// Withheld is a cluster of which one counter cannot be true; its GPU is an emulated one.
func Withheld() *fleet.Fleet {
	a := fleet.Answers{fleet.QuerySeen: {told(168)}}
	trainer{"", "broken.py", []string{"GPU-1"}, 400, map[string]float64{"exposed_wait": 0.1}, 0, 0.5, []float64{0.1}}.tell(a)
	a[fleet.QueryGPUs][0].Labels["emulated"] = "true"
	trainer{"", "fine.py", []string{"GPU-2"}, 100, map[string]float64{"exposed_wait": 0.004}, 0, 0.9, []float64{0.01}}.tell(a)
	return fleet.Build(a, a, weekOptions(2.5))
}

// HostileFleet has names and words that try to break out of every form.
func HostileFleet() *fleet.Fleet {
	evil := "<script>alert(1)</script>|`[x](http://evil)\x1b[2J\u202eabc\n# heading @everyone"
	a := fleet.Answers{fleet.QuerySeen: {told(168)}}
	trainer{evil, evil, []string{evil}, 100, map[string]float64{"exposed_wait": 0.2, evil: 0.1}, 0, 0.5, []float64{0.2}}.tell(a)
	trainer{"", strings.Repeat("Ж", 5000), []string{"GPU-2"}, 50, map[string]float64{"idle_held": 0.2}, 0, 0.5, []float64{0.2}}.tell(a)
	trainer{"", fleet.SharedJob, []string{"GPU-3"}, 50, map[string]float64{"idle_held": 0.2}, 0, 0.5, nil}.tell(a)
	for range 9 {
		a[fleet.QueryHolders] = append(a[fleet.QueryHolders], told(0, "training_job", evil+string(rune('a'+len(a[fleet.QueryHolders])))))
	}
	o := weekOptions(2.5)
	o.Server, o.Warnings = "http://"+evil, []string{evil, strings.Repeat("w", 5000)}
	return fleet.Build(a, a, o)
}
