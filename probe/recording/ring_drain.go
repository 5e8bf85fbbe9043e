// Taking records out of a ring that may still be written.
//
// The order of reads makes the result sound: records first, then the head again. A record is believed only if, at that
// second look, its slot could not have been under the pen for the record one lap ahead.

package recording

import (
	"fmt"
	"sync"
)

// Drain visits the records written since the last call, oldest first. The slice is valid only during the call. An error of
// visit ends the drain; the records it was shown count as taken.
func (r *Ring) Drain(visit func([]Record) error) error { return r.drain(true, visit) }

// Finish is Drain after the process has ended: no slot is under the pen any more, so none is given up for safety.
func (r *Ring) Finish(visit func([]Record) error) error { return r.drain(false, visit) }

// chunkRecords is how much of a ring is read at once: 64 KiB.
const chunkRecords = 1024

var chunks = sync.Pool{New: func() any { return new([chunkRecords]Record) }}

func (r *Ring) drain(live bool, visit func([]Record) error) error {
	h, err := r.Header()
	if err != nil {
		return err
	}
	if h.Head+1 < r.next {
		return fmt.Errorf("draining ring %s: head went back from %d to %d: %w", r.path, r.next-1, h.Head, ErrNotRing)
	}
	chunk := chunks.Get().(*[chunkRecords]Record)
	defer chunks.Put(chunk)
	r.skipTo(r.oldestSafe(h.Head, live))
	for r.next <= h.Head {
		n := min(h.Head-r.next+1, chunkRecords, r.capacity-r.slot(r.next))
		more, err := r.drainChunk(chunk[:n], h.Head, live, visit)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// slot returns where record number n stands.
func (r *Ring) slot(n uint64) uint64 { return (n - 1) & (r.capacity - 1) }

// oldestSafe returns the number of the oldest record that cannot have been touched when the head stood at head. While the
// process lives, it may be writing number head+1 into the slot of number head+1-capacity.
func (r *Ring) oldestSafe(head uint64, live bool) uint64 {
	if live {
		head++
	}
	if head < r.capacity {
		return 1
	}
	return head - r.capacity + 1
}

// skipTo gives up the records before number n.
func (r *Ring) skipTo(n uint64) {
	if n > r.next {
		r.lost += n - r.next
		r.next = n
	}
}

// drainChunk reads len(chunk) records from r.next on, looks at the head again, and visits those that stood still.
func (r *Ring) drainChunk(chunk []Record, head uint64, live bool, visit func([]Record) error) (more bool, err error) {
	first := r.next
	at := RingHeaderBytes + int64(r.slot(first))*Size
	if err := readFull(r.f, bytesOf(chunk), at); err != nil {
		return false, fmt.Errorf("draining ring %s: %w", r.path, err)
	}
	now, err := r.Header()
	if err != nil {
		return false, err
	}
	r.skipTo(min(r.oldestSafe(now.Head, live), first+uint64(len(chunk))))
	return r.visitChunk(chunk, first, head, live, visit)
}

// visitChunk visits the runs of whole records in the chunk, whose first record has number first.
func (r *Ring) visitChunk(chunk []Record, first, head uint64, live bool, visit func([]Record) error) (more bool, err error) {
	for r.next < first+uint64(len(chunk)) {
		run := wholeRun(chunk[r.next-first:], uint32(r.next))
		if run > 0 {
			at := r.next - first
			r.next += uint64(run)
			if err := visit(chunk[at : at+uint64(run)]); err != nil {
				return false, err
			}
			continue
		}
		if live && r.postpone(head) {
			return false, nil
		}
		r.torn++
		r.next++
	}
	return true, nil
}

// wholeRun counts the records at the start of the chunk that are whole and carry the numbers from seq on. Number 0, once
// in 2^32 records, looks like a slot never written and is counted as torn.
func wholeRun(chunk []Record, seq uint32) int {
	for i := range chunk {
		if !chunk[i].Whole() || chunk[i].Seq() != seq+uint32(i) {
			return i
		}
	}
	return len(chunk)
}

// postpone reports whether the torn record at r.next should be looked at once more: near the head its bytes may still be
// on their way from another core.
func (r *Ring) postpone(head uint64) bool {
	const near = 64
	if head-r.next >= near || r.deferred == r.next {
		return false
	}
	r.deferred = r.next
	return true
}
