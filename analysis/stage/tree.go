package stage

import (
	"cmp"
	"slices"
)

// A Node is a function as called on one path, with what was found on top of the stack there. All times are seconds of batches in the
// making, as the looks stand for them.
type Node struct {
	Function string // file:function; "" is the loop that builds
	On       float64
	Off      float64
	Unclear  float64 // whether it ran or waited could not be read
	Samples  int
	Below    []*Node // what it called
}

// mostNodes bounds a tree: a stream has at most 512 calls, and those of many processes are mostly the same.
const mostNodes = 4096

// A Tree is the stacks of the processes that built for one loader, added up. The zero Tree is empty.
type Tree struct {
	Root      Node
	Nodes     int
	Outside   uint64 // samples of which a part found no room, here or in the process
	Looks     uint64
	Processes int
	CPU, Wall float64 // seconds that sampling took of those processes, and for how long it ran, where that was told

	Transforms map[string]Timing // exact times, by name
	Batches    float64           // built while they were taken, and the seconds that took; 0 where records were lost
	Seconds    float64
}

// Timing is the time of one transform in all its calls.
type Timing struct {
	Calls   float64
	Seconds float64
}

// Add counts what was found at the end of a path, from the root down.
func (t *Tree) Add(path []string, on, off, unclear float64, samples int) {
	n := &t.Root
	for _, f := range path {
		below := n.below(f)
		if below == nil {
			if t.Nodes >= mostNodes {
				t.Outside += uint64(samples)
				break
			}
			t.Nodes++
			below = &Node{Function: f}
			n.Below = append(n.Below, below)
		}
		n = below
	}
	n.On += on
	n.Off += off
	n.Unclear += unclear
	n.Samples += samples
}

func (n *Node) below(function string) *Node {
	for _, b := range n.Below {
		if b.Function == function {
			return b
		}
	}
	return nil
}

// Time adds exact times of a transform.
func (t *Tree) Time(name string, calls, seconds float64) {
	const most = 256
	if t.Transforms == nil {
		t.Transforms = map[string]Timing{}
	}
	sum, known := t.Transforms[name]
	if known || len(t.Transforms) < most {
		t.Transforms[name] = Timing{sum.Calls + calls, sum.Seconds + seconds}
	}
}

// Merge adds what another tree holds.
func (t *Tree) Merge(other *Tree) {
	other.Walk(func(path []string, n *Node) { t.Add(path, n.On, n.Off, n.Unclear, n.Samples) })
	for name, v := range other.Transforms {
		t.Time(name, v.Calls, v.Seconds)
	}
	t.Outside += other.Outside
	t.Looks += other.Looks
	t.Processes += other.Processes
	t.CPU += other.CPU
	t.Wall += other.Wall
	t.Batches += other.Batches
	t.Seconds += other.Seconds
}

// Walk calls f for every node with its path, callers first.
func (t *Tree) Walk(f func(path []string, n *Node)) { walk(&t.Root, nil, f) }

func walk(n *Node, path []string, f func([]string, *Node)) {
	f(path, n)
	for _, b := range n.Below {
		walk(b, append(path, b.Function), f)
	}
}

// Sort puts what was called in order of the time it took.
func (t *Tree) Sort() { sortNodes(&t.Root) }

func sortNodes(n *Node) {
	for _, b := range n.Below {
		sortNodes(b)
	}
	slices.SortStableFunc(n.Below, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Function, b.Function))
	})
}

// Self is the time found on top here.
func (n *Node) Self() float64 { return n.On + n.Off + n.Unclear }

// Total is the time here and in all that was called.
func (n *Node) Total() float64 {
	sum := n.Self()
	for _, b := range n.Below {
		sum += b.Total()
	}
	return sum
}

// Samples is the number of looks behind a tree.
func (t *Tree) Samples() (n int) {
	t.Walk(func(_ []string, node *Node) { n += node.Samples })
	return n
}
