package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAnAgendaIsTheLeastOfAll: of times by worker, as looking through all of them has it, ties too.
func TestAnAgendaIsTheLeastOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	var a agenda
	for range 300 {
		workers := 1 + r.IntN(9)
		a.reset(workers)
		var all []due
		full := false
		for range 200 {
			if len(all) < workers && (len(all) == 0 || r.IntN(5) < 3) {
				d := due{float64(r.IntN(12)), r.IntN(workers)}
				all = append(all, d)
				a.add(d)
			} else {
				first := 0
				for i, d := range all {
					if d.at < all[first].at || d.at == all[first].at && d.worker < all[first].worker {
						first = i
					}
				}
				if at := a.next; at != all[first].at || a.take() != all[first].worker {
					t.Fatalf("of %v the first is not %v", all, at)
				}
				all = slices.Delete(all, first, first+1)
			}
			if full = full || len(all) == workers; a.len() != len(all) {
				t.Fatalf("%d are due, not %d", len(all), a.len())
			}
		}
		if len(all) == 0 != math.IsInf(a.next, 1) {
			t.Errorf("with %d due the next is at %v", len(all), a.next)
		}
		if !full {
			t.Errorf("never were all %d workers on the agenda", workers)
		}
	}
}
