package scenario

// ms is a millisecond in seconds.
const ms = 1e-3

// The scenarios with a known answer, by their number. Batches hold 8 samples.

// S01 is no workers and storage latency: 8 × 5 ms in the training process, C = 20 ms.
func S01() Job { return Job{W: 0, K: 2, Sleep: 40 * ms, Device: 20 * ms, Solo: true} }

// S02 is sleep 5 ms a sample, C = 15 ms: three workers are enough.
func S02(w int) Job {
	return Job{W: w, K: 2, Sleep: 40 * ms, Device: 15 * ms, Floor: 1.1 * ms, Solo: true, Batches: 200, Epochs: 3,
		WorkerStart: 0.025 * float64(w)}
}

// S03 is 4 ms of one shared link for every sample, C = 12 ms.
func S03(w int) Job {
	return Job{W: w, K: 2, Sleep: 32 * ms, Link: 32 * ms, Device: 12 * ms, Floor: 1.1 * ms, Solo: true}
}

// S05 is decoding, 6 ms of CPU a sample on two cores, C = 10 ms.
func S05(w int) Job {
	return Job{W: w, K: 2, Burn: 48 * ms, Device: 10 * ms, Floor: 1.1 * ms, Solo: true}
}

// S06 is 1 ms of storage and 6 ms of random augmentation a sample, W = 2, C = 12 ms.
func S06() Job {
	return Job{W: 2, K: 2, Sleep: 8 * ms, Burn: 48 * ms, Device: 12 * ms, Floor: 1.1 * ms, Solo: true, Read: 1 << 20, Files: 8}
}

// S09 is workers whose affinity is one core of two: 3 ms of CPU a sample, C = 13 ms.
func S09(w int) Job {
	return Job{W: w, K: 2, Affinity: 1, Burn: 24 * ms, Device: 13 * ms, Floor: 1.1 * ms, Solo: true}
}

// S10 is a slow collate: 0.5 ms of waiting a sample, 40 ms of CPU in collate_fn, W = 2, C = 12 ms.
func S10() Job {
	return Job{W: 2, K: 2, Sleep: 4 * ms, Gather: 40 * ms, Device: 12 * ms, Floor: 1.1 * ms, Solo: true}
}

// S14 is workers made anew every epoch: 0.3 s of worker_init, W = 4, C = 20 ms, 20 steps an epoch.
func S14() Job {
	return Job{W: 4, K: 2, Sleep: 40 * ms, Device: 20 * ms, Floor: 1.1 * ms, Solo: true, Batches: 20, Epochs: 4, WorkerStart: 0.3}
}

// S21 is 25 ms of work in the training process between next() and the launch, C = 15 ms.
func S21() Job {
	return Job{W: 2, K: 2, Sleep: 8 * ms, Main: 25 * ms, Device: 15 * ms, Floor: 1.1 * ms, Solo: true, Launches: 1}
}

// S23 is 20 ms of blocking copy and a cheap loader, C = 20 ms.
func S23() Job {
	return Job{W: 4, K: 2, Sleep: 4 * ms, Copy: 20 * ms, Device: 20 * ms, Floor: 1.1 * ms, Solo: true}
}

// S25 is 20 ms of host work around 40 kernels of 0.1 ms.
func S25() Job {
	return Job{W: 2, K: 2, Sleep: 4 * ms, Main: 20 * ms, Device: 4 * ms, Floor: 1.1 * ms, Solo: true, Launches: 40}
}

// S26 is the compute-bound control: L = 8 ms, W = 2, C = 40 ms.
func S26() Job { return Job{W: 2, K: 2, Sleep: 8 * ms, Device: 40 * ms, Floor: 1.1 * ms, Solo: true} }

// S26Marginal is the same with one worker that is a little too slow: L = 105 ms, C = 100 ms.
func S26Marginal() Job {
	return Job{W: 1, K: 2, Sleep: 105 * ms, Device: 100 * ms, Floor: 1.1 * ms, Solo: true}
}

// Uber is the shape of the public story: the files lie on a cluster store, columns are decoded and converted on all cores, and
// a raw copy on local NVMe changed nothing while the finished arrays did. Sixteen builds that all take as long wait together and
// compute together, two to a core: (60 + 2·960) ÷ 16 = 123.75 ms.
func Uber() Job {
	return Job{W: 16, K: 8, Sleep: 60 * ms, Burn: 960 * ms, Device: 20 * ms, Floor: 1.1 * ms, Solo: true, Files: 4, Read: 64 << 20, Played: true}
}

// F73 is the public case where caching changed nothing: the GPU is the limit.
func F73() Job {
	return Job{W: 8, K: 8, Sleep: 400 * ms, Burn: 900 * ms, Device: 1.26, Floor: 1.5 * ms, Solo: true, Files: 16, Read: 16 << 20}
}
