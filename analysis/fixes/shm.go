package fixes

import (
	"fmt"
	"math"

	"github.com/datawait/datawait/analysis/loader"
)

// shmSpare is how many times what full queues take is asked for: pinned copies, other loaders and libraries use it too.
const shmSpare = 2

// raiseSHM makes room for finished batches (F69). It makes no step faster.
func raiseSHM(j *job, _ state) proposal {
	queue, next := j.p.Short()
	if !queue && !next {
		return proposal{}
	}
	need := j.p.Queued(j.p.Args.Workers, j.p.Args.Prefetch.Or(loader.DefaultPrefetch)).Or(0)
	size := math.Ceil(shmSpare * math.Max(need, j.p.Around.Shared.Size.Or(0)) / (1 << 30))
	return proposal{
		title: "a larger /dev/shm", effort: jobSetting,
		how: fmt.Sprintf("docker run --shm-size %.0fg, in Kubernetes an emptyDir of medium Memory and sizeLimit %.0fGi at /dev/shm; till then fewer workers or a smaller prefetch_factor",
			size, size),
		needs:    "that much of the job's memory limit: shared memory counts to it",
		unpriced: "it makes no step faster; it keeps workers from being killed",
	}
}

// roomFor says what more queued batches need of /dev/shm: " (it has 67 MB: raise it first)" where they do not fit, "" else.
func (j *job) roomFor(workers, prefetch int) string {
	need, ok := j.p.Queued(workers, prefetch).Get()
	size, okSize := j.p.Around.Shared.Size.Get()
	if !ok || !okSize || need <= size {
		return ""
	}
	return fmt.Sprintf(" (it has %.2g MB: raise it first)", size/1e6)
}
