package verdict

import "slices"

// The names of verdicts in reports. Other programs read them: add freely, rename never.
const (
	TooFewWorkers          = "too-few-workers"
	CPUCapped              = "cpu-capped"
	ThreadOversubscription = "thread-oversubscription"
	CPUTransform           = "cpu-transform"
	StorageLatency         = "storage-latency"
	StorageBandwidth       = "storage-bandwidth"
	SerialRead             = "serial-read"
	ReadAmplification      = "read-amplification"
	ColdCache              = "cold-cache"
	CacheThrash            = "cache-thrash"
	StartOfEpoch           = "epoch-start"
	StarvedWorkers         = "starved-workers"
	DuplicateData          = "duplicate-data"
	SlowTail               = "slow-tail"
	HandOff                = "hand-off"
	MainProcess            = "main-process"
	Copy                   = "copy"
	Sync                   = "sync"
	LaunchBound            = "launch-bound"
	ComputeBound           = "compute-bound"
	PeriodicStall          = "periodic-stall"
	RankStraggler          = "rank-straggler"
	MemoryGrowth           = "memory-growth"
	SHM                    = "shm"
	IdleAllocated          = "idle-allocated"
	OrphanContext          = "orphan-context"
	ClockThrottle          = "clock-throttle"
	PCIeLink               = "pcie-link"
	MetricUntrusted        = "metric-untrusted"
	NoStepsSeen            = "no-steps-seen"
	HookNotLoaded          = "hook-not-loaded"
	LoaderNotSeen          = "loader-not-seen"
	NoSteadyState          = "no-steady-state"
	Healthy                = "healthy"

	// DataWait is said where the step waits for data and no signature says why.
	DataWait = "data-wait"
)

// Given returns the names that some report has; the others are fixed, and nothing gives them yet.
func Given() []string {
	given := slices.Clone(blindTo)
	for _, s := range signatures {
		given = append(given, s.id)
	}
	return given
}

// IDs returns every name a report may give a verdict, judged by this package or not.
func IDs() []string {
	return []string{
		TooFewWorkers, CPUCapped, ThreadOversubscription, CPUTransform, StorageLatency, StorageBandwidth, SerialRead,
		ReadAmplification, ColdCache, CacheThrash, StartOfEpoch, StarvedWorkers, DuplicateData, SlowTail, HandOff, MainProcess,
		Copy, Sync, LaunchBound, ComputeBound, PeriodicStall, RankStraggler, MemoryGrowth, SHM, IdleAllocated, OrphanContext, ClockThrottle,
		PCIeLink, MetricUntrusted, NoStepsSeen, HookNotLoaded, LoaderNotSeen, NoSteadyState, Healthy, DataWait,
	}
}
