package view

import (
	"strings"

	"github.com/datawait/datawait/analysis"
)

// leftEarly tells of ranks that were gone while others went on, and did not say why. A second is how closely that is looked at.
func leftEarly(ranks []analysis.Rank) string {
	const noticed, named = 2, 3 // seconds, ranks
	var told []string
	n := 0
	for _, k := range ranks {
		if k.EndedEarlySeconds.Or(0) < noticed || k.Ended == "normally" || k.Ended == "parked" {
			continue
		}
		if n++; n <= named {
			told = append(told, "rank "+count(k.Rank)+" after step "+count(k.Steps)+", "+scaled(k.EndedEarlySeconds, timeScales).Text+" before the others")
		}
	}
	if n == 0 {
		return ""
	}
	if n > named {
		told = append(told, "and "+count(n-named)+" more")
	}
	return upper(strings.Join(told, "; ")) + ". It did not say why. What is told of later steps is told of the others."
}
