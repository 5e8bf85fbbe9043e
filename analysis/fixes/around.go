package fixes

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// Fixes of what lies around steady steps: stalls, other ranks, streams that are not divided.

// asyncCheckpoint saves while training goes on (F65; scenario S27).
func asyncCheckpoint(j *job, s state) proposal {
	st := j.p.Around.Stalls
	if !st.Periodic() || 2*st.Saves < st.N || s.stall <= 0 {
		return proposal{}
	}
	return proposal{
		title: fmt.Sprintf("save checkpoints in the background: saving takes %s of the time", phrase.Percent(st.Share)), effort: fewLines,
		how:     "copy the state to host memory and write it in a thread (torch.distributed.checkpoint.async_save), or save less often",
		needs:   "host memory for a copy of the state",
		assumes: []string{fmt.Sprintf("nine tenths of the %s that a save takes are writing, not copying (interval: half to all)", phrase.Duration(st.Seconds))},
		change:  stallLess(0.9), best: stallLess(1), worst: stallLess(0.5),
	}
}

// validationLess validates every other time, or faster (F66; scenario S27).
func validationLess(j *job, s state) proposal {
	st := j.p.Around.Stalls
	if !st.Periodic() || 2*st.Validation < st.N || s.stall <= 0 {
		return proposal{}
	}
	return proposal{
		title: fmt.Sprintf("validate half as often, or give the validation loader workers: its data takes %s of the time", phrase.Percent(st.Share)), effort: oneArgument,
		how:     "validate every second time, on fewer samples, or with num_workers and persistent_workers on the validation loader as on the training one",
		assumes: []string{fmt.Sprintf("half of the %s that a validation waits for its data goes away (interval: a quarter to nine tenths)", phrase.Duration(st.Seconds))},
		change:  stallLess(0.5), best: stallLess(0.9), worst: stallLess(0.25),
	}
}

// stallLess takes a part of the stalls away.
func stallLess(part float64) func(*state) {
	return func(s *state) { s.stall *= 1 - part }
}

// fixStraggler gives the rank that holds up the others what they have (F62–F64; scenario S28).
func fixStraggler(j *job, s state) proposal {
	r := j.p.Around.Straggler
	build, ok := r.Build.Get()
	if !r.Straggles() {
		return proposal{}
	}
	p := proposal{
		title: fmt.Sprintf("bring rank %d's input to what the other ranks have", r.Rank), effort: stagingStep,
		how:     fmt.Sprintf("compare rank %d's node, mount, shards and sample sizes with those of another rank; balance samples by cost, and take its node out if its store is slower", r.Rank),
		assumes: []string{"its batches then take as long to build as those of the others (interval: half of the way)"},
	}
	if !ok || build >= 1 {
		p.unpriced = "its batches take no longer to build than those of the others, so how much of its wait goes away is not known"
		return p
	}
	like := func(part float64) func(*state) {
		return func(s *state) {
			factor := 1 - part*(1-build)
			s.wait(factor)
			s.relieve((1 - factor) * s.law.CPU)
			s.collate *= factor
		}
	}
	p.change, p.worst = like(1), like(0.5)
	return p
}

// moreShards gives every worker something to read (F48).
func moreShards(j *job, s state) proposal {
	st := j.p.Around.Stream
	if !st.Starved() || s.law.Workers >= st.Workers {
		return proposal{}
	}
	return proposal{
		title: fmt.Sprintf("at least %d shards, one for each worker", st.Workers), effort: dataJob,
		how:     fmt.Sprintf("write the dataset into a multiple of %d shards, and divide them by get_worker_info() and rank", st.Workers),
		assumes: []string{"all workers then build as fast as those that build now"},
		change:  func(s *state) { s.law.Workers = st.Workers },
	}
}

// splitStream divides a stream among the workers (F49; scenario S18). It makes no step faster: it makes epochs shorter, and true.
func splitStream(j *job, _ state) proposal {
	times := j.p.Around.Stream.Repeats()
	if times <= 1 {
		return proposal{}
	}
	return proposal{
		title: "divide the stream among the workers", effort: fewLines,
		how:      "in __iter__: worker = torch.utils.data.get_worker_info(); give every worker its own shards or every num_workers-th sample, from worker.id on",
		unpriced: fmt.Sprintf("it makes no step faster; an epoch has %.0f times its samples until it is done", times),
	}
}

// perWorkerHandles lets workers read side by side what memory already holds (F46).
func perWorkerHandles(j *job, s state) proposal {
	if !j.p.Batch.FromMemory() || !j.model.Known.Shared || s.law.Shared <= 0 || s.law.Workers < 2 {
		return proposal{}
	}
	return proposal{
		title: "a file handle for each worker, without a common lock", effort: fewLines,
		how:     "open the file in the worker (at the first __getitem__, or in worker_init_fn), not in the constructor; take no lock around reads; for HDF5 use one file per worker, or store arrays outside it",
		assumes: []string{"what serves one at a time is a lock that builds hold while they read and unpack (interval: half of the queueing stays)"},
		change:  func(s *state) { s.law.Shared = 0 },
		worst:   func(s *state) { s.law.Shared /= 2 },
	}
}

// sequentialLayout reads what is used (F44, F47): a row group of many rows for one of them is read again for every other.
func sequentialLayout(j *job, s state) proposal {
	read, ok := j.p.Batch.Read.Get()
	held, okHeld := j.p.Batch.Bytes.Get()
	if !ok || !okHeld || held <= 0 || read < 16*held || read < 1<<20 || s.law.Off <= 0 {
		return proposal{}
	}
	less := func(part float64) func(*state) {
		return func(s *state) { s.wait(1 - part*(1-held/read)) }
	}
	return proposal{
		title: "read in the order of the file, or store rows so that one can be read alone", effort: dataJob,
		how:     "shuffle row groups and a buffer of rows instead of single rows, make row groups as small as a few batches, or write fixed-size records (memory-mapped arrays, Arrow without compression)",
		assumes: []string{fmt.Sprintf("off-CPU time is reading, and all but a part of 1/%.0f of it is for rows that are thrown away (interval: half of it)", read/held)},
		change:  less(1), worst: less(0.5),
	}
}

// slowSamples shortens or moves the few builds that hold up all others (F50, F38).
func slowSamples(j *job, s state) proposal {
	if cv, ok := j.p.Batch.CV.Get(); !ok || cv < 0.5 || s.law.Workers < 2 {
		return proposal{}
	}
	even := func(part float64) func(*state) {
		return func(s *state) { s.law.Even += part * (1 - s.law.Even) }
	}
	return proposal{
		title: "shorten the slowest samples", effort: dataJob,
		how:     "cut long clips before training, decode at the size that is needed, sort samples into batches of like cost, and look for files that are read again after a failure",
		assumes: append(j.drawnBuilds(), "half of what builds differ by goes away, their mean stays (interval: none to all)"),
		change:  even(0.5), best: even(1), worst: even(0),
	}
}

// moreRAM holds the dataset in memory (F34).
func moreRAM(j *job, _ state) proposal {
	read, ok := j.p.Around.Again.Read.Get()
	disk, okDisk := j.p.Around.Again.FromDisk.Get()
	if !ok || !okDisk || read < 4096 || disk < 0.3*read {
		return proposal{}
	}
	part := disk / read
	less := func(of float64) func(*state) { return func(s *state) { s.wait(1 - of*part) } }
	return proposal{
		title: "memory for the whole dataset, or a smaller dataset", effort: hardware,
		how:     "a node with more RAM than the dataset, fewer jobs on it, smaller types (uint8, float16), or each rank its own part of the dataset",
		needs:   "memory for all of it: with half of it a new order every epoch gives 15 % hits",
		assumes: []string{fmt.Sprintf("the %s of later epochs' bytes that come from a disk then come from memory (interval: half of them)", phrase.Percent(part))},
		change:  less(1), worst: less(0.5),
	}
}

// arrayDataset keeps workers from growing (F68; scenario S30).
func arrayDataset(j *job, _ state) proposal {
	if j.p.Around.Growth.Workers == 0 {
		return proposal{}
	}
	return proposal{
		title: "keep workers from growing", effort: fewLines,
		how:      "hold sample lists as arrays (NumPy, Arrow, shared memory) instead of Python objects, bound what the dataset remembers, close what it opens",
		unpriced: "it makes no step faster; it keeps the job from running out of memory",
	}
}
