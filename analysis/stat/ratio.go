package stat

import "math"

// Ratio gathers pairs of a numerator and a denominator in time order and gives Σ numerator ÷ Σ denominator with an interval.
//
// Waits come in bursts (one long gap every W fetches), so neighbours are not independent and a plain standard error would be
// far too small. The pairs are therefore summed into contiguous batches, and the spread between batches makes the interval
// (batch means; Law & Kelton, Simulation Modeling and Analysis, ch. 9). Memory is constant: when all batches are full, pairs of
// neighbours are merged and every batch from then on holds twice as many.
type Ratio struct {
	n, each int
	batches []pair
	filling int // pairs in the last batch
}

type pair struct{ num, den float64 }

// ratioBatches is the largest number of batches; between half of it and all of it carry the interval.
const ratioBatches = 64

// Batch returns a Ratio whose batches hold at least each pairs: choose several cycles of whatever repeats.
func Batch(each int) *Ratio { return &Ratio{each: max(each, 1)} }

// Add takes the next pair.
func (r *Ratio) Add(num, den float64) {
	if len(r.batches) == 0 || r.filling == r.each {
		if len(r.batches) == ratioBatches {
			r.merge()
		}
		r.batches = append(r.batches, pair{})
		r.filling = 0
	}
	b := &r.batches[len(r.batches)-1]
	b.num += num
	b.den += den
	r.filling++
	r.n++
}

func (r *Ratio) merge() {
	for i := range ratioBatches / 2 {
		a, b := r.batches[2*i], r.batches[2*i+1]
		r.batches[i] = pair{a.num + b.num, a.den + b.den}
	}
	r.batches = r.batches[:ratioBatches/2]
	r.each *= 2
}

// N returns the number of pairs.
func (r *Ratio) N() int { return r.n }

// Sums returns both sums.
func (r *Ratio) Sums() (num, den float64) {
	for _, b := range r.batches {
		num += b.num
		den += b.den
	}
	return num, den
}

// Value returns the ratio of the sums; ok is false where the denominator is not positive.
func (r *Ratio) Value() (float64, bool) {
	num, den := r.Sums()
	return num / den, den > 0
}

// Interval returns the ratio and its 95 % interval; ok is false with a single batch, which says nothing about the spread.
func (r *Ratio) Interval() (Interval, bool) {
	value, ok := r.Value()
	if !ok || math.IsNaN(value) || math.IsInf(value, 0) {
		return Interval{}, false
	}
	batches := r.batches
	if len(batches) > 2 && r.filling < r.each/2 { // a stub at the end would count as much as a full batch
		last := batches[len(batches)-1]
		batches = append([]pair(nil), batches[:len(batches)-1]...)
		batches[len(batches)-1].num += last.num
		batches[len(batches)-1].den += last.den
	}
	m := float64(len(batches))
	if m < 2 {
		return Interval{}, false
	}
	squares, den := 0.0, 0.0
	for _, b := range batches {
		d := b.num - value*b.den
		squares += d * d
		den += b.den
	}
	half := T975(int(m)-1) * math.Sqrt(squares*m/(m-1)) / den
	return Interval{value, value - half, value + half}, true
}

// Combine adds up several witnesses of the same stretch of time, such as the ranks of a job: their batches are laid side by side in
// time and summed, so witnesses that always agree do not narrow the interval. Nil without any.
func Combine(ratios ...*Ratio) *Ratio {
	if len(ratios) < 2 {
		if len(ratios) == 0 {
			return nil
		}
		return ratios[0]
	}
	m := ratioBatches
	for _, r := range ratios {
		if len(r.batches) > 0 {
			m = min(m, len(r.batches))
		}
	}
	sum := &Ratio{each: 1, batches: make([]pair, m), filling: 1}
	for _, r := range ratios {
		for i, b := range r.batches {
			j := i * m / len(r.batches)
			sum.batches[j].num += b.num
			sum.batches[j].den += b.den
		}
		sum.n = max(sum.n, r.n)
	}
	return sum
}
