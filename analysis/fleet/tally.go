package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/datawait/datawait/analysis/stat"
)

// tally is what the answers about one window amount to. Times are seconds.
type tally struct {
	window  float64
	books   map[owner]*book
	watched map[string]float64 // by GPU: for how long it was there

	emulatedGPUs map[string]bool
	impossible   map[string]bool // GPUs with more allocated time than has passed
	free         float64         // watched, and allocated to nobody
	unlabelled   float64         // of GPUs of which nobody says whose they are
	nobodys      *book           // what exporters say those did
	slices       int             // of MIG, among the GPUs
	both         int             // GPUs that an agent and an exporter watch
}

// read makes a tally of the answers about a window.
func read(a Answers, window time.Duration) *tally {
	t := &tally{window: window.Seconds(), books: map[owner]*book{}, watched: map[string]float64{}, emulatedGPUs: map[string]bool{}, impossible: map[string]bool{}}
	t.nobodys = newBook(owner{source: Exporter})
	t.agents(a)
	t.exporters(a)
	for gpu := range t.watched {
		if isSlice(gpu) {
			t.slices++
		}
	}
	return t
}

// of returns the book of an owner.
func (t *tally) of(o owner) *book {
	b := t.books[o]
	if b == nil {
		b = newBook(o)
		t.books[o] = b
	}
	return b
}

// agents reads what agents of datawait counted.
func (t *tally) agents(a Answers) {
	of := func(r Row) *book { return t.of(owner{Agent, r.Labels["training_namespace"], r.Labels["training_job"]}) }
	for _, r := range a[QueryWatched] {
		t.watched[r.Labels["gpu_uuid"]] += r.Value
	}
	perGPU := map[string]float64{}
	for _, r := range a[QueryAllocated] {
		gpu := r.Labels["gpu_uuid"]
		perGPU[gpu] += r.Value
		if r.Value > 0 {
			b := of(r)
			b.allocated += r.Value
			b.booked += r.Value
			b.gpus[gpu] += r.Value
		}
	}
	for _, r := range a[QueryAccounts] {
		of(r).accounts[r.Labels["account"]] += r.Value
	}
	for name, into := range map[string]func(*book) *float64{
		QueryBound: func(b *book) *float64 { return &b.bound }, QueryCovered: func(b *book) *float64 { return &b.covered },
		QueryActive: func(b *book) *float64 { return &b.active }, QueryActiveOf: func(b *book) *float64 { return &b.read },
	} {
		for _, r := range a[name] {
			*into(of(r)) += r.Value
		}
	}
	for _, r := range a[QueryTraining] {
		if r.Value > 0 {
			of(r).training[r.Labels["rank"]] += r.Value
		}
	}
	for _, r := range a[QueryWait] {
		of(r).wait[r.Labels["rank"]] += r.Value
	}
	for _, r := range a[QueryHooked] {
		of(r).hooked[r.Labels["gpu_uuid"]] = true
	}
	t.shared(a[QueryHolders])
	t.graded(a[QueryGPUs])
	t.unheld(perGPU, a[QueryAssigned])
	t.check(perGPU)
}

// shared names those who have the shared GPUs.
func (t *tally) shared(rows []Row) {
	var names []string
	for _, r := range rows {
		if name := r.Labels["training_job"]; name != SharedJob && name != "" {
			names = append(names, fullName(r.Labels["training_namespace"], name))
		}
	}
	slices.Sort(names)
	for o, b := range t.books {
		if o.job == SharedJob && o.source == Agent {
			b.holders = slices.Compact(names)
		}
	}
}

func fullName(namespace, job string) string {
	if namespace == "" {
		return job
	}
	return namespace + "/" + job
}

// graded gives each book the worst grade of its GPUs, and says which are emulated.
func (t *tally) graded(rows []Row) {
	grades := map[string]stat.Grade{}
	for _, r := range rows {
		gpu, g := r.Labels["gpu_uuid"], stat.Grade(r.Labels["grade"])
		if g != stat.GradeA && g != stat.GradeB {
			g = stat.GradeC
		}
		grades[gpu] = stat.Worse(grades[gpu], g)
		if r.Labels["emulated"] == "true" {
			t.emulatedGPUs[gpu] = true
		}
	}
	for _, b := range t.books {
		for gpu := range b.gpus {
			b.isEmulated = b.isEmulated || t.emulatedGPUs[gpu]
			g, told := grades[gpu]
			if !told {
				g = stat.GradeC
			}
			b.grade = stat.Worse(b.grade, g)
		}
	}
}

// unheld says how long GPUs were nobody's. A GPU that never had a holder, and of which its agent does not know whether it has one, is
// not called free.
func (t *tally) unheld(allocated map[string]float64, assigned []Row) {
	known := map[string]bool{}
	for _, r := range assigned {
		known[r.Labels["gpu_uuid"]] = true
	}
	for gpu, s := range t.watched {
		rest := max(0, s-allocated[gpu])
		if known[gpu] || allocated[gpu] > 0 {
			t.free += rest
		} else {
			t.unlabelled += rest
		}
	}
}

// How far counters may be from one another, or from the time that passed: each is read at its own moment, and where a tenancy has
// several series the largest of each counter is taken (see [Queries]).
const (
	spread = 0.05
	slack  = 600.0 // s, of each GPU
)

// check withholds books whose counters cannot be true: a GPU that was allocated for longer than has passed, accounts that do not
// add up. A counter that was set back by a little reads as one that began anew, and would be counted twice.
func (t *tally) check(perGPU map[string]float64) {
	for gpu, s := range perGPU {
		if s > t.window*(1+spread)+slack {
			t.impossible[gpu] = true
		}
	}
	for _, b := range t.books {
		sum := 0.0
		for _, s := range b.accounts {
			sum += s
		}
		far := spread*max(sum, b.allocated) + slack*float64(len(b.gpus))
		if len(b.accounts) == 0 || sum > b.allocated+far || sum < b.allocated-far {
			b.withheld = fmt.Sprintf("its accounts (%.4g h) do not add up to its allocated time (%.4g h)", sum/3600, b.allocated/3600)
		}
		for gpu := range b.gpus {
			if t.impossible[gpu] {
				b.withheld = "a counter of one of its GPUs grew by more than the time that passed"
			}
		}
	}
}

// isSlice tells a slice of a GPU: by the UUID of an agent, or the name that exporters gives it here.
func isSlice(gpu string) bool {
	return strings.HasPrefix(gpu, "MIG-") || strings.Contains(gpu, sliceOf)
}

func (t *tally) emulated() bool { return len(t.emulatedGPUs) > 0 }

func (t *tally) watchedSeconds() (sum float64) {
	for _, s := range t.watched {
		sum += s
	}
	return sum
}

// sorted lists the books that have anything, always in the same order.
func (t *tally) sorted() (out []*book) {
	for _, o := range slices.SortedFunc(maps.Keys(t.books), func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.job, b.job))
	}) {
		if b := t.books[o]; b.allocated > 0 {
			out = append(out, b)
		}
	}
	return out
}

// all is one book of everything that is not withheld.
func (t *tally) all() *book {
	all := newBook(owner{})
	parts := map[string]float64{}
	for _, b := range t.sorted() {
		if b.withheld != "" {
			continue
		}
		all.take(b)
		all.unasked += b.nobodyAsked()
		for _, p := range b.parts() {
			parts[p.ID] += p.Hours
		}
	}
	for _, id := range []string{PartCompute, PartActive, PartWaiting, PartBound, PartIdle, PartOther, PartUnknown} {
		if parts[id] > 0 {
			all.cut = append(all.cut, Share{id, parts[id]})
		}
	}
	return all
}

// take adds another book.
func (b *book) take(o *book) {
	b.isEmulated = b.isEmulated || o.isEmulated
	maps.Copy(b.gpus, o.gpus)
	maps.Copy(b.hooked, o.hooked)
	b.grade = stat.Worse(b.grade, o.grade)
	for _, x := range []struct{ into, from *float64 }{
		{&b.allocated, &o.allocated}, {&b.booked, &o.booked}, {&b.bound, &o.bound}, {&b.covered, &o.covered}, {&b.active, &o.active}, {&b.read, &o.read},
		{&b.idle, &o.idle}, {&b.idleRead, &o.idleRead}, {&b.resident, &o.resident}, {&b.looked, &o.looked},
	} {
		*x.into += *x.from
	}
	for _, m := range []struct{ into, from map[string]float64 }{{b.accounts, o.accounts}, {b.training, o.training}, {b.wait, o.wait}} {
		for k, s := range m.from {
			m.into[k] += s
		}
	}
}

func sortedNames(m map[string]float64) []string { return slices.Sorted(maps.Keys(m)) }
