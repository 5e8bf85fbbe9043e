package wrap

import (
	"context"
	"time"

	"github.com/datawait/datawait/probe/clock"
)

// run observes until ctx is done.
func (a *agent) run(ctx context.Context) {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	flushed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := clock.Mono()
			_ = a.drain(ctx, now)
			_ = a.watchGPU(ctx, now)
			if time.Since(flushed) > flushEvery {
				_ = a.flush(ctx, now)
				_ = a.lookForPythons(ctx, now)
				flushed = time.Now()
			}
		}
	}
}
