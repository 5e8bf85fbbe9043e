package host

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// bounds is everything that bounds the CPU time of the processes that build batches. Each hides from a different interface:
// a quota from sched_getaffinity and from os.cpu_count, an affinity from everyone but the process that has it, so all are
// read for every such process.
type bounds struct {
	online   cpuSet
	cpuset   cpuSet   // of the job's control group; nil = not known
	affinity []cpuSet // of each process that builds batches, as far as they could be read
	quota    float64  // cores; +Inf = none, NaN = not known
}

// allowed returns the CPUs that at least one of the processes may use. It is a union: sixteen workers that share one core
// have one core between them, sixteen with a core each have sixteen. Which worker may use which core is left aside, so
// fifteen workers on one core and one on fifteen others read as sixteen cores; the host note lists the sets.
//
// A mask may name CPUs that do not exist (a virtual machine that could grow), hence the intersection with those online.
func (b bounds) allowed() cpuSet {
	all := b.online
	if b.cpuset != nil {
		all = b.cpuset.intersect(b.online)
		if b.online == nil {
			all = b.cpuset
		}
	}
	var union cpuSet
	for _, a := range b.affinity {
		union = union.union(a)
	}
	switch {
	case union == nil:
		return all
	case all == nil:
		return union
	}
	return union.intersect(all)
}

// usable returns the cores the loader can have at most: the least of the quota and the CPUs allowed. NaN if one of both is
// not known: a quota nobody could see would make any other number too large.
func (b bounds) usable() float32 {
	n := b.allowed().count()
	if n == 0 || math.IsNaN(b.quota) {
		return nan
	}
	return float32(min(float64(n), b.quota))
}

// cpusetCores returns the size of the cpuset, NaN if it is not known.
func (b bounds) cpusetCores() float32 {
	if b.cpuset == nil {
		return nan
	}
	return float32(b.cpuset.count())
}

// quotaCores returns the quota as it is recorded: NaN for none and for not known, which the host note tells apart.
func (b bounds) quotaCores() float32 {
	if math.IsInf(b.quota, 1) {
		return nan
	}
	return float32(b.quota)
}

// explain says how usable came about, for the host note.
func (b bounds) explain() string {
	quota := "no quota"
	switch {
	case math.IsNaN(b.quota):
		quota = "quota not known"
	case !math.IsInf(b.quota, 1):
		quota = fmt.Sprintf("quota %.4g", b.quota)
	}
	cpuset := "cpuset not known"
	if b.cpuset != nil {
		cpuset = fmt.Sprintf("cpuset %d", b.cpuset.count())
	}
	return fmt.Sprintf("least of %s, %s, %d online, affinity %s", quota, cpuset, b.online.count(), b.explainAffinity())
}

// affinitiesShown bounds how many different sets a text lists.
const affinitiesShown = 4

// explainAffinity lists the different sets with how many processes have each, the most frequent first.
func (b bounds) explainAffinity() string {
	if len(b.affinity) == 0 {
		return "not known"
	}
	count := map[string]int{}
	for _, a := range b.affinity {
		count[a.String()]++
	}
	var sets []string
	for set := range count {
		sets = append(sets, set)
	}
	slices.SortFunc(sets, func(x, y string) int {
		if count[x] != count[y] {
			return count[y] - count[x]
		}
		return strings.Compare(x, y)
	})
	shown := sets[:min(len(sets), affinitiesShown)]
	var parts []string
	for _, set := range shown {
		parts = append(parts, fmt.Sprintf("CPU %s of %d", set, count[set]))
	}
	text := strings.Join(parts, ", ")
	if more := len(sets) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d other sets", more)
	}
	if len(b.affinity) == 1 {
		return text + " process"
	}
	return text + " processes"
}
