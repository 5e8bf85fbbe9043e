package analysis

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// eachRank runs do for every rank, on as many cores as there are. What it does must touch that rank alone.
func (r *run) eachRank(do func(*rank)) {
	parallel(len(r.ranked), func(i int) { do(r.ranked[i]) })
}

// eachDevice is eachRank for GPUs; a GPU's ranks go with it.
func (r *run) eachDevice(do func(*device)) {
	parallel(len(r.devices), func(i int) { do(r.devices[i]) })
}

func parallel(n int, do func(int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers < 2 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	done.Wait()
}
