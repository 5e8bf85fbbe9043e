package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/datawait/datawait/probe/unit"
)

// otherLoader is a loader that does not use PyTorch's iterator.
type otherLoader struct {
	module  string // the hook watches for (otherloaders.py)
	name    string // as people say
	workers string // which of its arguments is the number of workers
	always  bool   // whoever imports it fetches from it; the others are also used below a DataLoader, or not to train
}

var otherLoaders = []otherLoader{
	{"torchdata.nodes", "torchdata.nodes", "the num_workers of its ParallelMapper", true},
	{"nvidia.dali.plugin.pytorch", "NVIDIA DALI", "the num_threads of its pipeline", true},
	{"ffcv.loader", "FFCV", "the num_workers of its Loader", true},
	{"spdl.pipeline", "SPDL", "the concurrency of the stage that decodes", true},
	{"petastorm.pytorch", "petastorm", "the workers_count of its reader", true},
	{"merlin.dataloader.torch", "merlin.dataloader", "the threads that read ahead", true},
	{"fairseq2.data", "fairseq2.data", "the num_parallel_calls of its map()", true},
	{"ray.data", "ray.data", "the tasks that build batches", false},
	{"grain.python", "grain", "its worker_count", false},
	{"tensorflow_datasets", "tensorflow_datasets", "the num_parallel_calls of its map()", false},
	{"webdataset", "WebDataset without its WebLoader", "0, for the training process builds its batches", false},
	{"datasets.arrow_dataset", "a Hugging Face data set without a DataLoader", "0, for the training process builds its batches", false},
}

// AlwaysTrains reports a module whose import means that its loader is used, and not below PyTorch's.
func AlwaysTrains(module string) bool {
	i := slices.IndexFunc(otherLoaders, func(o otherLoader) bool { return o.module == module })
	return i >= 0 && otherLoaders[i].always
}

// LoaderName is what people call the loader of a module.
func LoaderName(module string) string {
	for _, o := range otherLoaders {
		if o.module == module {
			return o.name
		}
	}
	return module
}

// likely returns those of the imported loaders that the batches most likely come from.
func likely(modules []string) (found []otherLoader) {
	for _, always := range []bool{true, false} {
		for _, o := range otherLoaders {
			if o.always == always && slices.Contains(modules, o.module) {
				found = append(found, o)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// loaderNotSeen: the job steps, and its batches come from somewhere the hook does not look.
func (s *subject) loaderNotSeen() Verdict {
	title := fmt.Sprintf("%d optimizer steps were seen and no fetch of a batch for them, so the wait for data is unknown", s.f.Steps)
	if s.f.Beside {
		title = fmt.Sprintf("%d optimizer steps were seen, and another thread reads batches for them, so how long the training waits for those is unknown", s.f.Steps)
	}
	return Verdict{
		ID: LoaderNotSeen, Title: title + Origin(s.f.OtherLoaders), Confidence: 0.95, Share: unit.None[float64]("no fetch was seen"), Do: WatchLine(s.f.OtherLoaders),
		Evidence:    evidence{}.value("steps", float64(s.f.Steps), "count", bySteps).value("fetches", float64(s.f.Fetches), "count", bySteps),
		FalsifiedBy: "fetches of a loader that feeds these steps, once datawait.watch() is around it",
	}
}

// Origin says where batches come from whose fetches were not seen, as the end of a sentence; "" where nothing points to it.
func Origin(modules []string) string {
	switch found := likely(modules); {
	case len(found) == 0:
		return ""
	case found[0].always:
		return ": the batches come from " + names(found) + ", which does not use PyTorch's loader"
	default:
		return ": perhaps the batches come from " + names(found)
	}
}

func names(found []otherLoader) string {
	var all []string
	for _, o := range found {
		all = append(all, o.name)
	}
	return strings.Join(all, " or ")
}

// WatchLine says how a loader is made visible that one of the modules brought.
func WatchLine(modules []string) string {
	workers := "how many threads or processes build its batches"
	if found := likely(modules); len(found) > 0 {
		workers = found[0].workers
	}
	return "put datawait.watch() around the loader where training iterates over it: `for batch in datawait.watch(loader, workers=N):`, N being " + workers
}
