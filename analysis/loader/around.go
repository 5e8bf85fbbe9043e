package loader

// Around is what lies around the steady steps of the rank that decides: what comes now and then, what comes once, and how the rank
// compares with the others. The zero Around is a job in which none of it was seen.
type Around struct {
	Stalls    Stalls
	Straggler Straggler
	Stream    Stream
	Cold      Cold
	Again     Again
	Growth    Growth
	Shared    SharedMemory
}

// Stalls are steps that took far longer outside next() than the others.
type Stalls struct {
	N          int
	Seconds    float64 // each, beyond a usual step, on average
	Every      float64 // steps from one to the next, median
	Regular    bool    // most of those distances are the same, or nearly
	PerStep    float64 // seconds, spread over all steps
	Share      float64 // of live wall time
	Validation int     // of N: a loader that does not train was read meanwhile
	Saves      int     // of N: something was saved meanwhile
}

// Straggler is a rank that waits longer than the others, which wait for it.
type Straggler struct {
	Rank   int
	Ranks  int
	Wait   float64 // of its step
	Others float64 // the same of the other ranks, median; their steps are as long
	Build  Num     // what a batch of theirs takes to build, of what one of its own takes
}

// Stream is what is particular to a dataset that workers iterate over.
type Stream struct {
	Workers    int // W
	Delivering int // workers that ever gave a batch; 0 = not known
	Declared   int // batches that an epoch has by its declared length; 0 = not declared
	Delivered  int // batches that whole epochs had, on average
}

// Cold is a first epoch whose batches took far longer to build than later ones. Steady steps leave it out.
type Cold struct {
	Times   float64 // as long as later ones
	Seconds float64 // more than later epochs take, in all
	Share   float64 // of live wall time
}

// Again is what later epochs read, though an epoch before read it too.
type Again struct {
	Read     Num // bytes per batch
	FromDisk Num // of them, from a block device
}

// Growth is memory that workers take and do not give back.
type Growth struct {
	Workers  int
	PerBatch float64 // bytes
	Rate     float64 // bytes per second, all workers
	Left     Num     // bytes that are still to be had
}

// Starved reports workers that have nothing to read: the others build all batches.
func (s Stream) Starved() bool { return s.Delivering > 0 && s.Delivering < s.Workers }

// atWork is W, less the workers that have nothing to read.
func (p Parameters) atWork() int {
	if p.Around.Stream.Starved() {
		return min(p.Args.Workers, p.Around.Stream.Delivering)
	}
	return p.Args.Workers
}

// Periodic reports stalls that come at a regular distance. Where what happens meanwhile was seen nearly every time, two of them will do; of
// no known cause, there must be enough of them, far enough apart, that a busy machine does not look like it.
func (s Stalls) Periodic() bool {
	if known := max(s.Validation, s.Saves); 4*known >= 3*s.N {
		return s.N == 2 || s.N > 2 && s.Regular
	}
	return s.N >= 5 && s.Regular && s.Every >= 5
}

// behind is the part of its step that a rank must wait longer than the others to be called a straggler.
const behind = 0.1

// Straggles reports a rank that the others wait for, because of its input.
func (s Straggler) Straggles() bool { return s.Ranks > 1 && s.Wait-s.Others >= behind }

// Repeats is how many times an epoch has every sample: 1 unless its workers do not divide the stream among them. Rounding up in every worker
// makes an epoch of a divided stream up to W batches longer.
func (s Stream) Repeats() float64 {
	if s.Workers < 2 || s.Declared == 0 || s.Delivered < 2*s.Declared-1 || s.Delivered < s.Declared+2*s.Workers {
		return 1
	}
	return float64(s.Delivered) / float64(s.Declared)
}

// FromMemory reports reads that no block device and no request served: the page cache, or a file system in user space.
func (b BatchCosts) FromMemory() bool {
	read, ok := b.Read.Get()
	disk, okDisk := b.FromDisk.Get()
	return ok && okDisk && read >= 4096 && disk <= 0.05*read && b.Requests.Or(0) < 0.5
}
