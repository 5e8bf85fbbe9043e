package cost

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scrapeEvery is Prometheus' own habit in most installations.
const scrapeEvery = 15 * time.Second

// page is what a scrape gave: values by series, as it is written.
type page map[string]float64

// get scrapes once as Prometheus does (scrape/scrape.go, acceptHeader, 2.42) and reads everything.
func get(at string) (*http.Response, []byte, error) {
	r, err := http.NewRequest(http.MethodGet, "http://"+at+"/metrics", nil)
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(answer.Body); err != nil {
		return nil, nil, err
	}
	return answer, body.Bytes(), nil
}

func scrape(b *testing.B, at string) page {
	b.Helper()
	answer, body, err := get(at)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("scraping: %v %v", answer, err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	p := page{}
	for lines := bufio.NewScanner(plain); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), "} ")
		if v, err := strconv.ParseFloat(value, 64); err == nil && !strings.HasPrefix(series, "#") {
			p[series] = v
		}
	}
	return p
}

// scrapeAgain scrapes at Prometheus' pace until stop, and says how long each took.
func scrapeAgain(at string, stop <-chan struct{}) (took []time.Duration) {
	tick := time.NewTicker(scrapeEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return took
		case <-tick.C:
		}
		began := time.Now()
		if _, _, err := get(at); err == nil {
			took = append(took, time.Since(began))
		}
	}
}

func seconds(took []time.Duration) (s []float64) {
	for _, d := range took {
		s = append(s, d.Seconds())
	}
	if s == nil {
		s = []float64{0}
	}
	return s
}

// percentile99 is how long the 99th of a hundred scrapes takes, in seconds.
func percentile99(b *testing.B, at string) float64 {
	var took []float64
	for range 100 {
		began := time.Now()
		if _, _, err := get(at); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began).Seconds())
	}
	return slices.Sorted(slices.Values(took))[98]
}
