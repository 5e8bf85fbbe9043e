package prometheus

import (
	"fmt"
	"math"
	"slices"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/datawait/datawait/analysis/live"
)

// page is what one scrape shows. Its memory is that of an earlier one where that has been sent.
type page struct {
	at       uint64 // ns, of the snapshot
	interval uint64 // ns, for which what is new is 0
	native   bool
	samples  []sample
	series   int // of samples: a histogram is several

	metrics  []dto.Metric       // of samples
	families []dto.MetricFamily // of names, some without a metric
}

// gather makes the families that client_golang writes, in the order of their names.
func (p *page) gather() (shown []*dto.MetricFamily, err error) {
	p.metrics = slices.Grow(p.metrics[:0], len(p.samples))[:len(p.samples)]
	for i := range p.samples {
		s, m := &p.samples[i], &p.metrics[i]
		if err := s.Write(m); err != nil {
			return nil, fmt.Errorf("showing %s: %w", s.metric.name, err)
		}
		f := &p.families[s.metric.place]
		f.Metric = append(f.Metric, m)
	}
	for i, m := range names {
		if f := &p.families[i]; len(f.Metric) > 0 {
			f.Name, f.Help, f.Type = &m.name, &m.help, &m.typed
			shown = append(shown, f)
		}
	}
	return shown, nil
}

// empty forgets everything but the memory.
func (p *page) empty() {
	clear(p.samples)
	clear(p.metrics)
	p.at, p.series, p.samples = 0, 0, p.samples[:0]
	for i := range p.families {
		p.families[i].Metric = p.families[i].Metric[:0]
	}
}

// sample is a client.Metric whose labels are shared from scrape to scrape: client_golang's own makes and sorts them each time,
// which is most of what a scrape would cost.
type sample struct {
	metric    *metric
	pairs     []*dto.LabelPair
	value     float64
	durations *live.Durations
	native    bool

	// What Write hands out, so that it is not made one by one.
	counter dto.Counter
	gauge   dto.Gauge
}

func (s *sample) Desc() *client.Desc { return s.metric.desc }

func (s *sample) Write(out *dto.Metric) error {
	out.Label = s.pairs
	switch s.metric.kind {
	case counter:
		s.counter.Value = &s.value
		out.Counter = &s.counter
	case gauge:
		s.gauge.Value = &s.value
		out.Gauge = &s.gauge
	case histogram:
		out.Histogram = classic(*s.durations)
		if s.native {
			return addNative(out.Histogram, *s.durations)
		}
	}
	return nil
}

// put adds one series of a subject.
func (p *page) put(m *metric, c *slot, value float64) {
	p.samples = append(p.samples, sample{metric: m, pairs: c.pairs, value: value})
	p.series++
}

// show puts the series of one subject on the page.
func (t *table[T]) show(p *page, s *set, row *T, rows int, since uint64) {
	w := writer{page: p, set: s, names: len(t.labels), plain: t.plain, fewer: rows < s.rows || since != s.since}
	w.carried = t.carried != nil && t.carried(row)
	s.rows, s.since = rows, since
	put := w.put
	for i := range t.families {
		f := &t.families[i]
		w.number, w.nth, w.metric, w.part = i, 0, &f.metric, f.part
		if f.durations != nil {
			w.histogram(f.durations(row))
			continue
		}
		f.of(row, put)
	}
}

// writer is at one family of a subject.
type writer struct {
	page    *page
	set     *set
	names   int // labels of the subject
	plain   bool
	fewer   bool // a row may be gone that was counted before
	carried bool

	metric *metric
	part   part
	number int // of the family
	nth    int // series of it
}

func (w *writer) slot(more []string) *slot {
	c := w.set.slot(w.number, w.nth, w.metric.labels, w.names, more)
	w.nth++
	return c
}

func (w *writer) put(value float64, more ...string) {
	c := w.slot(more)
	switch {
	case w.metric.kind == counter && !w.plain:
		if !w.set.real(w.part, w.page.at, w.page.interval, w.carried) {
			value = 0
			break
		}
		value = c.counted.next(value, w.fewer)
	case math.IsNaN(value) || math.IsInf(value, 0):
		return
	}
	w.page.put(w.metric, c, value)
}

func (w *writer) histogram(d live.Durations) {
	c := w.slot(nil)
	if w.set.real(w.part, w.page.at, w.page.interval, w.carried) {
		d = w.set.steps.next(d, w.fewer)
	} else {
		d = live.Durations{}
	}
	w.page.samples = append(w.page.samples, sample{metric: w.metric, pairs: c.pairs, durations: &d, native: w.page.native})
	w.page.series += histogramSeries
}

// classic is a histogram with cumulative buckets that end at powers of 2.
func classic(d live.Durations) *dto.Histogram {
	h := &dto.Histogram{SampleCount: &d.Count, SampleSum: &d.Sum}
	for e := leastBound; e <= mostBound; e++ {
		n, upper := d.AtMost(e), math.Ldexp(1, e)
		h.Bucket = append(h.Bucket, &dto.Bucket{CumulativeCount: &n, UpperBound: &upper})
	}
	return h
}

// unlabelled is what client_golang makes native histograms of.
var unlabelled = client.NewDesc("datawait_native", "of package live", nil, nil)

// addNative adds exponential buckets. The classic ones stay: a server that asks for text, or that knows none, takes those.
func addNative(h *dto.Histogram, d live.Durations) error {
	buckets := make(map[int]int64, len(d.Buckets))
	for i, n := range d.Buckets {
		buckets[i] = int64(n)
	}
	native, err := client.NewConstNativeHistogram(unlabelled, d.Count, d.Sum, buckets, nil, d.Zero, live.Schema, zeroThreshold, time.Time{})
	if err != nil {
		return err
	}
	var m dto.Metric
	if err := native.Write(&m); err != nil {
		return err
	}
	n := m.Histogram
	h.Schema, h.ZeroThreshold, h.ZeroCount, h.PositiveSpan, h.PositiveDelta = n.Schema, n.ZeroThreshold, n.ZeroCount, n.PositiveSpan, n.PositiveDelta
	return nil
}

// zeroThreshold is 2^-30 s, the bound of a bucket: live.Durations counts as 0 what is less than a nanosecond.
const zeroThreshold = 1.0 / (1 << 30)
