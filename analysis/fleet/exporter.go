package fleet

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/datawait/datawait/analysis/stat"
)

// entity is a GPU or a slice of one, as an exporter names it.
type entity struct{ gpu, slice string }

// sliceOf joins the UUID of a GPU and the number of its slice.
const sliceOf = "/slice "

func (e entity) String() string {
	if e.slice == "" {
		return e.gpu
	}
	return e.gpu + sliceOf + e.slice
}

// entityOf reads the labels of a series.
func entityOf(labels map[string]string) entity {
	return entity{cmp.Or(labels["UUID"], labels["uuid"]), labels["GPU_I_ID"]}
}

// pod is who has a GPU, by an exporter; all empty: nobody.
type pod struct{ namespace, name, job string }

// podOf reads the labels of a series.
func podOf(labels map[string]string) pod {
	p := pod{job: labels["hpc_job"]}
	switch {
	case labels["exported_pod"] != "":
		p.namespace, p.name = labels["exported_namespace"], labels["exported_pod"]
	case labels["pod_name"] != "":
		p.namespace, p.name = labels["pod_namespace"], labels["pod_name"]
	case !ownPodOf.MatchString(labels["pod"]) && !ownPodOf.MatchString(labels["container"]):
		p.namespace, p.name = labels["namespace"], labels["pod"]
	}
	if p.name == "" {
		p.namespace = ""
	}
	return p
}

// ownPodOf tells an exporter's own pod.
var ownPodOf = regexp.MustCompile("^(" + itself + ")$")

// holding is how long a pod had a GPU and what it did meanwhile, in seconds. active is of the counter that the GPU has.
type holding struct{ held, active, read, idle float64 }

// exported is what exporters say of one GPU, in seconds.
type exported struct {
	present, held, shared float64
	pods                  map[pod]*holding
	kind                  string
}

// exporters reads what exporters told of GPUs that no agent watches.
func (t *tally) exporters(a Answers) {
	gpus := gather(a, t.window)
	sliced, agentSlices := map[string]bool{}, false
	for e := range gpus {
		sliced[e.gpu] = sliced[e.gpu] || e.slice != ""
	}
	for gpu := range t.watched {
		agentSlices = agentSlices || isSlice(gpu)
	}
	agent := maps.Clone(t.watched)
	names := ordinals(gpus)
	for _, e := range sortedEntities(gpus) {
		x := gpus[e]
		_, watched := agent[e.gpu]
		switch {
		case watched || e.slice != "" && agentSlices: // an agent names a slice by a UUID of its own
			t.both++
		case e.slice == "" && sliced[e.gpu]: // its slices are counted
		default:
			t.watched[e.String()] += x.present
			t.take(e, x, names)
		}
	}
}

func sortedEntities(gpus map[entity]*exported) []entity {
	return slices.SortedFunc(maps.Keys(gpus), func(a, b entity) int { return strings.Compare(a.String(), b.String()) })
}

// gather sorts the answers by GPU and pod.
func gather(a Answers, window float64) map[entity]*exported {
	gpus := map[entity]*exported{}
	at := func(r Row) *exported {
		e := entityOf(r.Labels)
		if gpus[e] == nil {
			gpus[e] = &exported{pods: map[pod]*holding{}}
		}
		return gpus[e]
	}
	of := func(r Row) *holding {
		x, p := at(r), podOf(r.Labels)
		if x.pods[p] == nil {
			x.pods[p] = &holding{}
		}
		return x.pods[p]
	}
	for _, r := range a[QueryPresent] {
		at(r).present += r.Value
	}
	for _, r := range a[QueryHeld] {
		at(r).held += r.Value
	}
	for _, r := range a[QueryShared] {
		at(r).shared += r.Value
	}
	for _, r := range a[QueryExporter] {
		of(r).held += r.Value
	}
	for _, k := range kinds { // the best that a GPU has
		for _, r := range a[activitySeenOf+k.id] {
			if x := at(r); x.kind == "" || x.kind == k.id {
				x.kind = k.id
				of(r).read += r.Value
			}
		}
		for _, part := range []struct {
			name string
			into func(*holding) *float64
		}{{activityOf, func(h *holding) *float64 { return &h.active }}, {idleOf, func(h *holding) *float64 { return &h.idle }}} {
			for _, r := range a[part.name+k.id] {
				if at(r).kind == k.id {
					*part.into(of(r)) += r.Value
				}
			}
		}
	}
	for e, x := range gpus {
		if e.gpu == "" {
			delete(gpus, e) // a series without a UUID is of no GPU
		}
		// Two exporters whose labels differ tell of one GPU twice.
		x.present = min(x.present, window)
		x.held = min(x.held, x.present)
	}
	return gpus
}

// Up to this share of the time in which a GPU was held, two pods may seem to have it: the series of a pod that ended is seen for a
// while. Above, they share it.
const overlapping = 0.1

// take books what a GPU was held for.
func (t *tally) take(e entity, x *exported, names map[string]bool) {
	nobody := pod{}
	holders := slices.DeleteFunc(slices.SortedFunc(maps.Keys(x.pods), func(a, b pod) int {
		return strings.Compare(a.namespace+"/"+a.name+"/"+a.job, b.namespace+"/"+b.name+"/"+b.job)
	}),
		func(p pod) bool { return p == nobody })
	rest := max(0, x.present-x.held)
	if len(holders) == 0 {
		t.unlabelled += rest
		if h := x.pods[nobody]; h != nil {
			t.nobodys.add(e, x.kind, *h, 1)
		}
		return
	}
	t.free += rest
	shared, sum := x.shared > overlapping*x.held && len(holders) > 1, 0.0
	for _, p := range holders {
		sum += x.pods[p].held
	}
	scale := 1.0 // an exporter repeats a GPU's values for each of its pods: together they are one GPU
	if sum > x.held && sum > 0 {
		scale = x.held / sum
	}
	for _, p := range holders {
		b := t.of(owner{Exporter, p.namespace, p.owner(names)})
		if shared {
			b = t.of(owner{Exporter, "", SharedJob})
			b.holders = insert(b.holders, fullName(p.namespace, p.owner(names)))
		}
		b.add(e, x.kind, *x.pods[p], scale)
	}
}

func insert(names []string, name string) []string {
	if i, found := slices.BinarySearch(names, name); !found {
		return slices.Insert(names, i, name)
	}
	return names
}

// add books one holding.
func (b *book) add(e entity, kind string, h holding, scale float64) {
	b.gpus[e.String()] += scale * h.held
	b.grade = stat.GradeB // a value is up to 30 s old
	b.allocated += scale * h.held
	b.idle += scale * h.idle
	b.idleRead += scale * h.read
	if kind == kinds[0].id {
		b.active, b.read = b.active+scale*h.active, b.read+scale*h.read
	} else {
		b.resident, b.looked = b.resident+scale*h.active, b.looked+scale*h.read
	}
}

// safe are the letters of which Kubernetes makes the ends of names (k8s.io/apimachinery, pkg/util/rand, alphanums): no vowel, so
// that they are no words.
const safe = "[bcdfghjklmnpqrstvwxz2456789]"

var (
	generated = regexp.MustCompile("-" + safe + "{5}$")          // of a Job's or a ReplicaSet's pod
	template  = regexp.MustCompile("-" + safe + "{8,10}$")       // of a ReplicaSet of a Deployment
	ordinal   = regexp.MustCompile(`^(.+)-([0-9]{1,4})$`)        // of a StatefulSet's pod, an indexed Job's, a training operator's
	role      = regexp.MustCompile(`-(worker|master|launcher)$`) // of a training operator's
)

// owner is the name of what a pod belongs to, inferred from its own: an exporter does not tell. A number at its end is only cut off
// where a number 0 has the same beginning: resnet-50 is no fiftieth replica.
func (p pod) owner(first map[string]bool) string {
	if p.job != "" {
		return p.job
	}
	s := stem(p.name)
	if m := ordinal.FindStringSubmatch(s); m != nil && first[p.namespace+"/"+m[1]] {
		s = m[1]
	}
	return role.ReplaceAllString(s, "")
}

func stem(name string) string {
	if s := generated.ReplaceAllString(name, ""); s != name {
		return template.ReplaceAllString(s, "")
	}
	return name
}

// ordinals lists what there is a number 0 of.
func ordinals(gpus map[entity]*exported) map[string]bool {
	first := map[string]bool{}
	for _, x := range gpus {
		for p := range x.pods {
			if m := ordinal.FindStringSubmatch(stem(p.name)); m != nil && m[2] == "0" {
				first[p.namespace+"/"+m[1]] = true
			}
		}
	}
	return first
}
