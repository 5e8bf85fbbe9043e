package view

import (
	"cmp"
	"maps"
	"slices"

	"github.com/datawait/datawait/analysis"
)

// Accounts says where the allocated GPU time of the job went.
type Accounts struct {
	Total string // "0.089 GPU-hours"
	Rows  []Account
	Bound string // the upper bound of waiting where its exposure is unknown; "" elsewhere
}

// Account is one account over all GPUs.
type Account struct {
	ID      string
	Name    string
	Hours   string // GPU-hours, in the unit of the total
	Share   Quantity
	Meaning string
}

func accounts(r *analysis.Result) Accounts {
	sums := map[string]int64{}
	var total int64
	for _, g := range r.GPUs {
		total += g.AllocatedNS
		for name, ns := range g.AccountsNS {
			sums[name] += ns
		}
	}
	if total <= 0 {
		return Accounts{}
	}
	hours := func(ns int64) float64 { return float64(ns) / 3.6e12 }
	st := scaleStyle(hourScales, hours(total))
	a := Accounts{Total: st.text(hours(total)), Bound: bound(r, st)}
	for _, id := range slices.SortedFunc(maps.Keys(sums), func(x, y string) int { return cmp.Or(cmp.Compare(accountRank(x), accountRank(y)), cmp.Compare(x, y)) }) {
		if sums[id] != 0 {
			a.Rows = append(a.Rows, Account{id, accountName(id), st.number(hours(sums[id]), st.digits(0)), known(float64(sums[id])/float64(total), percentStyle), accountMeanings[id]})
		}
	}
	return a
}

func accountRank(id string) int {
	if i := slices.Index(accountOrder, id); i >= 0 {
		return i
	}
	return len(accountOrder)
}

// bound says how much of the unattributed time can be waiting at most.
func bound(r *analysis.Result, st style) string {
	var ns int64
	for _, g := range r.GPUs {
		ns += g.WaitUpperBoundNS.Or(0)
	}
	if ns == 0 {
		return ""
	}
	return "At most " + st.text(float64(ns)/3.6e12) + " of the unattributed time is waiting for data (grade C: the training thread waited, whether the GPU did is unknown)."
}
