package fixes

import (
	"strings"
	"testing"

	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/analysis/loader/scenario"
	"github.com/datawait/datawait/analysis/stage"
)

// looked is a split of a batch of which so much of the computing is decoding, augmentation and collate; the rest is unknown.
func looked(decode, augment, collate float64) *stage.Split {
	var t stage.Tree
	t.Add([]string{"train.py:decode"}, decode, 0, 0, int(1000*decode))
	t.Add([]string{"train.py:random_flip"}, augment, 0, 0, int(1000*augment))
	t.Add([]string{"train.py:collate"}, collate, 0, 0, int(1000*collate))
	t.Add([]string{"train.py:Photos.__getitem__"}, 1-decode-augment-collate, 0, 0, 1000-int(1000*(decode+augment+collate)))
	s, ok := stage.Of(&t)
	if !ok {
		panic("no split")
	}
	return &s
}

// A batch of 100 ms of CPU on two cores: what a fix wins goes by the part that was measured, not by a guess.
func TestWhatWasSeenTakesThePlaceOfAGuess(t *testing.T) {
	j := scenario.Job{W: 2, K: 2, Burn: 0.1, Device: 0.010, Floor: 0.001, Solo: true}
	saved := func(id string, inside *stage.Split) (float64, Fix) {
		r := rank(j, func(p *loader.Parameters) { p.Inside = inside })
		f, _ := find(r, id)
		return f.Predicted.StepSavedShare.Or(zero).Value, f
	}
	for _, c := range []struct {
		id, function string
		much, little *stage.Split
	}{
		{PreprocessOnce, "train.py:decode", looked(0.9, 0.05, 0), looked(0.3, 0.6, 0)},
		{CheaperDecode, "train.py:decode", looked(0.9, 0.05, 0), looked(0.3, 0.6, 0)},
		{AugmentOnGPU, "train.py:random_flip", looked(0.05, 0.9, 0), looked(0.6, 0.3, 0)},
	} {
		much, f := saved(c.id, c.much)
		little, _ := saved(c.id, c.little)
		if much <= 1.5*little {
			t.Errorf("%s: saves %v where it is nine tenths, %v where it is three", c.id, much, little)
		}
		if !strings.Contains(f.How, "(here: "+c.function+")") || !strings.Contains(strings.Join(f.Assumes, " "), "as looks at the workers' stacks found") {
			t.Errorf("%s: %q, %q", c.id, f.How, f.Assumes)
		}
	}
}

func TestTooFewLooksLeaveTheGuess(t *testing.T) {
	j := scenario.Job{W: 2, K: 2, Burn: 0.1, Device: 0.010, Floor: 0.001, Solo: true}
	var few stage.Tree
	few.Add([]string{"train.py:decode"}, 1, 0, 0, 12)
	s, _ := stage.Of(&few)
	f, ok := find(rank(j, func(p *loader.Parameters) { p.Inside = &s }), PreprocessOnce)
	if !ok || !strings.Contains(f.Assumes[0], "three quarters") {
		t.Errorf("%v %+v", ok, f.Assumes)
	}
}
