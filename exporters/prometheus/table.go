package prometheus

import (
	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/datawait/datawait/analysis/live"
)

// kind is the type of a metric.
type kind uint8

const (
	counter kind = iota
	gauge
	histogram
)

func (k kind) String() string { return [...]string{"counter", "gauge", "histogram"}[k] }

// of is the type in a family.
func (k kind) of() dto.MetricType {
	return [...]dto.MetricType{dto.MetricType_COUNTER, dto.MetricType_GAUGE, dto.MetricType_HISTOGRAM}[k]
}

// metric is what is said of one name.
type metric struct {
	name string
	kind kind
	help string   // what it is, with its unit
	from string   // its formula, in the words of package live
	gone string   // when the series is absent; "" = never while its subject is there
	more []string // labels beside those of the subject
	most int      // series a subject may have of it; 0 = 1

	labels []string // all
	desc   *client.Desc
	typed  dto.MetricType // kind, as a family has it
	place  int            // among names
}

// emit is called once for each series of a name, with the values of metric.more.
type emit func(value float64, more ...string)

// family is a name and how a subject's numbers of it are found.
type family[T any] struct {
	metric
	part      part
	of        func(*T, emit)
	durations func(*T) live.Durations // of a histogram, in place of of
}

// part of a set of series comes into being by itself: it is 0 first when its first number comes.
type part uint8

const (
	always    part = iota
	files          // of a rank: opened files and requests were counted
	readBytes      // of a rank: bytes were counted
	throttle       // of a job: its control group tells
	parts
)

// table is the series that one kind of subject has.
type table[T any] struct {
	title    string // for METRICS.md
	subject  string // for METRICS.md: what the labels name
	labels   []string
	families []family[T]

	values  func(*T) values
	merge   func(into, from *T) // two rows whose labels are the same
	carried func(*T) bool
	since   func(*T) uint64 // ns, when its counters were 0; nil = its rows are always the same
	order   func(*T) order
	plain   bool // its counters are the agent's own and begin with it: neither 0 first nor held

	size int // series a subject may have
}

// order is that in which subjects are given room where there is not enough for all.
type order uint8

const (
	health order = iota // of the agent: always
	devices
	holders
	heldNow
	ranksNow
	jobsNow
	ended
)

// made completes a table.
func (t table[T]) made() *table[T] {
	for i := range t.families {
		m := &t.families[i].metric
		m.most = max(m.most, 1)
		m.labels = append(append([]string{}, t.labels...), m.more...)
		m.desc = client.NewDesc(m.name, m.help, m.labels, nil)
		m.typed = m.kind.of()
		t.size += m.most
	}
	return &t
}

func (t *table[T]) section() section {
	s := section{title: t.title, subject: t.subject}
	for i := range t.families {
		s.metrics = append(s.metrics, &t.families[i].metric)
	}
	return s
}

// section is a table without its subject's type.
type section struct {
	title, subject string
	metrics        []*metric
}

// sections lists everything that is shown.
func sections() []section {
	return []section{tenancyTable.section(), deviceTable.section(), holderTable.section(), rankTable.section(), jobTable.section(),
		machineTable.section(), sourceTable.section(), spoolTable.section(), processTable.section(), agentTable.section()}
}

// one makes the numbers of a name that has one series.
func one[T any](value func(*T) float64) func(*T, emit) {
	return func(t *T, e emit) { e(value(t)) }
}

// maybe does where the number may not be known.
func maybe[T any](value func(*T) (float64, bool)) func(*T, emit) {
	return func(t *T, e emit) {
		if v, known := value(t); known {
			e(v)
		}
	}
}

// seconds are what Prometheus counts times in (prometheus.io/docs/practices/naming, "Base units").
func seconds[N int64 | uint64](ns N) float64 { return float64(ns) / 1e9 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
