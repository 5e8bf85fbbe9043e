package loader

// SharedMemory is the job's /dev/shm, through which PyTorch's workers pass the tensors of finished batches.
type SharedMemory struct {
	Size Num // bytes
	Free Num // bytes, the least that was seen
}

// Queued is how many bytes the job's finished batches take on this host while every queue is full: W·P of them for each rank, and the one
// that is being used. Unknown without worker processes, or where what a batch holds was not seen.
func (p Parameters) Queued(workers, prefetch int) Num {
	bytes, ok := p.Batch.Bytes.Get()
	if !ok || bytes <= 0 || workers < 1 || p.Args.Watched {
		return missing("what finished batches take in shared memory was not seen")
	}
	return some(float64(max(p.Host.Ranks, 1)) * float64(workers*prefetch+1) * bytes)
}

// Short says whether shared memory cannot hold the batches of this loader: the queue does not fit into all of it, or there was less
// left than its workers' next batches take.
func (p Parameters) Short() (queue, next bool) {
	shm, workers := p.Around.Shared, p.Args.Workers
	size, okSize := shm.Size.Get()
	need, okNeed := p.Queued(workers, p.Args.Prefetch.Or(DefaultPrefetch)).Get()
	free, okFree := shm.Free.Get()
	if !okSize || !okNeed {
		return false, false
	}
	return need > size, okFree && free < float64(workers)*p.Batch.Bytes.Or(0)
}
