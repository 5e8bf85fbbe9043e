package prometheus

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/live"
)

// What Prometheus sends with a scrape (prometheus/scrape/scrape.go, acceptHeader, 2.42).
const accept = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"

// discard is a client that reads everything at once.
type discard struct {
	header http.Header
	n      int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { d.n += len(b); return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkScrape is what one scrape costs the agent, on a full node and on two smaller ones. Every scrape sees a newer snapshot.
func BenchmarkScrape(b *testing.B) {
	for _, size := range []struct{ gpus, ranks int }{{1, 1}, {8, 8}, {16, 64}} {
		for _, encoding := range []string{"identity", "gzip"} {
			b.Run(fmt.Sprintf("gpus=%d/ranks=%d/%s", size.gpus, size.ranks, encoding), func(b *testing.B) {
				x := newTarget(b, Options{ScrapeInterval: time.Second})
				snapshots := make([]live.Snapshot, 16)
				for i := range snapshots {
					snapshots[i] = node(size.gpus, size.ranks, uint64(1000+i))
				}
				h := x.collector.Handler()
				r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				r.Header.Set("Accept", accept)
				r.Header.Set("Accept-Encoding", encoding)
				var took []time.Duration
				began := cpu(b)
				var w discard
				for b.Loop() {
					x.snapshot = &snapshots[len(took)%len(snapshots)]
					w = discard{header: http.Header{}}
					from := time.Now()
					h.ServeHTTP(&w, r)
					took = append(took, time.Since(from))
				}
				b.ReportMetric((cpu(b)-began).Seconds()*1e3/float64(len(took)), "cpu-ms")
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
				b.ReportMetric(float64(took[len(took)/2])/1e6, "median-ms")
				b.ReportMetric(float64(len(x.scrape())), "series")
				b.ReportMetric(float64(w.n), "bytes")
				b.ReportAllocs()
			})
		}
	}
}

// cpu is what this process took of it so far, user and system, its collection of garbage with it.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
