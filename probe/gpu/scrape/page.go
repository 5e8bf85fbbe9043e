package scrape

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/datawait/datawait/probe/recording"
)

// Bounds of a page. One of 8 GPUs has 50 KB and 200 series; pods that share GPUs and slices multiply that.
const (
	maxPage    = 16 << 20
	maxLine    = 16 << 10
	maxSeries  = 20000
	maxGPUs    = 512
	maxHolders = 64 // of one GPU
)

// entity is a GPU, or an instance of one, as a page names it.
type entity struct {
	uuid string // of the whole GPU
	gi   int    // instance of a slice, -1 = the whole GPU
}

// reading is what a page says of one of them.
type reading struct {
	values
	device  [fields]bool // the value is the GPU's own, and not one that was copied to a pod
	clash   [fields]bool // copies differ: nobody's value is the GPU's
	name    string
	index   int // as DCGM numbers GPUs, -1 = not told
	holders []recording.Holder
	shared  bool // a plugin's replica of it was given out
}

// page is one answer of an exporter.
type page struct {
	gpus     map[entity]*reading
	order    []entity // always the same
	rejected uint64   // values that could not be true
	empty    bool     // not a single line
}

// read takes what is known from a page. The lines of other metrics are not looked at, so that no page costs more than its bytes.
func read(r io.Reader) (*page, error) {
	p := &page{gpus: map[entity]*reading{}, empty: true}
	text, err := p.sift(r)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the page is not in Prometheus' text format: %s", recording.Name(err.Error()))
	}
	for name, family := range families {
		m, ok := metrics[strings.ToLower(name)]
		if !ok {
			continue
		}
		for _, series := range family.GetMetric() {
			p.add(m, series)
		}
	}
	p.order = slices.SortedFunc(maps.Keys(p.gpus), func(a, b entity) int { return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.gi, b.gi)) })
	return p, nil
}

// sift keeps the lines of metrics that are known. A line is a series: line ends within a label's value are escaped (Prometheus,
// exposition formats, "Text format details").
func (p *page) sift(r io.Reader) ([]byte, error) {
	limited := &io.LimitedReader{R: r, N: maxPage + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	var kept bytes.Buffer
	series := 0
	for lines.Scan() {
		line := bytes.TrimLeft(lines.Bytes(), " \t")
		p.empty = p.empty && len(line) == 0
		if !known(line) {
			continue
		}
		if series++; series > maxSeries {
			return nil, fmt.Errorf("the page has more than %d series of GPUs", maxSeries)
		}
		kept.Write(line)
		kept.WriteByte('\n')
	}
	switch err := lines.Err(); {
	case limited.N == 0:
		return nil, fmt.Errorf("the page is longer than %d bytes", maxPage)
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("the page has a line of more than %d bytes", maxLine)
	case err != nil:
		return nil, fmt.Errorf("reading the page: %w", err)
	}
	return kept.Bytes(), nil
}

func known(line []byte) bool {
	end := bytes.IndexAny(line, "{ \t")
	if end <= 0 || end > longest {
		return false
	}
	_, ok := metrics[string(bytes.ToLower(line[:end]))]
	return ok
}

// labels of a series, by their names in lower case: Hostname and hostname, UUID and uuid are the same (dcgm-exporter,
// --use-old-namespace).
func labels(series *dto.Metric) func(names ...string) string {
	return func(names ...string) string {
		for _, name := range names {
			for _, l := range series.GetLabel() {
				if strings.EqualFold(l.GetName(), name) && l.GetValue() != "" {
					return l.GetValue()
				}
			}
		}
		return ""
	}
}

// add takes one series.
func (p *page) add(m meaning, series *dto.Metric) {
	label := labels(series)
	at, ok := named(label)
	if !ok {
		p.rejected++
		return
	}
	g := p.gpus[at]
	if g == nil {
		if len(p.gpus) >= maxGPUs {
			return
		}
		g = &reading{values: unknown(), name: recording.Name(label("modelName")), index: -1}
		if n, err := strconv.ParseUint(label("gpu"), 10, 10); err == nil {
			g.index = int(n)
		}
		p.gpus[at] = g
	}
	raw := valueOf(series)
	v := m.of(raw)
	if v != v && raw == raw {
		p.rejected++
	}
	h, held := holder(label)
	g.hold(h, held, label("vgpu") != "")
	p.rejected += g.set(m.field, v, !held)
}

// set keeps a value. The same GPU is repeated for every pod and job that has it: that is one value, not several. What differs between
// pods is a process's and none of the GPU (dcgm-exporter, internal/pkg/transformation/process_metrics.go), unless the GPU's own stands beside.
func (g *reading) set(f field, v float64, own bool) (rejected uint64) {
	have := g.values[f]
	switch {
	case v != v || !own && g.device[f]:
	case own && !g.device[f]:
		g.values[f], g.device[f], g.clash[f] = v, true, false
	case g.clash[f]:
	case have != have:
		g.values[f] = v
	case have != v:
		g.values[f], g.clash[f] = math.NaN(), true
		return 1
	}
	return 0
}

func valueOf(series *dto.Metric) float64 {
	switch {
	case series.GetUntyped() != nil:
		return series.GetUntyped().GetValue()
	case series.GetGauge() != nil:
		return series.GetGauge().GetValue()
	case series.GetCounter() != nil:
		return series.GetCounter().GetValue()
	}
	return math.NaN()
}

// named finds out of which GPU a series is.
func named(label func(...string) string) (entity, bool) {
	at := entity{uuid: label("UUID"), gi: -1}
	if !strings.HasPrefix(at.uuid, "GPU-") || len(at.uuid) > 96 || recording.Name(at.uuid) != at.uuid {
		return at, false
	}
	if gi := label("GPU_I_ID"); gi != "" {
		n, err := strconv.ParseUint(gi, 10, 10)
		if err != nil {
			return at, false
		}
		at.gi = int(n)
	}
	return at, true
}

// holder is whom a series names as the GPU's holder: a pod's container, or a job (docs of dcgm-exporter; old names with
// --use-old-namespace).
func holder(label func(...string) string) (recording.Holder, bool) {
	h := recording.Holder{Job: label("hpc_job"), Namespace: label("namespace", "pod_namespace"), Pod: label("pod", "pod_name"),
		PodUID: label("pod_uid"), Container: label("container", "container_name")}
	if h.Pod == "" {
		h = recording.Holder{Job: h.Job}
	}
	for _, s := range []*string{&h.Job, &h.Namespace, &h.Pod, &h.PodUID, &h.Container} {
		*s = recording.Name(*s)
	}
	return h, h.Pod != "" || h.Job != ""
}

func (g *reading) hold(h recording.Holder, held, replica bool) {
	g.shared = g.shared || replica
	if !held || len(g.holders) >= maxHolders || slices.ContainsFunc(g.holders, func(o recording.Holder) bool { return same(o, h) }) {
		return
	}
	g.holders = append(g.holders, h)
	slices.SortFunc(g.holders, func(a, b recording.Holder) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Job, b.Job))
	})
}

func same(a, b recording.Holder) bool {
	return a.Job == b.Job && a.Namespace == b.Namespace && a.Pod == b.Pod && a.PodUID == b.PodUID && a.Container == b.Container
}
