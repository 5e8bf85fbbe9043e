package analysis

import (
	"math"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// TestBytesRead: what was read per batch is known where the way it came was seen. A loader that receives 1 MB over a socket moves
// the counters of read() by a hundred bytes, which are no measurement of a batch.
func TestBytesRead(t *testing.T) {
	for _, c := range []struct {
		name             string
		rchar, requests  float64 // per batch; NaN = unknown
		received         float64
		want             float64 // NaN = unknown
		source, whyFirst string
	}{
		{"files", 3e6, 0, math.NaN(), 3e6, AtLeast, ""},
		{"files, requests unknown", 3e6, math.NaN(), math.NaN(), 3e6, AtLeast, ""},
		{"sockets", 100, 2, 1e6, 1e6 + 100, "socket diagnostics and read counters (grade B)", ""},
		{"sockets unseen", 90, math.NaN(), math.NaN(), math.NaN(), "", "next to nothing came through read()"},
		{"sockets unseen, beside files", 50e3, 2, math.NaN(), math.NaN(), "", "batches come over the network"},
		{"nothing", math.NaN(), math.NaN(), math.NaN(), math.NaN(), "", "no source saw"},
	} {
		b := newCrew(0)
		for field, v := range map[int]float64{load.CostRChar: c.rchar, load.CostRequests: c.requests} {
			if v == v {
				b.costs[field].add(10*v, 10)
			}
		}
		if c.received == c.received {
			b.received.add(10*c.received, 10)
		}
		got, source := b.bytes()
		v, known := got.Get()
		if known != (c.want == c.want) || known && !near(v, c.want, 1e-6) || source != c.source || !strings.HasPrefix(got.Why(), c.whyFirst) {
			t.Errorf("%s: %v (%s) by %q, want %v by %q", c.name, v, got.Why(), source, c.want, c.source)
		}
	}
}

// TestReceivedPerBatch: bytes are set against the batches built while they were counted, not against those before and after.
func TestReceivedPerBatch(t *testing.T) {
	var p load.Process
	x := newTape(t)
	agent, _ := x.Declare(recording.Declaration{Producer: recording.ProducerAgent, Host: "node0"})
	main := x.rank(7, 0)
	x.write(main, recording.Worker{T: at(0), PID: 60}.Encode())
	x.fetch(main, 0, recording.FetchFirst, 0, 0, 1)
	w, _ := x.Declare(recording.Declaration{Producer: recording.ProducerWorker, Host: "node0", PID: 60, Parent: 7})
	for i := range uint32(50) { // ten a second for five seconds, one megabyte each
		begin := 100 * float64(i)
		x.write(w, recording.Batch{Ref: recording.Unknown16, Begin: at(begin), End: at(begin + 100), Sent: at(begin + 100), Batch: i, Worker: 0}.Encode())
		x.fetch(main, 0, 0, i+1, begin, begin+100)
	}
	for _, window := range []float64{1050, 2050} { // the windows end inside batches; the first and last seconds are in none
		x.write(agent, recording.Process{Ref: uint16(recording.RoleWorker), Begin: at(window), End: at(window + 1000), PID: 60, Received: 10e6}.Encode())
	}
	r := x.run()
	if got := r.Loaders[0].Bytes.Or(0); !near(got, 1e6, 1) {
		t.Errorf("%.0f bytes per batch, want 1000000 (%s)", got, r.Loaders[0].BytesSource)
	}
	if bytes, built := received(&p, nil, func(int64) bool { return true }); bytes != 0 || built != 0 {
		t.Errorf("nothing was seen, yet %v of %v", bytes, built)
	}
}
