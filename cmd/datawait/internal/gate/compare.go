package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/datawait/datawait/analysis/compare"
)

// Comparison is what counts as a finding in a comparison: numbers that became worse. The zero Comparison counts nothing.
type Comparison struct {
	conditions []worsening
}

// worsening is one item of the list: any row, or one, from a relative change on.
type worsening struct {
	row  string // "" = any
	from float64
}

// anyWorse is the word for every row.
const anyWorse = "worse"

// Rows returns the names that --fail-on accepts of a comparison.
func Rows() []string { return append([]string{anyWorse}, compare.RowIDs()...) }

// ParseComparison reads a list such as "worse", "worse=5%" or "step_seconds,epoch_seconds=10%".
func ParseComparison(list string) (Comparison, error) {
	var g Comparison
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, text, limited := strings.Cut(item, "=")
		if !slices.Contains(Rows(), name) {
			return Comparison{}, fmt.Errorf("%q is neither %q nor the name of a row", name, anyWorse)
		}
		c := worsening{row: name}
		if name == anyWorse {
			c.row = ""
		}
		if limited {
			share, err := parseShare(text)
			if err != nil {
				return Comparison{}, fmt.Errorf("%q: %w", item, err)
			}
			c.from = share
		}
		g.conditions = append(g.conditions, c)
	}
	return g, nil
}

// Findings returns a sentence for every row that became worse as it may not, and an error if a row that was named cannot be judged.
func (g Comparison) Findings(c *compare.Comparison) (found []string, err error) {
	said := map[string]bool{}
	for _, w := range g.conditions {
		for _, r := range c.Rows {
			if w.row != "" && w.row != r.ID {
				continue
			}
			if w.row != "" && !r.Outcome.Compared() && err == nil {
				err = fmt.Errorf("judging --fail-on %s: %s", w.row, r.Why)
			}
			if s := w.judge(r); s != "" && !said[r.ID] {
				said[r.ID] = true
				found = append(found, s)
			}
		}
	}
	return found, err
}

func (w worsening) judge(r compare.Row) string {
	b, known := r.Before.Get()
	a, also := r.After.Get()
	if r.Outcome != compare.Worse || !known || !also {
		return ""
	}
	change := math.Inf(1)
	if b.Value != 0 {
		change = math.Abs(a.Value-b.Value) / math.Abs(b.Value)
	}
	if change < w.from {
		return ""
	}
	return fmt.Sprintf("%s became worse: %.4g before, %.4g after", r.ID, b.Value, a.Value)
}
