package fixes

import (
	"fmt"
	"strings"

	"github.com/datawait/datawait/analysis/loader"
)

// arguments are the DataLoader arguments that bear on speed, as a fix leaves them.
type arguments struct {
	workers, prefetch  int
	persistent, pinned bool
	watched            bool
}

// given returns what the job's loader was made with.
func given(a loader.Arguments) arguments {
	return arguments{
		workers: a.Workers, prefetch: a.Prefetch.Or(loader.DefaultPrefetch),
		persistent: a.Persistent.Or(false), pinned: a.PinMemory.Or(false), watched: a.Watched,
	}
}

// call writes the arguments as one would type them; the dots stand for all others, which stay.
func (a arguments) call() string {
	parts := []string{fmt.Sprintf("num_workers=%d", a.workers)}
	if a.prefetch != loader.DefaultPrefetch && a.workers > 0 {
		parts = append(parts, fmt.Sprintf("prefetch_factor=%d", a.prefetch))
	}
	if a.persistent && a.workers > 0 {
		parts = append(parts, "persistent_workers=True")
	}
	if a.pinned {
		parts = append(parts, "pin_memory=True")
	}
	if a.watched {
		return "the loader's own argument for: " + strings.Join(parts, ", ")
	}
	return "DataLoader(..., " + strings.Join(parts, ", ") + ")"
}
