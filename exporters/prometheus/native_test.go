package prometheus

import (
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/datawait/datawait/analysis/live"
)

const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// stepTimes scrapes by protobuf and returns a job's histogram.
func stepTimes(t *testing.T, h http.Handler) *dto.Histogram {
	t.Helper()
	w := get(t, h, "Accept", protobuf)
	d := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
	for {
		var f dto.MetricFamily
		if err := d.Decode(&f); err != nil {
			t.Fatal("no histogram: ", err)
		}
		if f.GetName() == "datawait_step_duration_seconds" {
			return f.Metric[0].Histogram
		}
	}
}

// The exponential buckets hold what was counted, and are there only if they are asked for; the classic ones always are.
func TestNativeHistogram(t *testing.T) {
	s := live.Snapshot{At: second, Jobs: []live.Job{{Carried: true}}}
	for _, v := range []float64{0, 1e-9, 0.001, 0.25, 0.25, 0.26, 300} {
		s.Jobs[0].StepTimes.Add(v)
	}
	for _, native := range []bool{false, true} {
		x := newTarget(t, Options{NativeHistograms: native})
		x.snapshot = &s
		h := stepTimes(t, x.collector.Handler())
		if h.GetSampleCount() != 7 || len(h.Bucket) != mostBound-leastBound+1 {
			t.Errorf("native %v: %d durations in %d classic buckets", native, h.GetSampleCount(), len(h.Bucket))
		}
		if !native {
			if h.Schema != nil || len(h.PositiveSpan) > 0 {
				t.Error("there are exponential buckets")
			}
			continue
		}
		if h.GetSchema() != live.Schema || h.GetZeroCount() != 1 {
			t.Errorf("schema %d, %d zeros", h.GetSchema(), h.GetZeroCount())
		}
		if got, want := exponential(h), s.Jobs[0].StepTimes.Buckets; !equalCounts(got, want) {
			t.Errorf("buckets %v, want %v", got, want)
		}
	}
}

// exponential undoes the spans and deltas (prometheus.io/docs/specs/native_histograms, "Buckets").
func exponential(h *dto.Histogram) map[int]uint64 {
	out := map[int]uint64{}
	index, at, n := 0, 0, int64(0)
	for _, span := range h.PositiveSpan {
		index += int(span.GetOffset())
		for range span.GetLength() {
			n += h.PositiveDelta[at]
			if n > 0 {
				out[index] = uint64(n)
			}
			at++
			index++
		}
	}
	return out
}

func equalCounts(a, b map[int]uint64) bool {
	for i, n := range a {
		if b[i] != n {
			return false
		}
	}
	return len(a) == len(b)
}
