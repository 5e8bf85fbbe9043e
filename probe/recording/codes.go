package recording

// Flags of a Fetch.
const (
	FetchNested    = 1   // inside another next(): upstream time, not training wait
	FetchOffThread = 2   // not on the training thread: upstream
	FetchCached    = 4   // served from memory by the cached-data test
	FetchEnd       = 8   // raised StopIteration, delivered nothing
	FetchDiscarded = 16  // pulled by the test, not handed to training
	FetchFirst     = 32  // first of its iterator
	FetchError     = 64  // raised something else
	FetchNoGrad    = 128 // autograd was off: validation
)

// Other flags.
const (
	IteratorReset = 1 // persistent workers were kept
	BlockVoid     = 1 // do not use; Reason says why
	BlockDevice   = 2 // the device was synchronised at both ends
	ExposedEmu    = 1 // emulated device
	BatchRaised   = 1 // the build raised
	CostSeveral   = 1 // covers all batches since the previous Cost
	ReadRequest   = 1 // an object was asked for; else a file was opened
	GPUEmulated   = 1 // emulated device
	GPUUntrusted  = 2 // counters contradict each other
	GPUHeldKnown  = 4 // whether a process holds it is known
	GPUHeld       = 8 // some process holds it
	SourceSuccess = 1 // the probe worked
)

// MarkCode names what a Mark marks.
type MarkCode uint16

const (
	MarkValidation   MarkCode = 1 // value = loader
	MarkCheckpoint   MarkCode = 2
	MarkHookDisabled MarkCode = 3 // value = reason code of a hook-error note
	MarkTestBegan    MarkCode = 4 // from here a save ends the run
	MarkSaveGuard    MarkCode = 5 // the run is stopped before a save or deletion
	MarkParked       MarkCode = 6
	MarkEnded        MarkCode = 7 // the process ended normally
	MarkCUDA         MarkCode = 8 // CUDA first seen initialised
)

// Leg is one arm of the cached-data test.
type Leg uint16

const (
	LegLive Leg = iota
	LegHostCached
	LegHostCachedBusy
	LegDeviceCached
	LegReread
	LegTrial // another loader is tried
)

// Legs lists every leg that compares the loader with memory, in the order of a plan.
var Legs = []Leg{LegLive, LegHostCached, LegHostCachedBusy, LegDeviceCached, LegReread}

// String returns the leg's name in reports and flags.
func (l Leg) String() string {
	names := [...]string{"live", "host-cached", "host-cached-busy", "device-cached", "reread", "trial"}
	if int(l) < len(names) {
		return names[l]
	}
	return "unknown"
}

// Reasons a block of the test is void.
const (
	VoidEpochEnded = 1 + iota
	VoidTooFewSteps
	VoidTooLarge
	VoidException
	VoidEndedEarly
	VoidNeverIdle
	VoidNoBatch
	VoidOtherLoop
	VoidSaved
)

// ProcessRole tells the processes of a job apart.
type ProcessRole uint16

const (
	RoleMain   ProcessRole = 1
	RoleWorker ProcessRole = 2
	RoleChild  ProcessRole = 3
)

// Ref of a Pressure.
const (
	PressureOfMachine = 0
	PressureOfJob     = 1 // of the job's control group
)

// Codes of a GPUEvent.
const (
	GPUEventXid      = 1 // the driver reported an error; value = its Xid number
	GPUEventGone     = 2 // the GPU is no longer there
	GPUEventBack     = 3 // it is there again
	GPUEventRestated = 4 // its counters began anew: the source was connected again
)
