package alloc

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/datawait/datawait/probe/recording"
)

// Bounds of what is believed of one look. A kubelet's or a folder's answer is another program's text.
const (
	maxClaims  = 512 // GPUs and slices of one machine; DCGM knows at most 32 GPUs, a GPU has at most 7 slices
	maxHolders = 64  // of one GPU; MPS serves at most 60 clients (docs.nvidia.com/deploy/mps, 2.3.1.1)
	maxPIDs    = 256 // of one holder
)

// claim is what somebody says of one GPU.
type claim struct {
	holders []recording.Holder // empty: free
	shared  string             // recording.Shared…, "" = not, or not told
}

// claims are by UUID. A GPU that is not there is one of which nothing is said.
type claims map[string]*claim

// add says that a holder has a GPU. The same holder counts once: a container that got two replicas of one GPU holds one GPU.
func (c claims) add(uuid string, h recording.Holder, shared string) {
	one := c[uuid]
	if one == nil {
		if len(c) >= maxClaims {
			return
		}
		one = &claim{}
		c[uuid] = one
	}
	one.shared = cmp.Or(one.shared, shared)
	known := slices.ContainsFunc(one.holders, func(o recording.Holder) bool { return reflect.DeepEqual(o, h) })
	if !known && len(one.holders) < maxHolders {
		one.holders = append(one.holders, h)
	}
}

// free says that a GPU has no holder, unless it has one.
func (c claims) free(uuid string) {
	if c[uuid] == nil && len(c) < maxClaims {
		c[uuid] = &claim{}
	}
}

// sort puts the holders in an order that does not depend on who was listed first, so that only a change is one.
func (c claims) sort() {
	for _, one := range c {
		slices.SortFunc(one.holders, func(a, b recording.Holder) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container),
				cmp.Compare(a.Job, b.Job), cmp.Compare(a.PodUID, b.PodUID), slices.Compare(a.PIDs, b.PIDs))
		})
	}
}

func (c *claim) same(other *claim) bool {
	return c != nil && other != nil && c.shared == other.shared && reflect.DeepEqual(c.holders, other.holders)
}
