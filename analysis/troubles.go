package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/probe/recording"
)

// mostTroubles that are told of the GPU sources of a node: one that comes and goes has a reason each time.
const mostTroubles = 4

// troubles is what the GPU sources of a node said was wrong with them, each once.
func troubles(n *load.Node) (all []string) {
	for i := range n.Notes {
		for _, d := range n.Notes[i].DeviceNames {
			name, gpus := strings.CutPrefix(d.Name, "gpu/")
			if d.Class != recording.ClassSource || !gpus || d.Why == "" || len(all) == mostTroubles {
				continue
			}
			if name != "child" { // which says it all
				d.Why = name + ": " + d.Why
			}
			if !slices.Contains(all, d.Why) {
				all = append(all, d.Why)
			}
		}
	}
	return all
}

// trouble is the first of a job's, "" if there was none.
func (r *run) trouble() string {
	for _, n := range r.job.Nodes {
		if all := troubles(n); len(all) > 0 {
			return all[0]
		}
	}
	return ""
}

// troubled warns of them: for a while there were no counters, which the coverage shows and does not explain.
func (r *run) troubled() (all []string) {
	for _, n := range r.job.Nodes {
		for _, why := range troubles(n) {
			all = append(all, fmt.Sprintf("the GPU counters on %s failed, for a while or for good: %s", n.Host, why))
		}
	}
	return all
}

// shortened keeps a reason to the length of a few lines: it comes from a driver, or from anybody who writes a recording.
func shortened(why string) string {
	const most = 400
	if len(why) <= most {
		return why
	}
	return strings.ToValidUTF8(why[:most], "") + "…"
}
