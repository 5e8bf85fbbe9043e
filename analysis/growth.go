package analysis

import (
	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/probe/recording"
	"github.com/datawait/datawait/probe/unit"
)

const (
	growFew   = 6        // readings of a worker's memory
	growLeast = 24 << 20 // bytes
	growPart  = 0.1      // of what it had
	growHalf  = 0.25     // of its growth that lies in either half of the batches
)

// growth finds workers whose resident memory grows with the batches they build. Pages that a forked worker shares with its parent until it
// touches them are resident from the start, so the slow copying of a large Python list is not seen here.
func (k *rank) growth() (g loader.Growth) {
	if k.slowest == nil {
		return g
	}
	var sum, batches float64
	for _, b := range k.grown {
		sum, batches = sum+b.bytes, batches+b.batches
		g.Workers++
	}
	if g.Workers == 0 || batches == 0 || k.steady.time == 0 {
		return loader.Growth{}
	}
	g.PerBatch = sum / batches
	g.Rate = g.PerBatch * float64(k.steady.fetches) / (float64(k.steady.time) / 1e9)
	g.Left = k.memoryLeft()
	return g
}

// memoryLeft is what the machine has to give at the end.
func (k *rank) memoryLeft() Ratio {
	m := &k.Node.Usage.Machine
	for i := m.Len() - 1; i >= 0; i-- {
		if _, _, _, v := m.At(i, load.MachineAvailable); v == v && v > 0 {
			return unit.Some(float64(v))
		}
	}
	return unit.None[float64](noAgent)
}

// swell is what one worker grew by, over so many batches.
type swell struct{ bytes, batches float64 }

// grow notes the workers that grew.
func (k *rank) grow(l *load.Loader) {
	for _, b := range l.Builds {
		p := k.Node.Usage.Processes[uint32(b.PID)]
		if p == nil || p.Role != recording.RoleWorker || b.Own || len(b.Batches) < 2*growFew {
			continue
		}
		if s, ok := swelling(held(p), b.Batches); ok {
			k.grown = append(k.grown, s)
		}
	}
}

// memory is a worker's resident memory at a time.
type memory struct {
	at    int64
	bytes float64
}

// held are the readings of a process's resident memory.
func held(p *load.Process) (all []memory) {
	for i := range p.Usage.Len() {
		if _, end, _, rss := p.Usage.At(i, load.ProcessRSS); rss == rss {
			all = append(all, memory{end, float64(rss)})
		}
	}
	return all
}

// swelling compares a worker's memory at the first reading after its first batches, in the middle and at the end of what it built.
func swelling(readings []memory, batches []load.Batch) (s swell, yes bool) {
	warm, half, last := batches[len(batches)/20+1].End, batches[len(batches)/2].End, batches[len(batches)-1].End
	var first, middle, end memory
	n := 0
	for _, r := range readings {
		switch {
		case r.at < warm || r.at > last+2e9 || r.bytes <= 0: // a process that ends gives its memory back before it is gone
			continue
		case n == 0:
			first = r
		case r.at <= half:
			middle = r
		default:
			end = r
		}
		n++
	}
	grown, early := end.bytes-first.bytes, middle.bytes-first.bytes
	if n < growFew || middle.at == 0 || end.at == 0 || grown < growLeast || grown < growPart*first.bytes || early < growHalf*grown || grown-early < growHalf*grown {
		return s, false
	}
	built := 0
	for _, b := range batches {
		if b.End > first.at && b.End <= end.at {
			built++
		}
	}
	return swell{grown, float64(max(1, built))}, true
}
