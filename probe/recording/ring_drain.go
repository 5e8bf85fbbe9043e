// Taking records out of a ring that may still be written.
//
// The order of reads makes the result sound: records first, then the head again. A record is believed only if, at that
// second look, its slot could not have been under the pen for the record one lap ahead.

package recording

import (
	"fmt"
	"sync"
)

// Drain visits the records written between the last call and the reading of h, oldest first. The slice is valid only during
// the call. An error of visit ends the drain; the records it was shown count as taken.
func (r *Ring) Drain(h RingHeader, visit func([]Record) error) error { return r.drain(h, true, visit) }

// Finish is Drain after the process has ended: no slot is under the pen any more, so none is given up for safety.
func (r *Ring) Finish(h RingHeader, visit func([]Record) error) error {
	return r.drain(h, false, visit)
}

// chunkRecords is how much of a ring is read at once: 64 KiB.
const chunkRecords = 1024

var chunks = sync.Pool{New: func() any { return new([chunkRecords]Record) }}

func (r *Ring) drain(h RingHeader, live bool, visit func([]Record) error) error {
	if h.Head+1 == r.next {
		return nil
	}
	if err := r.acquire(); err != nil {
		return fmt.Errorf("draining ring %s: %w", r.path, err)
	}
	head, err := r.confirm(h.Head, live)
	if err != nil {
		return err
	}
	chunk := chunks.Get().(*[chunkRecords]Record)
	defer chunks.Put(chunk)
	for r.next <= head {
		n := min(head-r.next+1, chunkRecords, r.capacity-r.slot(r.next))
		more, err := r.drainChunk(chunk[:n], head, live, visit)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// confirm gives up the records that were overwritten when the head stood at head. A head that says so, or that went back, is
// read once more: a store into the mapped page might have been seen half done.
func (r *Ring) confirm(head uint64, live bool) (uint64, error) {
	if head+1 >= r.next && r.oldestSafe(head, live) <= r.next {
		return head, nil
	}
	h, err := r.Header()
	if err != nil {
		return 0, err
	}
	if h.Head+1 < r.next {
		return 0, fmt.Errorf("draining ring %s: head went back from %d to %d: %w", r.path, r.next-1, h.Head, ErrNotRing)
	}
	r.skipTo(r.oldestSafe(h.Head, live))
	return h.Head, nil
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
	h, err := r.Header()
	if err != nil {
		return false, err
	}
	now, err := r.confirm(h.Head, live)
	if err != nil {
		return false, err
	}
	written := now + 1 - min(now+1, first) // fewer than the chunk only if head was seen half written
	chunk = chunk[:min(uint64(len(chunk)), written)]
	more, err = r.visitChunk(chunk, first, head, live, visit)
	return more && now >= head, err
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
