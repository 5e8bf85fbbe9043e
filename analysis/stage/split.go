package stage

import (
	"cmp"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis/stat"
)

// Split is where a batch's time goes.
type Split struct {
	Parts   []Part // largest first; those that were not seen are left out
	Samples int
	On      float64 // share of the time in which the thread ran or could have run, of that in which it is known
}

// Part is one class.
type Part struct {
	Class     Class
	Share     stat.Interval // of a batch's time
	On        stat.Interval // of a batch's time: computing, or waiting for a core
	Off       stat.Interval // of a batch's time: waiting for something else
	Functions []Function    // the largest few
}

// Function is what makes a part large: the one by which it was classed, and for [Other] the one nearest to the leaf that is the
// script's own.
type Function struct {
	Name  string
	Share float64 // of a batch's time
	On    float64 // of a batch's time
}

const (
	mostFunctions = 4
	enough        = 10 // samples below which nothing is said
)

// Of splits what the tree holds; ok is false where too little was seen.
func Of(t *Tree) (s Split, ok bool) {
	type sums struct {
		on, off, unclear float64
		functions        map[string]*Function
	}
	var classes Classifier
	found := map[Class]*sums{}
	whole := 0.0
	book := func(class Class, function string, on, off, unclear float64) {
		p := found[class]
		if p == nil {
			p = &sums{functions: map[string]*Function{}}
			found[class] = p
		}
		p.on, p.off, p.unclear = p.on+on, p.off+off, p.unclear+unclear
		f := p.functions[function]
		if f == nil {
			f = &Function{Name: function}
			p.functions[function] = f
		}
		f.Share += on + off + unclear
		f.On += on
	}
	t.Walk(func(path []string, n *Node) {
		if n.Samples == 0 {
			return
		}
		whole += n.Self()
		s.Samples += n.Samples
		on, off, by := classes.Of(path)
		if by == "" {
			by = classes.ownOf(path)
		}
		if n.On > 0 {
			book(on, by, n.On, 0, 0)
		}
		if n.Off > 0 {
			book(off, by, 0, n.Off, 0)
		}
		if n.Unclear > 0 {
			class := on
			if on != off { // read or decode, and it is not known which
				class = Other
			}
			book(class, by, 0, 0, n.Unclear)
		}
	})
	if s.Samples < enough || whole <= 0 || math.IsInf(whole, 0) {
		return Split{}, false
	}
	carry := s.Samples / 2 // looks that were late stand for more than others: half of them carry the interval
	on, clear := 0.0, 0.0
	for _, class := range Classes {
		p := found[class]
		if p == nil {
			continue
		}
		on, clear = on+p.on, clear+p.on+p.off
		part := Part{Class: class, Share: wilson((p.on+p.off+p.unclear)/whole, carry),
			On: wilson(p.on/whole, carry), Off: wilson(p.off/whole, carry)}
		delete(p.functions, "") // nothing was on the stack but the loop
		for _, f := range p.functions {
			part.Functions = append(part.Functions, Function{f.Name, f.Share / whole, f.On / whole})
		}
		slices.SortFunc(part.Functions, func(a, b Function) int {
			return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Name, b.Name))
		})
		part.Functions = part.Functions[:min(len(part.Functions), mostFunctions)]
		s.Parts = append(s.Parts, part)
	}
	s.On = math.NaN()
	if clear > 0 {
		s.On = on / clear
	}
	slices.SortStableFunc(s.Parts, func(a, b Part) int { return cmp.Compare(b.Share.Value, a.Share.Value) })
	return s, true
}

// BeforeCollate is the part that some kinds of work have in all that the builder computes before it collates, and the functions that
// make most of each; ok is false where too little of that was seen.
func (s *Split) BeforeCollate(classes ...Class) (part stat.Interval, functions []string, ok bool) {
	of, whole := 0.0, 0.0
	for _, p := range s.Parts {
		if p.Class != Collate {
			whole += p.On.Value
		}
		if !slices.Contains(classes, p.Class) {
			continue
		}
		of += p.On.Value
		if len(p.Functions) > 0 && p.On.Value > 0 {
			functions = append(functions, p.Functions[0].Name)
		}
	}
	seen := int(whole * float64(s.Samples) / 2)
	if seen < enough {
		return stat.Interval{}, nil, false
	}
	return wilson(of/whole, seen), functions, true
}

// ownOf is the function nearest to the leaf that is in no file the table calls a caller: the script's own, most likely.
func (c *Classifier) ownOf(path []string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if first := c.of(path[i]).first; first != caller && first != Other {
			return path[i]
		}
	}
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

// wilson is the 95 % interval of a share that n looks found (Wilson 1927).
func wilson(share float64, n int) stat.Interval {
	const z = 1.959964
	share = min(max(share, 0), 1)
	count := float64(n)
	middle := (share + z*z/(2*count)) / (1 + z*z/count)
	half := z / (1 + z*z/count) * math.Sqrt(share*(1-share)/count+z*z/(4*count*count))
	return stat.Interval{Value: share, Low: min(share, max(0, middle-half)), High: max(share, min(1, middle+half))}
}
