package live

import (
	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/probe/unit"
)

// Snapshot is what a Node knows at one moment. It shares nothing with the Node, so a scrape may read it while the Node goes on.
// Everything is in a fixed order, and every counter only ever grows while its row is there.
type Snapshot struct {
	At        uint64 // ns, CLOCK_MONOTONIC
	GPUs      []GPU
	Tenancies []Tenancy
	Holders   []Holder
	Ranks     []Rank
	Jobs      []Job
	Machine   Machine
}

// Tenant is whose time is counted. All empty: nobody's that is known by name.
type Tenant struct {
	Job       string // of the hook's DATAWAIT_JOB, else the scheduler's, else the script
	Namespace string // Kubernetes, "" elsewhere
	Pod       string // Kubernetes, "" elsewhere
}

// Shared is the Job of a Tenancy whose GPU several tenants hold at once: one GPU has one series set.
const Shared = "(shared)"

// GPU is one device of this machine, or one MIG slice.
type GPU struct {
	UUID, Name, Source string
	Grade              string // A, B or C
	Emulated           bool
	Index              unit.Maybe[int64]
	Window             uint64           // ns, end of the newest counter window; 0 = none came
	Assigned           unit.Maybe[bool] // to a job, by a scheduler or by processes that hold it
}

// Tenancy is the time one tenant had one GPU, over all its episodes.
type Tenancy struct {
	GPU      string // UUID
	Tenant   Tenant
	Since    uint64 // ns, CLOCK_MONOTONIC: when its counters were 0. Another row of that name, after this one was forgotten, has another
	Running  bool   // it has the GPU now
	Carried  bool   // it continues what an earlier agent counted
	Books    ledger.Totals
	Activity Activity
}

// Activity sums what counter windows showed while the GPU was allocated to the tenant, in seconds. A sum counts only windows in
// which its counter was read, so each has a denominator of its own: the time that was seen.
type Activity struct {
	Untrusted                float64 // windows whose counters contradict one another; they are in no other sum
	Resident, ResidentSeen   float64
	SMActive, SMSeen         float64
	TensorActive, TensorSeen float64
	Held, HeldSeen           float64
}

// Holder says that a tenant has a GPU now. A shared one has several.
type Holder struct {
	GPU    string
	Tenant Tenant
}

// Rank is one training process, over all its restarts. Times are ns.
type Rank struct {
	Tenant    Tenant
	Rank      unit.Maybe[int]
	WorldSize unit.Maybe[int]
	GPU       string // UUID, "" if not known
	Since     uint64 // ns, CLOCK_MONOTONIC, as of a Tenancy
	Running   bool
	Carried   bool   // it continues what an earlier agent counted
	LastMoved uint64 // ns, CLOCK_MONOTONIC: when a step or a fetch was last seen; 0 = never

	Steps   uint64
	Fetches uint64 // outside validation
	Epochs  uint64 // first fetches of the training loaders

	Training    uint64 // the training loop outside epoch starts: waits and what lies between them
	Wait        uint64 // of Training: inside next()
	WaitClocked uint64 // of Wait: a device clock told how much of it was exposed
	Exposed     uint64 // of WaitClocked: the device had nothing to run
	HandOff     uint64 // of HandOffSeen: the batch had been built and sent already
	HandOffSeen uint64 // of Wait: it is known when the batch was sent
	EpochStart  uint64 // making iterators, and their first next()
	Validation  uint64 // inside next() of validation loops
	Checkpoint  uint64 // saving

	Workers Workers
	Hook    Hook
}

// Workers is what the worker processes of a rank did. Times are ns.
type Workers struct {
	Running   int    // rings of living worker processes
	Batches   uint64 // built
	Build     uint64 // wall time
	CPU       uint64 // of the building threads
	CPUSeen   uint64 // of Build: CPU was read
	RunQueue  uint64 // runnable and not running
	QueueSeen uint64 // of Build: the run queue was read
	OffCPU    uint64 // of the Build in which both were read: neither running nor runnable
	Files     uint64 // opened
	Requests  uint64 // HTTP requests seen
	IOSeen    uint64 // batches of which files and requests were counted
	ReadBytes uint64 // by read calls: a lower bound, for recv and mmap do not count
	ReadSeen  uint64 // batches of which bytes were counted
}

// Hook is how the hook in the processes of a rank does.
type Hook struct {
	Records  uint64 // taken
	Lost     uint64 // overwritten before they were read, or torn
	Errors   uint64 // caught inside the hook
	Disabled bool   // it switched itself off in some running process
	OwnTime  uint64 // ns it took in the fetches in which it looked
	Looks    uint64 // how many those are
}

// Job is what is known of a job as a whole on this machine.
type Job struct {
	Tenant        Tenant
	Since         uint64 // ns, CLOCK_MONOTONIC, as of a Tenancy
	Running       bool
	Carried       bool // it continues what an earlier agent counted
	StepTimes     Durations
	UsableCores   unit.Maybe[float64]
	ThrottledTime unit.Maybe[uint64] // ns its control group was kept from running
}

// Machine is the newest sample of the machine.
type Machine struct {
	Cores, BusyCores, RunnableTasks unit.Maybe[float64]
	MemoryAvailable                 unit.Maybe[uint64] // bytes
}
