// Package load folds recordings into what the analysis reads: one [Job] with the counter windows of every GPU and host, and
// per training process a timeline, and the batches its workers built.
//
// A long job is more than memory should hold. So [Survey] goes through all of it and keeps what is rare, and what training processes
// did step by step is read by [Rank.Load], for as many of them at a time as the caller likes, until [Rank.Unload].
//
// It decides which process is a rank, which worker built for which loader and which records cannot be true. It draws no
// conclusion from any of them. Times stay nanoseconds of their node's monotonic clock; [Node.Shift] leads to a common one.
// Records that contradict themselves (an end before its begin, a time no clock can show) are left out and counted in
// [Reading]: a recording may begin and end in the middle of everything, and may be damaged or hostile.
//
// Read [Job] and [Rank] first.
package load

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/datawait/datawait/analysis/stage"
	"github.com/datawait/datawait/probe/recording"
)

// Unknown is a time, duration or count that was not recorded. Every known one is ≥ 0.
const Unknown int64 = -1

// Job is everything that was recorded of one job.
type Job struct {
	Nodes  []*Node
	Ranks  []*Rank // by number, then restart, then begin
	Others []*Rank // main processes that are no rank: children of a rank which inherited its environment

	WorkerErrors []recording.HookErrorNote // of the hook in workers
	Reading      Reading                   // of the survey; that of every Rank.Load comes to it
}

// Reading is what reading came to.
type Reading struct {
	Damage  recording.Damage
	Records uint64 // of any kind
	Bad     uint64 // left out because they contradict themselves
	Orphans uint64 // batches of workers that no loader claims
}

// Add adds what another reading came to.
func (r *Reading) Add(o Reading) {
	r.Damage = r.Damage.Add(o.Damage)
	r.Records += o.Records
	r.Bad += o.Bad
	r.Orphans += o.Orphans
}

// Node is one host's part of the recording.
type Node struct {
	Index    int
	Host     string
	Manifest recording.Manifest
	Begin    int64 // first and last time seen, or told by the manifest; Unknown in an empty recording
	End      int64
	Shift    int64 // add it to a time of this node to get the common clock
	Clocked  bool  // it read its wall clock, so that Shift is measured
	Drift    int64 // ns by which this node's clock pairs disagree with one another; Unknown with fewer than two
	GPUs     []*GPU
	Usage    Host
	Notes    []recording.Notes // of its agent streams

	streams   []recording.Stream
	feeds     []feed // that tell of its GPUs
	gathering sync.Mutex
	gathered  bool  // the windows of all GPUs were read
	failed    error // … or could not be
	room      *windowRoom
}

// GPU is one device of a node, or a MIG slice of one.
type GPU struct {
	Node        *Node
	Note        recording.GPUNote
	Emulated    bool                       // some window of it is
	Uncounted   bool                       // nothing counts it: its windows are what the driver tells of kernels being there
	Windows     []Window                   // ordered and disjoint, from Load to Unload
	States      Series                     // fields State…, weights are seconds; read by the survey
	Links       map[recording.Link]float64 // seconds at work, by PCIe link
	Looks       []Look                     // who had a context, in order
	PIDs        map[uint32]bool            // processes that had one
	Further     Further                    // counters of which only the mean is kept; from Load on
	Events      []Event                    // in order
	Allocations []recording.AllocationNote // in order

	windows  int // surveyed
	states   int // surveyed
	look     Look
	gathered bool // its windows were read with those of the node's other GPUs
}

// Further are means over all windows that can be trusted: each is Σ value × seconds and Σ seconds.
type Further struct{ Occupancy, PCIeOut, NVLinkIn, NVLinkOut [2]float64 }

// Window is one counter window; NaN is a counter that was not read.
type Window struct {
	Begin, End                        int64
	SM, Resident, Tensor, DRAM, Copy  float32 // 0–1
	FP32                              float32 // 0–1
	PCIeIn                            float32 // bytes/s, host to device
	Power, Clock, Memory              float32 // W, Hz, bytes
	Emulated, Untrusted, Known, Holds bool    // Known: it is known whether a process Holds the device

	impossible bool // for itself
	engine     bool // Resident is the graphics engine's counter, of the same source as SM
	driver     bool // Resident is what the driver tells, not the source of SM
}

// Rank is one training process.
type Rank struct {
	Node        *Node
	Declaration recording.Declaration
	Number      int // declared, else by order of appearance
	Begin, End  int64
	Iterators   []Iterator
	Marks       []Mark
	Blocks      []recording.Block
	Notes       recording.Notes
	Parked      bool   // it waited to be ended
	Finished    bool   // it ended by itself, normally
	Gone        int64  // when it was found to have ended, or was seen last; Unknown if nobody looked
	Outlived    bool   // it still ran when the observation of it ended
	Replaced    bool   // its process went on as another program (execve), which is the next rank of this number
	TestBegan   int64  // first sign of the cached-data test; Unknown if there was none
	Lost        uint64 // records overwritten before they were read
	Gaps        []Gap  // where records are missing, in order

	// Known once it was loaded.
	Loaders      []*Loader // ordered by ID
	Fetched      int       // how many Fetches there are
	Exposures    int       // device-clock records that found their fetch
	Emulated     bool      // its device clock is the emulated one
	FetchCPU     int64     // Σ thread CPU inside next(), over the FetchClocked fetches that know it
	FetchClocked int

	// Known until it is unloaded.
	Fetches []Fetch // ordered by Enter
	Steps   []Step  // ordered by End; those of the training thread and of the optimizer that is counted

	sources []source // its streams
	fetches int      // surveyed
	steps   int      // surveyed, of any thread
	claims  []recording.Worker
	solos   []recording.Solo
	workers []*workerStream // that built for it

	byID    map[uint16]*Loader
	cursor  int   // where the last device-clock record found its fetch
	threads tally // fetches per thread
}

// Gap is a stretch of time of which records are missing.
type Gap struct{ Begin, End int64 }

// Fetch is one next() on a loader.
type Fetch struct {
	Enter, Exit int64
	Idle        int64 // device had nothing to run, the last part of the wait; Unknown without a device clock
	Seq         uint32
	Batch       uint32 // recording.Unknown32 if not known
	Epoch       uint32
	Loader      uint16
	Block       uint8 // of the cached-data test, 0 = none
	Flags       uint8 // recording.Fetch…
}

// Wait is the time inside next().
func (f *Fetch) Wait() int64 { return f.Exit - f.Enter }

// Is reports whether any of the flags is set.
func (f *Fetch) Is(flags uint8) bool { return f.Flags&flags != 0 }

// Upstream reports a next() inside another or on another thread: time that the training thread does not wait.
func (f *Fetch) Upstream() bool { return f.Is(recording.FetchNested | recording.FetchOffThread) }

// Test reports a fetch that the cached-data test served or threw away.
func (f *Fetch) Test() bool { return f.Is(recording.FetchCached | recording.FetchDiscarded) }

// Delivered reports whether training got a batch from it.
func (f *Fetch) Delivered() bool {
	return !f.Is(recording.FetchEnd | recording.FetchError | recording.FetchDiscarded)
}

// Step is the end of one optimizer step.
type Step struct {
	End    int64
	CPU    int64  // the thread's CPU clock at End; Unknown if not read
	Number uint32 // steps so far, from 1
	Thread uint32
}

// Iterator is a loader's iterator being made.
type Iterator struct {
	Begin, End int64
	Loader     uint16
	Reset      bool // its workers were kept
	Epoch      uint32
	Workers    uint32
	Length     uint32 // recording.Unknown32 if unsized
	Prefetch   uint32 // recording.Unknown32 if none
}

// Mark is something with a name.
type Mark struct {
	Begin, End int64
	Code       recording.MarkCode
	Value      uint64
}

// Loader is one loader object of a rank.
type Loader struct {
	ID      uint16
	Note    recording.LoaderNote // zero where the recording lacks it
	Noted   bool
	Builds  []*Builds     // one per process that built for it
	Stacks  []*stage.Tree // where those that were looked at spent their time
	Solos   []recording.Solo
	Sums    recording.SumsNote // totals that survive an overrun
	Summed  bool
	Fetches int // delivered to training or validation, as recorded

	Iterators []int // which of the rank's iterators are its own

	workers int
	looked  map[identity]int // which of Stacks is that of a worker
}

// Builds is what one process built for one loader.
type Builds struct {
	PID     int
	Worker  int  // 0 … W−1; −1 where it has no number
	Own     bool // the training process built them itself
	Epoch   uint32
	Threads int     // it may use; 0 = unknown
	Batches []Batch // until the rank is unloaded
	Costs   Series  // fields Cost…, one weight per batch
	Reads   reads   // a sample of what it read

	built uint32 // seq of the fetch whose costs were opened last, without workers
}

// Batch is one batch being built.
type Batch struct {
	Begin, End int64
	Sent       int64 // Unknown if not seen
	Index      uint32
	Epoch      uint32
}

// Fields of Builds.Costs: means per batch.
const (
	CostWall       = iota // seconds
	CostCPU               // seconds, of the building thread
	CostProcessCPU        // seconds
	CostRunQueue          // seconds
	CostCollate           // seconds
	CostBytes             // of its tensors
	CostFiles
	CostRequests
	CostTensors
	CostSamples
	CostRChar     // bytes through read()
	CostReadBytes // bytes from a device
	CostSleeps    // times that a thread of the process went to sleep: voluntary context switches
	CostMeasured  // seconds, wall: of those batches whose CPU time is known
	CostFields    // how many there are
)

var nan = float32(math.NaN())

// Workers returns how many processes were seen to build for the loader beside training: by their number, for those made anew every
// epoch have it again, else how many of them were at work at one time.
func (l *Loader) Workers() int { return l.workers }

func (l *Loader) countWorkers() {
	numbers := map[int]bool{}
	var changes []change
	for _, b := range l.Builds {
		switch {
		case b.Own || len(b.Batches) == 0 && b.Worker < 0:
		case b.Worker >= 0:
			numbers[b.Worker] = true
		default:
			first, last := b.span()
			changes = append(changes, change{first, 1}, change{last, -1})
		}
	}
	l.workers = len(numbers) + most(changes)
}

// span returns when a process began to build and when it was done.
func (b *Builds) span() (first, last int64) {
	first, last = b.Batches[0].Begin, b.Batches[0].End
	for _, batch := range b.Batches {
		first, last = min(first, batch.Begin), max(last, batch.End)
	}
	return first, last
}

// change is one process more or less at a time.
type change struct {
	at int64
	by int
}

// most returns how many there were at one time, at most.
func most(changes []change) (most int) {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	n := 0
	for _, c := range changes {
		n += c.by
		most = max(most, n)
	}
	return most
}
