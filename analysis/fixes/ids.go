package fixes

// The names of fixes in reports. Other programs read them: add freely, rename never.
const (
	PreprocessOnce       = "preprocess-once"
	ShardFiles           = "shard-files"
	NVMeCache            = "nvme-cache"
	MoreRAM              = "more-ram"
	ParallelFilesystem   = "parallel-filesystem"
	MoreWorkers          = "more-workers"
	FewerWorkers         = "fewer-workers"
	PrefetchFactor       = "prefetch-factor"
	OutOfOrder           = "out-of-order"
	PinMemory            = "pin-memory"
	OverlapCopy          = "overlap-copy"
	PersistentWorkers    = "persistent-workers"
	CheaperStart         = "cheaper-start"
	SmallerShuffleBuffer = "smaller-shuffle-buffer"
	SmallerLoaderBatch   = "smaller-loader-batch"
	AugmentOnGPU         = "augment-on-gpu"
	PrecomputeFeatures   = "precompute-features"
	CheaperDecode        = "cheaper-decode"
	WorkerThreads        = "worker-threads"
	CPULimit             = "cpu-limit"
	CPUAffinity          = "cpu-affinity"
	VectorizeCollate     = "vectorize-collate"
	PackBatch            = "pack-batch"
	PerWorkerHandles     = "per-worker-handles"
	SequentialLayout     = "sequential-layout"
	MoreShards           = "more-shards"
	SplitStream          = "split-stream"
	SlowSamples          = "slow-samples"
	MoveOffMain          = "move-off-main"
	ArrayDataset         = "array-dataset"
	RaiseSHM             = "raise-shm"
	ValidationLess       = "validation-less"
	AsyncCheckpoint      = "async-checkpoint"
	RemoveSync           = "remove-sync"
	MixedPrecision       = "mixed-precision"
	Compile              = "compile"
	LargerBatch          = "larger-batch"
	FixStraggler         = "fix-straggler"
	ReleaseGPU           = "release-gpu"
	CoolingOrPower       = "cooling-or-power"
	ReseatLink           = "reseat-link"
	MoreGPUs             = "more-gpus"
)

// IDs returns every name a report may give a fix, priced by this package or not.
func IDs() []string {
	return []string{
		PreprocessOnce, ShardFiles, NVMeCache, MoreRAM, ParallelFilesystem, MoreWorkers, FewerWorkers, PrefetchFactor, OutOfOrder,
		PinMemory, OverlapCopy, PersistentWorkers, CheaperStart, SmallerShuffleBuffer, SmallerLoaderBatch, AugmentOnGPU,
		PrecomputeFeatures, CheaperDecode, WorkerThreads, CPULimit, CPUAffinity, VectorizeCollate, PackBatch, PerWorkerHandles,
		SequentialLayout, MoreShards, SplitStream, SlowSamples, MoveOffMain, ArrayDataset, RaiseSHM, ValidationLess,
		AsyncCheckpoint, RemoveSync, MixedPrecision, Compile, LargerBatch, FixStraggler, ReleaseGPU, CoolingOrPower, ReseatLink, MoreGPUs,
	}
}
