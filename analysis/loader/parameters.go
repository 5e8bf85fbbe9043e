package loader

import (
	"github.com/datawait/datawait/analysis/loader/replay"
	"github.com/datawait/datawait/analysis/stage"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Est is an estimate that may be missing.
type Est = unit.Maybe[stat.Estimate]

// Num is a number that may be missing.
type Num = unit.Maybe[float64]

// Parameters is what was measured of one rank and its training loader in steady state: epoch starts and the first 2·W fetches
// of each loader apart, means as sums over sums. Times are seconds, ratios 0–1. What was not measured is left unknown; no field
// has a stand-in value. The zero Parameters is a loader of which nothing is known.
type Parameters struct {
	Step   StepTimes
	Batch  BatchCosts
	Solo   SoloCosts
	Args   Arguments
	Host   Cores
	Epoch  EpochStart
	Device Device
	Around Around

	// Tape is single batches of those steps, in the order of delivery, stretches of neighbours one behind the other. Their parts are
	// in any unit: what counts is how batches differ. Empty where none were kept; CV then says how much builds vary.
	Tape replay.Tape

	// Inside is where a batch's time goes by kind of work; nil where nobody looked, or the counters contradict it.
	Inside *stage.Split

	// Peers are other ranks that this one waits for at the end of every step. Those with the longest waits are enough.
	Peers []Peer

	GPUs int // GPUs the whole job holds: what a saved share of time is multiplied by; 0 = unknown
}

// Peer is the loader of another rank.
type Peer struct {
	Tape  replay.Tape
	Build float64 // its mean build ÷ that of this rank
}

// StepTimes is one step as the training thread and the cached-data test saw it, per step unless a field says otherwise.
type StepTimes struct {
	Seconds Est // T: live, begin of one step to begin of the next
	Wait    Est // inside next() of the training loader; at W = 0 this is the build itself
	Exposed Est // the part of Wait in which the device had nothing to run

	// Live is a step of the cached-data test's live blocks, at both ends of which the device was waited for. Where launches run ahead it
	// is longer than Seconds by what the device has still to do when a step ends; unknown when no test ran.
	Live Est
	// Cached is a step whose batches are already in host memory (leg host-cached): the ceiling of every data fix.
	// Unknown when no test ran; the model then falls back on Seconds − Exposed, else Seconds − Wait, with a lower grade.
	Cached Est
	// Copy is what the step would win if batches were on the device already (host-cached − device-cached, or the
	// device's own account of exposed copies). It is part of Cached.
	Copy Est
	// Interference is what busy workers add to a step beyond Cached (host-cached-busy − host-cached).
	Interference Num

	MainCPU Num // CPU of the training thread outside next()
	Fetches Num // fetches per step; 1 unless batches are accumulated

	// Handoff is the mean time of next() after its batch was built, per fetch; HandoffFloor is what that costs for a trivial batch on
	// this host (calibrated, 1.1–1.5 ms on two cores with PyTorch 1.13). HandoffReady is the mean over batches that were there,
	// having been sent long before they were asked for; HandoffLate that over those that were waited for, from when they were sent.
	Handoff      Num
	HandoffFloor Num
	HandoffReady Num
	HandoffLate  Num
}

// BatchCosts is one batch as its worker built it while the others were building too, per batch.
// Wall = CPU + RunQueue + OffCPU where all are known.
type BatchCosts struct {
	Wall       Est // L: fetch of the samples to the end of collate
	CPU        Est // of the building thread
	ProcessCPU Num // of the whole worker process, helper threads included; ≥ CPU
	RunQueue   Num // runnable but not running, cgroup throttling included
	OffCPU     Est // waiting for storage, locks or helper threads
	Collate    Num // wall, inside collate_fn; part of Wall
	Sleeps     Num // times that a thread of the worker went to sleep
	CV         Num // standard deviation ÷ mean of Wall, over batches

	Samples  Num // samples in it
	Files    Num // files opened
	Requests Num // HTTP requests
	Read     Num // bytes read, however they were seen
	FromDisk Num // bytes that came from a block device; 0 with Read > 0 means the page cache served them
	Bytes    Num // of its finished tensors
	Tensors  Num

	PerReading Est // off-CPU time that opening a file costs by itself, its bytes apart
	ReadTimes  Num // how often a file is read within an epoch
	Set        Num // bytes of all files
}

// Reads says whether anything shows that builds read from storage. A file or a few bytes now and then (imports, locks, pipes) are no
// such thing.
func (b BatchCosts) Reads() bool {
	return b.Files.Or(0) >= 0.5 || b.Requests.Or(0) >= 0.5 || b.Read.Or(0) >= 4096
}

// SoloCosts is one batch built while all other workers of the rank were idle: the cached-data test asks for such builds.
// All unknown when the test did not run, and at W ≤ 1 where every build is alone.
type SoloCosts struct {
	Wall   Est
	OffCPU Est
}

// Arguments is what the loader was made with. An argument that was not seen is unknown.
type Arguments struct {
	Workers     int              // W: worker processes seen; 0 = the training process builds batches itself …
	Unseen      bool             // … or, with this, nobody said who builds and no builder was seen
	Prefetch    unit.Maybe[int]  // P: batches per worker
	Persistent  unit.Maybe[bool] // persistent_workers
	PinMemory   unit.Maybe[bool]
	InOrder     unit.Maybe[bool]
	Iterable    unit.Maybe[bool]   // the dataset is an IterableDataset
	StartMethod unit.Maybe[string] // fork, spawn or forkserver
	BatchSize   unit.Maybe[int]
	// Watched says that the loader is not PyTorch's (datawait.watch): its arguments have other names.
	Watched bool
}

// Cores is the processor time this rank's workers can get, and what else runs there. All in cores.
type Cores struct {
	// Usable is K: the least of cgroup quota, cpuset and the affinity of the workers, over all ranks of this host that share them.
	Usable   Num
	Affinity Num // cores the workers' own affinity leaves them together
	Quota    Num // cgroup cpu.max; unknown = none seen
	Cpuset   Num // cores the cgroup or the scheduler's allocation leaves the job
	Online   Num // of the host
	Busy     Num // mean, everything on the host
	Foreign  Num // mean, outside this job's processes
	// Ranks is how many ranks of the job draw on Usable. 0 counts as 1.
	Ranks int

	WorkerRunQueue   Num             // mean number of workers runnable but not running
	Throttled        Num             // periods throttled ÷ periods
	ThreadsPerWorker unit.Maybe[int] // threads a worker's libraries may use
}

// EpochStart is the gap from an iterator's creation to its first batch, and the epochs it recurs in.
type EpochStart struct {
	Seconds     Est             // mean, per epoch
	WorkerStart Num             // part of it before a worker begins its first batch: process start, imports, unpickling, worker_init_fn
	FirstBuild  Num             // part of it in the first batch itself, dataset open and shuffle-buffer fill included
	Batches     unit.Maybe[int] // batches per epoch and rank
	Epochs      int             // iterators seen
	Wall        Num             // mean wall time of an epoch, its start included
	Share       Num             // epoch starts ÷ live wall time
}

// Device is what the GPU of this rank did, as ratios of live steady time.
type Device struct {
	Resident    Num // any kernel resident: what GPU-util shows
	SMActive    Num
	SMComputing Num // SM activity while computing (unmixed)
	Tensor      Num // tensor pipes active
	FP32        Num // FP32 pipe active
	DRAM        Num // memory interface active
	Power       Num // of the power limit, while it worked
	Launches    Num // kernels per step, where a source counts them
	Emulated    bool
	Clock       Clock
	Link        Link
}

// Clock is what held the GPU's clock down while it worked, by the driver.
type Clock struct {
	GPU string // whose it is: of ranks that wait for one another, the slowest counts

	Thermal  Num // share of its working time: temperature
	Hardware Num // slowdown by the board, power brake
	PowerCap Num // the power limit
	Of       Num // mean clock ÷ highest

	// Steady steps that lie in such times against those that lie in none: how much more time they take outside next(), and how many
	// of the steps they are.
	Longer Est // 0.1 = a tenth more; may be below 0
	Steps  Num
}

// Link is the PCIe link while the GPU worked.
type Link struct {
	Generation, Lanes         int // most of the time; 0 = unknown
	MostGeneration, MostLanes int // what card and slot can do together
	Narrow                    Num // share of the working time below that
	In                        Num // bytes/s host to device, over steady steps
}
