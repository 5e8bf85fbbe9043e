package analysis

import (
	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/load"
)

// anatomy splits the mean step: the steady steps of every rank have a balance of their own, so the parts add up to the step exactly.
// What no counter saw is unexplained, not left out.
func (r *run) anatomy() {
	var sum ledger.Totals
	steps := 0
	for _, k := range r.ranked {
		sum = sum.Add(k.steady.books)
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

// alone books the steady steps of a rank whose GPU has no page of its own for it: it has none, or shares it.
func (k *rank) alone(idleAfter int64) {
	if len(k.steady.runs) == 0 || k.device != nil && len(k.device.ranks) == 1 {
		return
	}
	page := ledger.NewPage(k.Begin, idleAfter)
	page.View(k.steady.entries())
	var windows []load.Window
	if k.device != nil {
		windows = k.device.Windows
	}
	fold(page, []*rank{k}, windows, k.End, k.device == nil || !k.device.shared())
	k.close(page)
}

// entries are the stretches of steady steps as the ledger takes them.
func (st *steadyState) entries() (spans []ledger.Span) {
	for _, s := range st.runs {
		spans = append(spans, ledger.Span{Begin: s.begin, End: s.end})
	}
	return spans
}
