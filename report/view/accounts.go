package view

import (
	"cmp"
	"maps"
	"slices"

	"github.com/datawait/datawait/analysis"
)

// Accounts says where the allocated GPU time of the job went.
type Accounts struct {
	Total string // "5.37 GPU-minutes"
	Unit  string // of the rows: GPU-hours, or less for a short run
	Rows  []Account
	Bound string // the upper bound of waiting where its exposure is unknown; "" elsewhere
}

// Account is one account over all GPUs.
type Account struct {
	ID      string
	Name    string
	Hours   string // in the unit of the total
	Share   Quantity
	Percent float64 // the share for the length of a bar, 0–100
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
	st := scaleStyle(hourScales, gpuHours(total))
	a := Accounts{Total: st.text(gpuHours(total)), Unit: pick(hourScales, gpuHours(total)).suffix, Bound: bound(r, st)}
	a.rows(r, sums, total, st)
	return a
}

func gpuHours(ns int64) float64 { return float64(ns) / 3.6e12 }

// rows adds the accounts that hold anything. Hours and shares are rounded so that they add up to what is shown as the whole.
func (a *Accounts) rows(r *analysis.Result, sums map[string]int64, total int64, st style) {
	var ids []string
	var hours, shares []float64
	order := func(x, y string) int { return cmp.Or(cmp.Compare(accountRank(x), accountRank(y)), cmp.Compare(x, y)) }
	for _, id := range slices.SortedFunc(maps.Keys(sums), order) {
		if sums[id] != 0 {
			ids, hours, shares = append(ids, id), append(hours, gpuHours(sums[id])), append(shares, float64(sums[id])/float64(total))
		}
	}
	hourTexts, shareTexts := apportion(hours, gpuHours(total), st), apportion(shares, 1, columnPercentStyle)
	for i, id := range ids {
		q := known(shares[i], columnPercentStyle)
		if q.Known {
			q.Number, q.Text = shareTexts[i], shareTexts[i]+columnPercentStyle.unit
		}
		a.Rows = append(a.Rows, Account{cleanName(id), accountName(id), hourTexts[i], q, max(0, min(100, 100*q.Value)), meaning(r, id, sums)})
	}
}

// meaning explains an account, and what else is in it where that has no account of its own.
func meaning(r *analysis.Result, id string, sums map[string]int64) string {
	text := accountMeanings[id]
	if _, apart := sums["collective"]; id == "compute" && !apart && r.Job.Ranks > 1 {
		text += " Exchanging gradients with other ranks is among them: no source tells it apart."
	}
	if _, apart := sums["copy"]; id == "host" && !apart {
		text += " Copies are in it: no source tells them apart."
	}
	return text
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
