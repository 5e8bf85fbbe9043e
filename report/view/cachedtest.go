package view

import (
	"maps"
	"slices"

	"github.com/datawait/datawait/analysis"
)

// Test is the cached-data test.
type Test struct {
	Ran        bool
	Words      string // why there is nothing to show, where it did not run
	Legs       []Leg
	Unit       string   // of the step times
	Ceiling    Quantity // how many times faster a step could be
	Speed      string   // the ceiling in words, "2.8× faster, 95 % interval 2.6–3.0"
	Saved      Quantity // seconds per step
	Splits     []Split  // what the difference is made of
	Conclusion string
	Skipped    []Gap
	Pairs      string // "14 pairs of blocks"
}

// Leg is one arm of the test.
type Leg struct {
	ID, Name string
	Step     Quantity
	SM       Quantity
	Blocks   string // "14 blocks, 448 steps"
}

// Split is one share of a live step that the test tells apart.
type Split struct {
	Name  string
	Share Quantity
}

func cachedTest(r *analysis.Result) Test {
	b := r.Baseline
	if b == nil {
		return Test{Words: "No cached-data test ran."}
	}
	st, unitName := stepStyle(r)
	t := Test{
		Ran: true, Unit: unitName, Ceiling: estimate(b.Ceiling, timesStyle), Speed: speed(b.Ceiling), Saved: estimate(b.SavedSeconds, st),
		Conclusion: conclusion(b), Pairs: plural(b.Pairs, "pair") + " of blocks",
		Splits: []Split{
			{"copy to the GPU", share(b.CopyShare)},
			{"workers disturbing the training process", share(b.InterferenceShare)},
			{"unexplained", share(b.UnexplainedShare)},
		},
	}
	for _, id := range legIDs(b) {
		leg := b.Legs[id]
		t.Legs = append(t.Legs, Leg{
			ID: cleanName(id), Name: legName(id), Step: estimate(leg.StepSeconds, st), SM: estimate(leg.SMActiveRatio, percentStyle),
			Blocks: plural(leg.Blocks, "block") + ", " + plural(leg.Steps, "step"),
		})
	}
	for _, s := range b.Skipped {
		t.Skipped = append(t.Skipped, Gap{upper(legName(s.Leg)), sentence(s.Reason)})
	}
	return t
}

// legIDs gives the legs that ran, in the order in which they are shown; legs this version does not know come last.
func legIDs(b *analysis.Baseline) []string {
	var ids []string
	for _, id := range legOrder {
		if _, ok := b.Legs[id]; ok {
			ids = append(ids, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.Legs)) {
		if !slices.Contains(legOrder, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
