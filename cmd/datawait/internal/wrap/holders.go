package wrap

import (
	"context"
	"strings"

	"github.com/datawait/datawait/cmd/datawait/internal/gpusource"
	"github.com/datawait/datawait/probe/alloc"
)

// holders is the part of an agent that finds out to whom the GPUs are assigned.
type holders struct {
	watch *alloc.Watch // nil until started, and where no GPU is wanted
	why   string       // what the last look could not tell, "" = it told all it was asked
}

// findHolders hands on what GPU sources have told, and writes what was found out.
func (a *agent) findHolders(_ context.Context, now uint64) error {
	if a.holders.watch == nil {
		return nil
	}
	if view, changed := a.tap.gpus.View(); changed {
		a.holders.watch.See(view)
	}
	err := a.holders.watch.Poll(now, a.own)
	a.holders.why = ""
	if err != nil {
		a.holders.why = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return err
}

func (a *agent) watchHolders(ctx context.Context) {
	if a.session.options.GPU.Kind != gpusource.None {
		a.holders.watch = alloc.Start(ctx, alloc.Options{})
	}
}

// warning is a sentence for the report, "" where nobody was asked in vain or there is no GPU to be held.
func (h *holders) warning(seen *alloc.Seen) string {
	if h.why == "" || !seen.Real() {
		return ""
	}
	return "whom the GPUs are assigned to is not known, or not of all: " + h.why
}
