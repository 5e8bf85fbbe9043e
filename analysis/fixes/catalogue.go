package fixes

// catalogue is every fix that the loader's parameters can price, or say something of. The order only decides between equals.
var catalogue = []rule{
	{id: MoreWorkers, common: true, propose: moreWorkers},
	{id: FewerWorkers, propose: fewerWorkers},
	{id: PrefetchFactor, common: true, propose: prefetchFactor},
	{id: OutOfOrder, propose: outOfOrder},
	{id: PersistentWorkers, common: true, propose: persistentWorkers},
	{id: CheaperStart, propose: cheaperStart},
	{id: SmallerShuffleBuffer, propose: smallerShuffleBuffer},
	{id: CPUAffinity, propose: cpuAffinity},
	{id: CPULimit, propose: cpuLimit},
	{id: WorkerThreads, propose: workerThreads},
	{id: VectorizeCollate, propose: vectorizeCollate},
	{id: PackBatch, propose: packBatch},
	{id: CheaperDecode, common: true, propose: cheaperDecode},
	{id: PreprocessOnce, common: true, propose: preprocessOnce},
	{id: AugmentOnGPU, propose: augmentOnGPU},
	{id: ShardFiles, common: true, propose: shardFiles},
	{id: NVMeCache, common: true, propose: nvmeCache},
	{id: ParallelFilesystem, common: true, propose: parallelFilesystem},
	{id: PinMemory, common: true, propose: pinMemory},
	{id: OverlapCopy, propose: overlapCopy},
	{id: PerWorkerHandles, propose: perWorkerHandles},
	{id: SequentialLayout, propose: sequentialLayout},
	{id: MoreRAM, propose: moreRAM},
	{id: MoreShards, propose: moreShards},
	{id: SplitStream, propose: splitStream},
	{id: SlowSamples, propose: slowSamples},
	{id: FixStraggler, propose: fixStraggler},
	{id: AsyncCheckpoint, propose: asyncCheckpoint},
	{id: ValidationLess, propose: validationLess},
	{id: ArrayDataset, propose: arrayDataset},
	{id: MoveOffMain, propose: moveOffMain},
	{id: MixedPrecision, common: true, propose: mixedPrecision},
	{id: Compile, common: true, propose: compileModel},
	{id: LargerBatch, common: true, propose: largerBatch},
	{id: CoolingOrPower, propose: coolingOrPower},
	{id: ReseatLink, propose: reseatLink},
	{id: MoreGPUs, common: true, propose: moreGPUs},
}

// ofEpochStart are the fixes that need no steady step.
var ofEpochStart = []rule{
	{id: PersistentWorkers, common: true, propose: persistentWorkers},
	{id: CheaperStart, propose: cheaperStart},
	{id: SmallerShuffleBuffer, propose: smallerShuffleBuffer},
}
