package stat

// Quantile returns the q-quantile (0–1) of v, which it reorders: the smallest value with at least q of all values at or below
// it. ok is false for an empty v.
//
// It selects rather than sorts: a day has millions of waits, and two quantiles of them are needed.
func Quantile(v []int64, q float64) (int64, bool) {
	if len(v) == 0 {
		return 0, false
	}
	k := int(q*float64(len(v))+0.999999) - 1
	k = min(max(k, 0), len(v)-1)
	lo, hi := 0, len(v)-1
	for lo < hi {
		pivot := median(v[lo], v[lo+(hi-lo)/2], v[hi])
		i, j := lo, hi
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return v[k], true
		}
	}
	return v[k], true
}

func median(a, b, c int64) int64 { return max(min(a, b), min(max(a, b), c)) }
