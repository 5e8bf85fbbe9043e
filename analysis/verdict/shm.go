package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
	"github.com/datawait/datawait/analysis/loader"
)

// sharedMemory: finished batches do not fit into /dev/shm, of which a container has 64 MiB where nobody asks for more; the worker that finds no
// room is ended by SIGBUS, or hangs (F69). It slows nothing down until it ends the job.
func sharedMemory(s *subject) opinion {
	shm, workers := s.p.Around.Shared, s.p.Args.Workers
	queue, next := s.p.Short()
	size := shm.Size.Or(0)
	prefetch := s.p.Args.Prefetch.Or(loader.DefaultPrefetch)
	need := s.p.Queued(workers, prefetch)
	if !queue && !next {
		if n, ok := need.Get(); ok && shm.Size.IsKnown() && n > size/2 {
			return drop(fmt.Sprintf("full queues take %s of the %s of /dev/shm, and it never ran short", megabytes(n), megabytes(size)))
		}
		return opinion{}
	}
	title := fmt.Sprintf("%s with prefetch_factor=%d fill %s of shared memory while they keep up, and /dev/shm has %s", phrase.Workers(workers), prefetch, megabytes(need.Or(0)), megabytes(size))
	if next {
		title = fmt.Sprintf("of the %s of /dev/shm %s were left at the least, less than the next batch of each worker takes", megabytes(size), megabytes(shm.Free.Or(0)))
	}
	v := Verdict{
		Title: title + ": a worker that finds no room is killed by SIGBUS, or hangs", Confidence: 0.7, Share: noShare("it takes no time from a step until a worker finds no room"),
		Evidence: evidence{}.num("shared_memory_bytes", shm.Size, "bytes", byHost).num("shared_memory_free_bytes", shm.Free, "bytes", byHost).
			num("full_queues_bytes", need, "bytes", byBuilds).num("batch_bytes", s.p.Batch.Bytes, "bytes", byBuilds),
		FalsifiedBy: "a run of the same loader with full queues in which /dev/shm does not run short",
	}
	o := opinion{verdict: v, found: true, weight: 1.2 * Notable} // after every problem of the step that counts, before compute
	if next {
		o.verdict.Confidence = 0.8
	}
	if s.f.Failed != "" {
		o.verdict.Title += "; the command failed " + s.f.Failed
		o.verdict.Confidence, o.weight = 0.9, 1
	}
	return o
}
