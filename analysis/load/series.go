package load

import "math"

// Series is a long list of weighted readings in bounded memory: when it is full, neighbours are merged into their mean, so
// sums stay exact to rounding and only the resolution in time is lost. NaN is a reading that is missing.
type Series struct {
	width int
	limit int
	rows  []row
	v     []float32
}

type row struct {
	begin, end int64
	weight     float64
}

// seriesCap bounds a series; half of it is the resolution a long one keeps.
const seriesCap = 4096

func newSeries(width, limit int) Series { return Series{width: width, limit: limit} }

// Len returns the number of readings kept.
func (s *Series) Len() int { return len(s.rows) }

// add appends one reading of every field. A reading without weight is left out.
func (s *Series) add(begin, end int64, weight float64, v ...float32) {
	if weight > 0 && !math.IsInf(weight, 0) {
		copy(s.open(begin, end, weight), v)
	}
}

// open appends a reading whose fields are all missing, and returns them to be filled in.
func (s *Series) open(begin, end int64, weight float64) []float32 {
	if len(s.rows) == s.limit {
		s.halve()
	}
	s.rows = append(s.rows, row{begin, end, weight})
	s.v = append(s.v, missing[:s.width]...)
	return s.v[len(s.v)-s.width:]
}

// missing is a reading that nobody took, as wide as the widest.
var missing = func() (m [max(CostFields, stateFields)]float32) {
	for i := range m {
		m[i] = nan
	}
	return m
}()

func (s *Series) halve() {
	half, w := len(s.rows)/2, s.width
	for i := range half {
		a, b := s.rows[2*i], s.rows[2*i+1]
		left := s.v[2*i*w:][:w]
		right := s.v[(2*i+1)*w:][:len(left)]
		into := s.v[i*w:][:len(left)]
		if a.weight == b.weight {
			for f, v := range left {
				into[f] = middle(v, right[f])
			}
		} else {
			for f, v := range left {
				into[f] = mix(v, a.weight, right[f], b.weight)
			}
		}
		s.rows[i] = row{min(a.begin, b.begin), max(a.end, b.end), a.weight + b.weight}
	}
	s.rows, s.v = s.rows[:half], s.v[:half*w]
}

// mix is the weighted mean of two readings; a missing one takes no part.
func mix(a float32, wa float64, b float32, wb float64) float32 {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return float32((float64(a)*wa + float64(b)*wb) / (wa + wb))
}

// middle is mix of two readings that weigh the same, as batches and seconds do. Readings are finite and far from overflow, so a float64
// would say the same: of two floats that differ by up to 2^29 times it holds the sum exactly, and beyond that both round to the larger one.
func middle(a, b float32) float32 {
	switch m := (a + b) / 2; {
	case m == m:
		return m
	case a != a:
		return b
	}
	return a
}

// At returns reading i: its span, its weight and one field.
func (s *Series) At(i, field int) (begin, end int64, weight float64, v float32) {
	r := s.rows[i]
	return r.begin, r.end, r.weight, s.v[i*s.width+field]
}

// Sum adds up value × weight and weight of one field over the readings whose middle lies where keep says; missing ones apart.
// A nil keep takes all.
func (s *Series) Sum(field int, keep func(t int64) bool) (sum, weight float64) {
	for i, r := range s.rows {
		v := float64(s.v[i*s.width+field])
		if v != v || keep != nil && !keep(r.begin+(r.end-r.begin)/2) {
			continue
		}
		sum += v * r.weight
		weight += r.weight
	}
	return sum, weight
}

// Sums is Sum of every field. It asks keep once a reading.
func (s *Series) Sums(keep func(t int64) bool) (sums, weights []float64) {
	sums, weights = make([]float64, s.width), make([]float64, s.width)
	for i, r := range s.rows {
		if keep != nil && !keep(r.begin+(r.end-r.begin)/2) {
			continue
		}
		for field, v := range s.v[i*s.width:][:s.width] {
			if v == v {
				sums[field] += float64(v) * r.weight
				weights[field] += r.weight
			}
		}
	}
	return sums, weights
}

// from returns the fields of the reading that stands back places before the last one, to be filled in.
func (s *Series) from(back int) []float32 {
	i := (len(s.rows) - 1 - back) * s.width
	return s.v[i : i+s.width]
}

// lastReadings returns how many of the last readings hold together the given weight, at least one.
func (s *Series) lastReadings(weight float64) int {
	n := 0
	for i := len(s.rows) - 1; i >= 0 && weight > 0; i-- {
		weight -= s.rows[i].weight
		n++
	}
	return n
}
