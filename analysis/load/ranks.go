package load

import (
	"cmp"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// lifetime tells two processes of one host apart, even where a pid was used twice.
type lifetime struct {
	boot  string
	pid   int
	start uint64
}

func processOf(d recording.Declaration) lifetime { return lifetime{d.BootID, d.PID, d.StartTicks} }

// identity names what one process did as one program. A script that replaces itself (execve) stays the same process, and
// begins to count anew.
type identity struct {
	lifetime
	opened uint64
}

// ranks parts the main processes that train from those that merely exist.
func (j *Job) ranks(mains []*Rank) {
	var ranks, others []*Rank
	for _, r := range mains {
		if r.fetches == 0 && r.steps == 0 && !r.summed() || forkOf(r, mains) {
			others = append(others, r)
			continue
		}
		ranks = append(ranks, r)
	}
	number(ranks)
	slices.SortStableFunc(ranks, func(a, b *Rank) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.restart(), b.restart()), cmp.Compare(a.Begin, b.Begin))
	})
	replacements(ranks)
	j.Ranks, j.Others = ranks, others
}

// number gives ranks that declare none the first numbers that are free; a process keeps its number as another program.
func number(ranks []*Rank) {
	used, known := map[int]bool{}, map[lifetime]int{}
	for _, r := range ranks {
		if d := r.Declaration.Rank; d != nil {
			r.Number = *d
			used[*d] = true
		}
	}
	next := 0
	for _, r := range ranks {
		if r.Declaration.Rank != nil {
			continue
		}
		process := processOf(r.Declaration)
		if n, ok := known[process]; ok && r.Declaration.Opened != 0 {
			r.Number = n
			continue
		}
		for used[next] {
			next++
		}
		r.Number = next
		used[next], known[process] = true, next
	}
}

// replacements finds what processes were before they became another program.
func replacements(ranks []*Rank) {
	for i, r := range ranks {
		for _, later := range ranks[i+1:] {
			if r.Declaration.Opened != 0 && later.Declaration.Opened > r.Declaration.Opened && processOf(later.Declaration) == processOf(r.Declaration) {
				r.Replaced = true
			}
		}
	}
}

func (r *Rank) restart() int {
	if r.Declaration.Restart != nil {
		return *r.Declaration.Restart
	}
	return 0
}

// forkOf reports whether r is a child of another rank that inherited its number: it trains nothing of its own.
func forkOf(r *Rank, all []*Rank) bool {
	if r.steps > 0 {
		return false
	}
	for _, p := range all {
		if p != r && p.Node == r.Node && p.Declaration.PID == r.Declaration.PPID && p.steps > 0 && p.Begin <= r.Begin && r.Begin <= p.End {
			return true
		}
	}
	return false
}
