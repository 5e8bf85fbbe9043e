package analysis

import (
	"github.com/datawait/datawait/analysis/ledger"
)

// anatomy splits the mean step: the steady steps of every rank are booked on a page of their own, so the parts add up to the
// step exactly. What no counter saw is unexplained, not left out.
func (r *run) anatomy() {
	var sum ledger.Totals
	steps := 0
	for _, k := range r.ranked {
		if len(k.steady.runs) == 0 {
			continue
		}
		page := ledger.NewPage(k.Begin, int64(r.options.IdleAfter))
		page.Test(k.Begin)
		for _, s := range k.steady.runs {
			page.Keep(s.begin, s.end)
		}
		var t ledger.Totals
		if k.device != nil {
			t = fold(page, []*rank{k}, k.device.Windows, k.End)
		} else {
			t = fold(page, []*rank{k}, nil, k.End)
		}
		sum = sum.Add(t)
		steps += k.steady.steps
	}
	if steps == 0 || sum.Allocated == 0 {
		return
	}
	part := func(name string, ns int64) {
		if ns != 0 {
			r.out.Step.Anatomy = append(r.out.Step.Anatomy, Part{Name: name,
				Seconds: float64(ns) / 1e9 / float64(steps), Share: float64(ns) / float64(sum.Allocated)})
		}
	}
	part(ledger.ExposedWait.String(), sum.NS[ledger.ExposedWait])
	part("data_wait", sum.WaitUpperBound)
	for _, a := range ledger.Accounts() {
		if a != ledger.ExposedWait && a != ledger.Unattributed {
			part(a.String(), sum.NS[a])
		}
	}
	part("unexplained", sum.NS[ledger.Unattributed]-sum.WaitUpperBound)
}
