package replay

import "math"

// Setup is one configuration of a loader and of the training loop that it feeds. Times are seconds per batch, as means: a [Tape]
// says how single batches differ. The zero Setup is a loop that does nothing.
type Setup struct {
	Workers    int  // 0 = the training thread builds
	Prefetch   int  // batches a worker is asked for ahead; below 1 counts as 1
	OutOfOrder bool // in_order=False

	Even      float64 // part of what builds differ by that is left out, 0–1
	Wait      float64 // off the CPU in a build, with nobody in its way
	Exclusive float64 // part of Wait, at its beginning: on something that serves one build at a time
	CPU       float64 // of the building thread
	Threads   float64 // that a build keeps busy while it is on the CPU; below 1 counts as 1
	Feed      float64 // between the end of a build and the batch's arrival, beside the worker's next build

	Take    float64 // of the training thread, to take over a batch that is there
	Outside float64 // of the training thread, from one next() to the following one
	Main    float64 // CPU seconds of the training process meanwhile

	// Ahead is how many batches the device may be behind the training thread: 0 where the thread waits for the device before it
	// asks for a batch, so that Outside is the device's time too. Else Device is the device's time for a batch.
	Ahead  int
	Device float64

	WorkerCores float64 // cores the workers get together; 0 = no limit
	JobCores    float64 // cores that workers and training process get together; 0 = no limit
}

// waits is how long a build is off the CPU, with nobody in its way.
func (s *Setup) waits(b *Batch) float64 { return s.Wait * (s.Even + (1-s.Even)*float64(b.Wait)) }

// burns is how long it is on the CPU.
func (s *Setup) burns(b *Batch) float64 { return s.CPU * (s.Even + (1-s.Even)*float64(b.CPU)) }

// Outcome is what a batch took, in seconds, on average.
type Outcome struct {
	Seconds float64 // from one batch to the next
	Wait    float64 // of the training thread inside next()
	Starved float64 // of the device: nothing to run
	Queued  float64 // a build, runnable but without a core
}

// nothing is the outcome of what cannot be played.
var nothing = Outcome{Seconds: math.NaN(), Wait: math.NaN(), Starved: math.NaN(), Queued: math.NaN()}

// Crowded says whether builds may hold each other up: more of them than cores, or something that serves one at a time.
func (s *Setup) Crowded() bool {
	if s.Workers == 0 {
		return false
	}
	want := float64(s.Workers) * max(s.Threads, 1)
	short := s.WorkerCores > 0 && want > s.WorkerCores || s.JobCores > 0 && want+s.load() > s.JobCores
	return short && s.CPU > 0 || s.Exclusive > 0 && s.Workers > 1
}

// sane says whether it is a configuration at all.
func (s *Setup) sane() bool {
	for _, v := range [...]float64{s.Wait, 1 - s.Even, s.Even, s.Exclusive, s.CPU, s.Threads, s.Feed, s.Take, s.Outside, s.Main, s.Device, s.WorkerCores, s.JobCores} {
		if !(v >= 0 && v <= longest) {
			return false
		}
	}
	return s.Workers >= 0 && s.Prefetch >= 0 && s.Ahead >= 0 && s.Ahead <= MostQueued &&
		s.Workers <= MostWorkers && s.Workers*min(s.Prefetch, MostQueued) <= MostQueued
}

// What is replayed at most: a recording may claim anything, and a replay takes time in proportion.
const (
	MostWorkers = 256
	MostQueued  = 1 << 12 // batches asked for ahead
	longest     = 1e12    // seconds that no part of a batch takes
)

// load is how many cores the training process keeps busy between two calls of next().
func (s *Setup) load() float64 {
	if s.Outside <= 0 {
		return 0
	}
	return min(1, s.Main/s.Outside)
}

// share is how much of a CPU second each of so many builds gets in a second. The training process keeps the cores that it needs, up
// to half of them: it may spin for its device as well as compute, so it is not held up.
func (s *Setup) share(builds int, load float64) float64 {
	if builds == 0 {
		return 1
	}
	want := float64(builds) * max(s.Threads, 1)
	rate := 1.0
	if s.WorkerCores > 0 {
		rate = min(rate, s.WorkerCores/want)
	}
	if s.JobCores > 0 {
		rate = min(rate, max(s.JobCores-load, s.JobCores/2)/want)
	}
	return rate
}
