package fixes

// order sorts fixes by what they save, those that may win nothing behind those that certainly win something. Of fixes that
// cannot be told apart, the one that costs least comes first.
//
// Two savings cannot be told apart when they lie within 5 % of each other or two hundredths of the training time, or when the smaller one is at least half of the larger and
// as good when both turn out badly: an assumption about somebody's code ("three quarters of it is the same every epoch") must not
// outrank one argument that is sure to win as much (scenario S05 at W = 1).
func order(all []priced) []priced {
	rest := append([]priced{}, all...)
	var out []priced
	for len(rest) > 0 {
		best := leader(rest)
		out = append(out, rest[best])
		rest = append(rest[:best], rest[best+1:]...)
	}
	return out
}

// leader is the index of the fix that comes next.
func leader(rest []priced) int {
	top := 0
	for i, x := range rest {
		if ahead(x, rest[top]) {
			top = i
		}
	}
	best := top
	for i, x := range rest {
		if certain(x) != certain(rest[top]) || !alike(rest[top], x) {
			continue
		}
		if preferred(x, rest[best]) {
			best = i
		}
	}
	return best
}

// preferred says which of two fixes that win as much comes first: what was seen before a guess at reading that was not, then what costs less.
func preferred(x, y priced) bool {
	switch {
	case x.p.unseen != y.p.unseen:
		return y.p.unseen
	case x.p.effort != y.p.effort:
		return x.p.effort < y.p.effort
	}
	return x.saved.Value > y.saved.Value
}

// ahead says whether x saves more than y, a certain saving more than any that may be none.
func ahead(x, y priced) bool {
	if certain(x) != certain(y) {
		return certain(x)
	}
	return x.saved.Value > y.saved.Value
}

// certain says whether a fix helps wherever in its interval the truth lies. A fix of reading that nobody saw is a guess,
// whatever its interval: it must not stand above one argument that is as good (scenario S02 at W = 1, where builds only sleep).
func certain(x priced) bool { return x.saved.Low > 0 && !x.p.unseen }

// alike says whether a smaller saving cannot be told from the top one.
func alike(top, x priced) bool {
	t, v := top.saved, x.saved
	return v.Value >= 0.95*t.Value || v.Value >= 0.5*t.Value && (v.Value >= t.Value-0.02 || v.Low >= 0.95*t.Low)
}
