package analysis

import (
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// unmixed is SM activity while the process computes and while it waits.
type unmixed struct{ computing, waiting Est }

func (d *device) unmix() unmixed {
	const why = "not computed"
	return unmixed{unit.None[stat.Estimate](why), unit.None[stat.Estimate](why)}
}

// unskew finds how late the counters run.
func (d *device) unskew() {}
