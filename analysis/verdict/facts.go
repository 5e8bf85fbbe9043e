package verdict

import (
	"github.com/datawait/datawait/analysis/loader"
	"github.com/datawait/datawait/probe/unit"
)

// Facts is what verdicts need to know beside the loader's parameters: whether there is anything to judge at all.
// Of several ranks it describes the job, and the parameters describe the rank that decides (the one with the longest wait).
type Facts struct {
	Steps   int    // optimizer steps (or fetches, where none was seen) of the training loader, all ranks
	Fetches int    // fetches of any loader, all ranks
	Failed  string // how the command failed, "with status 1"; "" = it did not, or that is not known

	// HookSeen says whether any training process wrote a spool. PythonChildren counts Python processes the agent saw start;
	// with a child and no spool the hook was not loaded.
	HookSeen       unit.Maybe[bool]
	PythonChildren int
	HookDisabled   bool
	KeptOut        []KeptOut // Python processes in which the hook did not run, as far as the agent knows why
	Refused        []string  // why hooked processes could not write

	// Unfed says that optimizer steps were seen, and in no rank a fetch that feeds them.
	Unfed        bool
	Beside       bool     // so it is because another thread reads batches, beside a loader that training reads itself
	OtherLoaders []string // modules of loaders that the hook does not see, imported by the job

	// Steady says whether enough steps lie outside epoch starts and warm-up to judge a step; WhyNot is the reason if not.
	Steady bool
	WhyNot string

	// GPU, over the time the job held it.
	HeldRatio      loader.Num // of the allocated time some process held the GPU
	ResidentRatio  loader.Num // of the allocated time
	AllocatedHours loader.Num
	GPUs           []GPU      // one by one
	Untrusted      loader.Num // of the counter windows that contradict themselves

	// TestConclusion is the cached-data test's: input-pipeline, not-input or inconclusive; unknown when none ran.
	TestConclusion unit.Maybe[string]
}

// KeptOut is a Python process in which the hook did not run.
type KeptOut struct {
	Command string
	Why     string // a code of recording.KeptOut
}

// GPU is what one GPU of the job did over its allocated time.
type GPU struct {
	Name     string
	Ranks    int        // training processes that say they use it, or are taken to
	Held     loader.Num // of the time for which it is known
	Resident loader.Num
	Covered  float64    // of the allocated time in which Resident is known
	Watched  float64    // of the allocated time in which Held is known
	Hours    float64    // allocated
	Memory   loader.Num // bytes in use, at most
	Assigned bool       // a scheduler says so, a rank runs on it, or it is the emulated one; else it is merely there
	Hidden   bool       // it was in use, and no process is listed that holds it
}
