package verdict

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/loader"
)

//go:embed VERDICTS.md
var page string

// row is one verdict of the public table.
type row struct {
	id           string
	right, wrong []string
}

var code = regexp.MustCompile("`([a-z-]+)`")

func rows(t *testing.T) []row {
	var out []row
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		if len(cells) != 7 {
			t.Fatalf("%d cells: %s", len(cells), line)
		}
		names := func(s string) (all []string) {
			for _, m := range code.FindAllStringSubmatch(s, -1) {
				all = append(all, m[1])
			}
			return all
		}
		out = append(out, row{names(cells[1])[0], names(cells[4]), names(cells[5])})
	}
	return out
}

// TestTable: the page lists what the code judges, and nothing else, with fixes that exist.
func TestTable(t *testing.T) {
	listed, judged := []string(nil), Given()
	for _, r := range rows(t) {
		listed = append(listed, r.id)
		for _, f := range slices.Concat(r.right, r.wrong) {
			if !slices.Contains(fixes.IDs(), f) {
				t.Errorf("%s: no fix is called %s", r.id, f)
			}
			if slices.Contains(r.right, f) && slices.Contains(r.wrong, f) {
				t.Errorf("%s: %s is right and wrong", r.id, f)
			}
		}
	}
	slices.Sort(listed)
	slices.Sort(judged)
	if !slices.Equal(listed, judged) {
		t.Errorf("page %v\ncode %v", listed, judged)
	}
	for _, id := range judged {
		if !slices.Contains(IDs(), id) {
			t.Errorf("%s is no name of the contract", id)
		}
	}
}

// TestTableIsTrue: in the jobs whose answer is known, the first fix is one that the page names for the first verdict, and
// none of its wrong fixes comes first.
func TestTableIsTrue(t *testing.T) {
	all := rows(t)
	for _, c := range jobs {
		m := loader.New(c.job.Parameters())
		found := Judge(trained, m)
		r := all[slices.IndexFunc(all, func(r row) bool { return r.id == found.Verdicts[0].ID })]
		ranked := fixes.Rank(m)
		if len(ranked.Fixes) == 0 || len(found.Verdicts) > 1 && found.Verdicts[0].ID == ComputeBound {
			continue // nothing to hold against it, or a small second finding that the fix belongs to
		}
		if first := ranked.Fixes[0].ID; !slices.Contains(r.right, first) || slices.Contains(r.wrong, first) {
			t.Errorf("%s: %s comes first for %s", c.name, first, r.id)
		}
	}
}
