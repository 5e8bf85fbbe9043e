package load

import (
	"sync"

	"github.com/datawait/datawait/probe/recording"
)

// An agent writes of all its GPUs in one stream, tick by tick. To read that once per GPU would be to read all of it eight times; to keep
// every window of a long recording is more than memory should hold. So the windows of a node are read in one go, when the first of its GPUs
// is loaded, as long as few enough are there; else those of each GPU by themselves.

// mostGathered is how many windows of a job may be there at a time because they were read in one go: 128 MiB. Eight GPUs at 1 Hz have 0.7 million a day.
const mostGathered = 1 << 21

// windowRoom counts the windows of all nodes that were read in one go and not unloaded.
type windowRoom struct {
	lock sync.Mutex
	used int
}

// take reports whether there is room for n more, and takes it.
func (r *windowRoom) take(n int) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.used+n > mostGathered {
		return false
	}
	r.used += n
	return true
}

func (r *windowRoom) giveBack(n int) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.used -= n
}

// feed is a stream that tells of GPUs, by the numbers it gives them.
type feed struct {
	source
	gpus map[uint16]*GPU
}

// gather reads the windows of all GPUs of the node, unless that was done or there are too many.
func (n *Node) gather(room *Room) error {
	n.gathering.Lock()
	defer n.gathering.Unlock()
	if n.gathered {
		return n.failed
	}
	all := 0
	for _, g := range n.GPUs {
		all += g.expected()
	}
	if !n.room.take(all) {
		return nil
	}
	n.gathered = true
	if n.failed = gather(n.GPUs, n.feeds, room); n.failed != nil {
		return n.failed
	}
	for _, g := range n.GPUs {
		g.gathered = true
	}
	return nil
}

// expected is how many windows the survey saw: the driver's, where nothing counts.
func (g *GPU) expected() int {
	if g.windows == 0 {
		return g.states
	}
	return g.windows
}

// gather reads the windows of some GPUs of one node.
func gather(gpus []*GPU, feeds []feed, room *Room) error {
	for _, g := range gpus {
		g.Uncounted = g.windows == 0
		g.Windows = room.windows(g.expected())
	}
	for _, f := range feeds {
		if _, err := f.read(f.takers(gpus).take); err != nil {
			return err
		}
	}
	return nil
}

// takers take what one stream tells, by its numbers; nil for those of other GPUs.
type takers []*taker

func (f *feed) takers(gpus []*GPU) (all takers) {
	for _, g := range gpus {
		t := &taker{GPU: g} // one, also where the stream has several numbers for the device
		for ref, of := range f.gpus {
			if of != g {
				continue
			}
			if n := int(ref) + 1; n > len(all) {
				all = append(all, make(takers, n-len(all))...)
			}
			all[ref] = t
		}
	}
	return all
}

func (all takers) take(records []recording.Record) {
	for i := range records {
		rec := &records[i]
		kind := rec.Kind()
		if kind != recording.KindGPU && kind != recording.KindGPUPipes && kind != recording.KindGPUState || int(rec.Ref()) >= len(all) {
			continue
		}
		switch t := all[rec.Ref()]; {
		case t == nil:
		case kind == recording.KindGPU:
			t.window(rec.GPU())
		case kind == recording.KindGPUPipes:
			t.pipes(rec.GPUPipes())
		case t.Uncounted:
			t.util(rec.GPUState())
		}
	}
}
