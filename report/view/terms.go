package view

// accountOrder is the order in which accounts are shown: first what the GPU did for the job, then what kept it from working.
var accountOrder = []string{
	"compute", "collective", "copy", "exposed_wait", "data_wait", "epoch_start", "host", "validation", "checkpoint", "startup",
	"idle_held", "not_held", "unattributed", "unexplained",
}

// accountNames are the words for accounts and for parts of a step.
var accountNames = map[string]string{
	"not_held":     "not held",
	"startup":      "start-up",
	"epoch_start":  "epoch start",
	"exposed_wait": "exposed wait",
	"data_wait":    "data wait",
	"copy":         "copy",
	"compute":      "compute",
	"collective":   "collective",
	"validation":   "validation",
	"checkpoint":   "checkpoint",
	"host":         "host",
	"idle_held":    "idle, held",
	"unattributed": "unattributed",
	"unexplained":  "unexplained",
}

// accountMeanings explain each account in a sentence.
var accountMeanings = map[string]string{
	"not_held":     "Allocated to the job, but no process of it had the GPU open.",
	"startup":      "From the first process to the first step.",
	"epoch_start":  "From the creation of an iterator to its first batch.",
	"exposed_wait": "Waiting for the next batch with nothing left to compute.",
	"data_wait":    "The training thread waited for the next batch; whether the GPU still had work is unknown.",
	"copy":         "Copying a batch to the GPU with nothing to compute meanwhile.",
	"compute":      "Kernels of the job were running.",
	"collective":   "Exchanging gradients with other ranks, or waiting for them to arrive.",
	"validation":   "Inside a validation loop.",
	"checkpoint":   "Saving a checkpoint.",
	"host":         "The training process did something else, and the GPU had nothing to run.",
	"idle_held":    "A process held the GPU and no training was under way.",
	"unattributed": "Not covered by counters, or the cause could not be told.",
	"unexplained":  "The part of a step that the measured parts do not add up to.",
}

func accountName(id string) string {
	if s, ok := accountNames[id]; ok {
		return s
	}
	return cleanName(id)
}

// legNames are the words for the legs of the cached-data test.
var legNames = map[string]string{
	"live":             "live data",
	"host-cached":      "batches in memory",
	"host-cached-busy": "batches in memory, loader busy",
	"device-cached":    "batches on the GPU",
	"reread":           "the same files again",
}

// legOrder is the order in which legs are shown.
var legOrder = []string{"live", "host-cached", "host-cached-busy", "device-cached", "reread"}

func legName(id string) string {
	if s, ok := legNames[id]; ok {
		return s
	}
	return cleanName(id)
}

// The words of the ladder; "SM active" and "tensor" are explained among the terms.
const (
	termAllocated = "allocated"
	termHeld      = "held"
	termResident  = "resident"
	termSM        = "SM active"
	termTensor    = "tensor"
)

// terms explains the words of the report, each once.
func terms() []Term {
	return []Term{
		{"rank", "One training process; usually one per GPU."},
		{"step", "One optimizer step of the training thread; where none is seen, one fetch of a batch."},
		{"data wait", "Time the training thread is blocked until the loader hands it the next batch. Shares are sums over sums, never medians."},
		{"exposed wait", "The part of data wait during which the GPU had nothing left to run: all that a faster input pipeline can win back."},
		{"epoch start", "From the creation of an iterator to its first batch: worker start, opening the dataset, filling buffers, the first build."},
		{"SM activity", "The share of time in which the GPU's processors (streaming multiprocessors, SM) have work. Not what nvidia-smi calls GPU-util, which only says that some kernel was there."},
		{"resident", "Some kernel of the job was on the GPU, however small: what GPU-util shows."},
		{"tensor", "The share of time in which the matrix units were in use."},
		{"cached-data test", "The same training steps, once on live data and once on batches already in memory, in alternating blocks. What becomes faster is what the input pipeline costs."},
		{"run queue", "Ready to compute, waiting for a free processor core."},
		{"off-CPU", "Waiting for storage, the network, a lock or a helper thread."},
		{"95 % interval", "Computed so that, were the run repeated many times, it would hold the true value in 95 of 100 cases."},
		{"grade", "A: the GPU's own counters or clock. B: one source, or coarse. C: inferred, or an upper bound."},
	}
}
