package fixes

// recipes are the scripts of this repository that show how a fix is made. A test holds the list against the folder.
var recipes = map[string]string{
	PreprocessOnce:       "preprocess_once.py",
	PrecomputeFeatures:   "preprocess_once.py",
	PerWorkerHandles:     "preprocess_once.py",
	CheaperStart:         "preprocess_once.py",
	ShardFiles:           "pack_shards.py",
	MoreShards:           "pack_shards.py",
	SplitStream:          "pack_shards.py",
	SequentialLayout:     "pack_shards.py",
	SmallerShuffleBuffer: "pack_shards.py",
	NVMeCache:            "local_cache.py",
	MoreWorkers:          "tuned_loader.py",
	FewerWorkers:         "tuned_loader.py",
	PrefetchFactor:       "tuned_loader.py",
	OutOfOrder:           "tuned_loader.py",
	PersistentWorkers:    "tuned_loader.py",
	WorkerThreads:        "tuned_loader.py",
	CPUAffinity:          "tuned_loader.py",
	CPULimit:             "tuned_loader.py",
	PinMemory:            "tuned_loader.py",
	OverlapCopy:          "tuned_loader.py",
	AugmentOnGPU:         "augment_on_gpu.py",
	VectorizeCollate:     "vectorized_collate.py",
	PackBatch:            "vectorized_collate.py",
	MoveOffMain:          "vectorized_collate.py",
	ArrayDataset:         "vectorized_collate.py",
	CheaperDecode:        "cheaper_decode.py",
}

// Recipe is the script that shows how a fix is made, as a path in this repository; "" where there is none.
func Recipe(id string) string {
	if name, ok := recipes[id]; ok {
		return "examples/recipes/" + name
	}
	return ""
}
