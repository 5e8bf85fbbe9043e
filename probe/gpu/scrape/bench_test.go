package scrape

import (
	"strings"
	"testing"
)

// A page of two GPUs, as it is read once in three seconds.
func BenchmarkReadPage(b *testing.B) {
	text := fixture(b, "dcgm-exporter-h100x2-k8s.prom")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if p, err := read(strings.NewReader(text)); err != nil || len(p.gpus) != 2 {
			b.Fatal(err)
		}
	}
}
