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
}

// Recipe is the script that shows how a fix is made, as a path in this repository; "" where there is none.
func Recipe(id string) string {
	if name, ok := recipes[id]; ok {
		return "examples/recipes/" + name
	}
	return ""
}
