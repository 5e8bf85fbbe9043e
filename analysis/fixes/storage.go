package fixes

import (
	"fmt"
	"math"
	"strings"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// localRead is what one reader gets from a local NVMe drive or the page cache, bytes per second. Drives made since 2018 read
// 2–7 GB/s; the low end is taken.
const localRead = 2e9

// usualEpochs is how long training is taken to run where a cache fills as it goes.
const usualEpochs = 10

// nvmeCache keeps the raw files on a local drive from the second epoch on. It takes reading away and nothing else: where
// decoding fills the cores it is worth 0 % (the public Uber case), and where the device is the limit too (F73).
func nvmeCache(j *job, s state) proposal {
	p := proposal{
		title: "cache the raw files on local NVMe", effort: stagingStep, unseen: !j.p.Batch.Reads(),
		how:     "copy the files to a local drive before training, or turn on the file cache of the FUSE mount; point the dataset there",
		needs:   "room for the dataset on every node's local drive; a file cache helps from the second epoch on, a copy made before training from the first",
		assumes: []string{"off-CPU time of a build is waiting for storage"},
	}
	if j.p.Batch.FromMemory() && s.law.Shared > 0 {
		p.unseen = true // the bytes come from memory: it is a lock, unless a file system in user space brings them
	}
	if j.p.Batch.Requests.Or(0) >= 0.5 {
		epochs := max(usualEpochs, j.p.Epoch.Epochs)
		p.idle = 1 / float64(epochs)
		p.how = "let the dataset look into a local folder first, and keep there what it fetches"
		p.needs = "room for the dataset on every node's local drive; the first epoch fetches as today"
		p.assumes = append(p.assumes, fmt.Sprintf("training runs for %d epochs, of which the first gains nothing", epochs))
	}
	if set, ok := j.p.Batch.Set.Get(); ok {
		p.needs = strings.Replace(p.needs, "room for the dataset", fmt.Sprintf("room for %.3g GB", set/1e9), 1)
	}
	left := math.Max(0, j.p.Batch.Read.Or(0)) / localRead
	if left > 0.01*s.law.Off {
		p.assumes = append(p.assumes, fmt.Sprintf("a local drive gives a reader %.0f GB/s", localRead/1e9))
	}
	remains := 0.25
	if !j.p.Batch.Reads() {
		remains = 1 // it may as well be a lock, or another service
		p.assumes[0] += ", although no file, request or byte was seen (interval: none of it)"
	}
	p.change = func(s *state) { s.readLocally(left) }
	p.worst = func(s *state) { s.readLocally(math.Max(left, remains*s.law.Off)) }
	return p
}

// readLocally leaves this much waiting per batch.
func (s *state) readLocally(left float64) {
	s.law.Off = math.Min(s.law.Off, left)
	s.law.Shared = math.Min(s.law.Shared, s.law.Off)
}

// parallelFilesystem lets reads run side by side: it takes the exclusive part away, the latency stays (F28, F30).
func parallelFilesystem(j *job, s state) proposal {
	p := proposal{
		title: "a store that serves all workers side by side", effort: hardware, unseen: !j.p.Batch.Reads(),
		how:     "move the dataset to a parallel file system (Lustre, Weka, FSx) or an object store with enough bandwidth for all ranks",
		needs:   "a store whose bandwidth is at least bytes per batch × batches per second × ranks",
		assumes: []string{"a read takes as long as it does alone, whoever else reads (interval: half of the queueing stays)"},
	}
	switch {
	case !j.model.Known.Shared && s.law.Off > s.law.CPU && j.waiting(s):
		p.unpriced = "whether reads hold each other up was not measured: no batch was built alone"
		return p
	case !j.model.Known.Shared || s.law.Shared > 0 || !j.waiting(s):
		p.change = func(s *state) { s.law.Shared = 0 }
		p.worst = func(s *state) { s.law.Shared /= 2 }
		return p
	}
	p.zero = "reads do not hold each other up: " + j.binds(s)
	return p
}

// shardFiles packs small files: what each file or request costs by itself goes away, but one per batch (F51 is the negative
// control: where reading is not the limit the format does not matter).
func shardFiles(j *job, s state) proposal {
	n := math.Max(j.p.Batch.Files.Or(0), j.p.Batch.Requests.Or(0))
	p := proposal{title: "pack small files into shards", effort: dataJob}
	if n < 0.5 {
		if s.law.Off > s.law.CPU && j.waiting(s) && !j.p.Batch.Reads() {
			p.how = "pack the files into tar or record shards"
			p.unpriced = "neither files nor requests were seen, so what one costs is not known"
			return p
		}
		return proposal{}
	}
	if n < 4 {
		return proposal{}
	}
	p.how = "write the samples into shards of 100 MB or more (tar for webdataset, MDS, TFRecord or Arrow) and read them in order, shuffling shards and a buffer"
	p.needs = "one pass over the dataset per data version; random access becomes access by shard"
	lost := j.perRead(s, n)
	p.assumes = []string{lost.because}
	p.change = func(s *state) { j.fewerReads(s, n, lost.usual) }
	p.best = func(s *state) { j.fewerReads(s, n, lost.most); s.law.Shared = math.Min(s.law.Shared, s.law.Off) }
	p.worst = func(s *state) { j.fewerReads(s, n, lost.least) }
	return p
}

// perReadShare is the part of the waiting that reads cost by themselves, apart from their bytes, and how that is known.
type perReadShare struct {
	least, usual, most float64
	because            string
}

// perRead takes it from the line through the batches where there is one: sizes have to differ for that. Else most of the waiting is
// taken to be for opening, as it is with small files.
func (j *job) perRead(s state, n float64) perReadShare {
	cost, ok := j.p.Batch.PerReading.Get()
	if !ok || s.law.Off <= 0 {
		return perReadShare{0.5, 0.8, 1, fmt.Sprintf("off-CPU time goes to opening files: %s each, %.0f a batch; four fifths of all but one go away (interval: half to all)",
			phrase.Duration(s.law.Off/n), n)}
	}
	part := func(seconds float64) float64 { return math.Max(0, math.Min(1, seconds*n/s.law.Off)) }
	return perReadShare{part(cost.Low), part(cost.Value), part(cost.High), fmt.Sprintf("a file costs %s whatever its size (as the waiting of batches grows with their bytes), %.0f a batch; that of all but one goes away",
		phrase.Duration(cost.Value), n)}
}

// slowLink is the rate, bytes per second, below which an exclusive store is taken to be busy with requests, not with bytes.
const slowLink = 20e6

// fewerReads takes away a part of what n reads cost beyond one. Time on an exclusive store goes with it only where so few bytes
// move that it must be the requests that fill it.
func (j *job) fewerReads(s *state, n, part float64) {
	factor := 1 - part*(1-1/n)
	shared := s.law.Shared
	s.wait(factor)
	read, ok := j.p.Batch.Read.Get()
	if shared > 0 && (!ok || !j.p.Batch.Reads() || read/shared >= slowLink) {
		s.law.Shared = shared
		s.law.Off = math.Max(s.law.Off, shared)
	}
}

// waiting says whether a step is longer than its own work by more than is worth mentioning.
func (j *job) waiting(s state) bool {
	step := j.stepIn(s)
	return step > 0 && 1-(s.law.Compute+s.law.Fetches*s.law.Handoff)/step > Worth
}
