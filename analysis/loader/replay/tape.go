package replay

import "math/rand/v2"

// Batch is one recorded batch beside the average one: how many times as long each of its parts took.
type Batch struct {
	Wait, CPU float32 // of its build
	Outside   float32 // of the training thread behind it, and of the device
}

// Tape is batches in the order they were delivered. It is played round and round. An empty one is batches that are all alike.
type Tape []Batch

// alike is what an empty tape holds.
var alike = Tape{{1, 1, 1}}

// Level scales each part of the batches to a mean of 1; a part that never took any time is the same for all.
func (t Tape) Level() Tape {
	var wait, cpu, outside float64
	for _, b := range t {
		wait, cpu, outside = wait+float64(b.Wait), cpu+float64(b.CPU), outside+float64(b.Outside)
	}
	n := float64(len(t))
	part := func(v *float32, sum float64) {
		if *v = float32(float64(*v) * n / sum); sum <= 0 {
			*v = 1
		}
	}
	for i := range t {
		part(&t[i].Wait, wait)
		part(&t[i].CPU, cpu)
		part(&t[i].Outside, outside)
	}
	return t
}

// Resample fills dst with blocks of neighbouring batches drawn at random. Blocks begin at multiples of round, the number of
// workers that built them: a worker that is slower than the others stays one of so many.
func (t Tape) Resample(dst Tape, round int, r *rand.Rand) Tape {
	if len(t) == 0 {
		return dst[:0]
	}
	block := max(10, 2*round)
	block -= block % max(1, round)
	for at := 0; at < len(dst); {
		from := r.IntN(len(t))
		from -= from % max(1, round)
		for i := 0; i < block && at < len(dst); i++ {
			dst[at] = t[(from+i)%len(t)]
			at++
		}
	}
	return dst
}
