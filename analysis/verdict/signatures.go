package verdict

// signature is one verdict that the loader's parameters can bear out.
type signature struct {
	id    string
	judge func(*subject) opinion
}

// signatures in the order that decides between equal weights: the cause that one change removes comes before the cause that
// it uncovers.
var signatures = []signature{
	{IdleAllocated, idleAllocated},
	{DuplicateData, duplicateData},
	{RankStraggler, rankStraggler},
	{StarvedWorkers, starvedWorkers},
	{ReadAmplification, readAmplification},
	{SerialRead, serialRead},
	{StorageBandwidth, storageBandwidth},
	{CPUCapped, cpuCapped},
	{ThreadOversubscription, threadOversubscription},
	{TooFewWorkers, tooFewWorkers},
	{CPUTransform, cpuTransform},
	{StorageLatency, storageLatency},
	{CacheThrash, cacheThrash},
	{SlowTail, slowTail},
	{PeriodicStall, periodicStall},
	{StartOfEpoch, epochStart},
	{ColdCache, coldCache},
	{Sync, inTurn},
	{MainProcess, mainProcess},
	{LaunchBound, launchBound},
	{ClockThrottle, clockThrottle},
	{PCIeLink, pcieLink},
	{Copy, exposedCopy},
	{HandOff, handOff},
	{SHM, sharedMemory},
	{MemoryGrowth, memoryGrowth},
	{ComputeBound, computeBound},
	{MetricUntrusted, metricUntrusted},
}

// blindTo are the verdicts that say why nothing can be judged, and those that are said for want of another.
var blindTo = []string{OrphanContext, HookNotLoaded, NoStepsSeen, LoaderNotSeen, NoSteadyState, DataWait, Healthy}
