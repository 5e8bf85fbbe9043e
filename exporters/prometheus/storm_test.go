package prometheus

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datawait/datawait/analysis/live"
)

// A storm of scrapes does not pile up: what is too much is told at once to come again, and it is counted.
func TestStorm(t *testing.T) {
	const storm = 30
	x := full(t, Options{})
	open := make(chan struct{})
	snapshot := x.collector.o.Snapshot
	x.collector.o.Snapshot = func() *live.Snapshot {
		<-open
		return snapshot()
	}
	h := x.collector.Handler()
	codes := make(chan int, storm)
	for range storm {
		go func() { codes <- get(t, h).Code }()
	}
	for range storm - pagesAtOnce {
		if code := next(t, codes); code != http.StatusServiceUnavailable {
			t.Fatalf("one too many got %d", code)
		}
	}
	close(open)
	for range pagesAtOnce {
		if code := next(t, codes); code != http.StatusOK {
			t.Errorf("one of those that fit got %d", code)
		}
	}
	if body := get(t, h).Body.String(); !strings.Contains(body, fmt.Sprintf(`promhttp_metric_handler_requests_total{code="503"} %d`, storm-pagesAtOnce)) {
		t.Errorf("what was turned away is not counted:\n%s", body[max(0, len(body)-500):])
	}
}

func next(t *testing.T, codes chan int) int {
	t.Helper()
	select {
	case code := <-codes:
		return code
	case <-time.After(20 * time.Second):
		t.Fatal("a scrape that is one too many waits")
		return 0
	}
}

// Scrapes that overlap each show a whole page.
func TestScrapesOverlap(t *testing.T) {
	h := full(t, Options{}).collector.Handler()
	first := get(t, h).Body.Len()
	var all sync.WaitGroup
	for range pagesAtOnce {
		all.Go(func() {
			for range 20 {
				if w := get(t, h); w.Code != http.StatusOK || w.Body.Len() < first*9/10 {
					t.Errorf("%d: %d bytes, %d alone", w.Code, w.Body.Len(), first)
				}
			}
		})
	}
	all.Wait()
}
