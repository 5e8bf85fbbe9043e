package lab

// scenario is one script with what a right report says of it.
type scenario struct {
	name       string
	script     string
	arguments  []string
	budget     string // of diagnose; "" = the usual one
	gate       bool   // a test of the gate runs it; the others are left to make lab
	unrepaired bool   // the first fix is not made: no script can show what it does
	// burns says that the script burns CPU: shares are held to a wider tolerance, and only on a quiet machine.
	burns bool
	// step and wait are seconds of a steady step, by the arithmetic in the script's docstring; 0 = there is none.
	step, wait float64
	// verdict must be the first one, fix the first fix; "" for a fix means that none may be offered. No fix at all is not asked for.
	verdict []string
	fix     []string
	// never must not be the first fix.
	never []string
	// also checks what is particular to this scenario. It returns what is wrong; "" = nothing.
	also func(run) string
}

const ms = 1e-3

// aboutData are fixes of the loader and of what it reads from.
var aboutData = []string{"more-workers", "prefetch-factor", "persistent-workers", "nvme-cache", "shard-files", "parallel-filesystem", "preprocess-once", "cheaper-decode"}

// scenarios is every job whose answer is known, from arithmetic and from public cases.
var scenarios = []scenario{
	{name: "S01", script: "s01_no_workers.py", gate: true, step: 60 * ms, wait: 40 * ms,
		verdict: []string{"too-few-workers"}, fix: []string{"more-workers"},
		never: []string{"pin-memory", "persistent-workers", "cheaper-decode", "larger-batch"}},
	{name: "S02 W=1", script: "s02_few_workers.py", arguments: []string{"--workers", "1"}, step: 40 * ms, wait: 25 * ms,
		verdict: []string{"too-few-workers"}, fix: []string{"more-workers"}, also: asksForWorkers(3)},
	{name: "S02 W=2", script: "s02_few_workers.py", arguments: []string{"--workers", "2"}, step: 20 * ms, wait: 5 * ms,
		verdict: []string{"too-few-workers"}, fix: []string{"more-workers"}, also: asksForWorkers(3)},
	{name: "S02 W=4", script: "s02_few_workers.py", arguments: []string{"--workers", "4"}, step: 15 * ms,
		verdict: []string{"compute-bound", "healthy"}, fix: []string{""}},
	{name: "S02 W=16", script: "s02_few_workers.py", arguments: []string{"--workers", "16"}, step: 15 * ms,
		verdict: []string{"compute-bound", "healthy"}, fix: []string{"", "fewer-workers"}},
	{name: "S03", script: "s03_shared_bandwidth.py", gate: true, step: 32 * ms, wait: 20 * ms,
		verdict: []string{"storage-bandwidth"}, fix: []string{"nvme-cache", "parallel-filesystem", "preprocess-once"},
		never: []string{"more-workers", "prefetch-factor"}},
	{name: "S05 W=1", script: "s05_cpu_decode.py", arguments: []string{"--workers", "1"}, burns: true, step: 48 * ms, wait: 38 * ms,
		verdict: []string{"too-few-workers"}, fix: []string{"more-workers", "preprocess-once"}},
	{name: "S05 W=2", script: "s05_cpu_decode.py", gate: true, burns: true, step: 24 * ms, wait: 14 * ms,
		verdict: []string{"cpu-transform"}, fix: []string{"cheaper-decode", "preprocess-once", "cpu-limit"},
		never: []string{"more-workers", "prefetch-factor", "nvme-cache", "shard-files"}},
	{name: "S06", script: "s06_random_augmentation.py", burns: true, step: 28 * ms, wait: 16 * ms,
		verdict: []string{"cpu-transform"}, fix: []string{"preprocess-once", "cheaper-decode", "augment-on-gpu", "cpu-limit"},
		never: []string{"nvme-cache", "parallel-filesystem", "more-ram", "prefetch-factor"}},
	{name: "S07", script: "s07_worker_threads.py", burns: true,
		verdict: []string{"thread-oversubscription"}, fix: []string{"worker-threads"},
		never: []string{"more-workers", "nvme-cache", "cheaper-decode"}},
	{name: "S09 W=2", script: "s09_affinity.py", burns: true, step: 24 * ms, wait: 11 * ms,
		verdict: []string{"cpu-capped"}, fix: []string{"cpu-affinity"}, never: []string{"more-workers", "nvme-cache"}},
	{name: "S09 W=4", script: "s09_affinity.py", arguments: []string{"--workers", "4"}, burns: true, step: 24 * ms, wait: 11 * ms,
		verdict: []string{"cpu-capped"}, fix: []string{"cpu-affinity"}, never: []string{"more-workers", "nvme-cache"}},
	{name: "S10", script: "s10_slow_collate.py", burns: true, step: 22 * ms, wait: 10 * ms,
		verdict: []string{"cpu-transform"}, fix: []string{"vectorize-collate"},
		never: []string{"more-workers", "nvme-cache", "augment-on-gpu"}},
	{name: "S12", script: "s12_cold_cache.py",
		verdict: []string{"cold-cache", "compute-bound", "healthy"}, fix: []string{"", "nvme-cache"},
		never: []string{"more-workers"}, also: finds("cold-cache")},
	{name: "S14", script: "s14_epoch_start.py", gate: true, step: 20 * ms,
		verdict: []string{"epoch-start"}, fix: []string{"persistent-workers"}, never: []string{"more-workers", "nvme-cache"}},
	{name: "S16", script: "s16_shuffle_buffer.py", step: 20 * ms,
		verdict: []string{"epoch-start"}, fix: []string{"smaller-shuffle-buffer"},
		never: []string{"more-workers", "persistent-workers", "nvme-cache"}},
	{name: "S18", script: "s18_duplicate_stream.py", step: 15 * ms,
		verdict: []string{"duplicate-data"}, fix: []string{"", "split-stream"}, never: aboutData},
	{name: "S21", script: "s21_main_process.py", burns: true, step: 40 * ms,
		verdict: []string{"main-process"}, fix: []string{"move-off-main", "remove-sync"}, never: []string{"more-workers", "nvme-cache"}},
	{name: "S23", script: "s23_blocking_copy.py", budget: "60s", step: 40 * ms,
		verdict: []string{"copy"}, fix: []string{"overlap-copy", "pin-memory"}, never: []string{"more-workers", "nvme-cache"}},
	{name: "S25", script: "s25_launch_bound.py", burns: true, step: 24 * ms,
		verdict: []string{"launch-bound", "main-process"}, fix: []string{"larger-batch", "compile", "move-off-main", "remove-sync"}, never: aboutData, also: notCertain("move-off-main")},
	{name: "S26", script: "s26_compute_bound.py", gate: true, step: 40 * ms,
		verdict: []string{"compute-bound"}, fix: []string{""}},
	{name: "S26 marginal", script: "s26_compute_bound.py", arguments: []string{"--marginal"}, step: 105 * ms, wait: 5 * ms,
		verdict: []string{"compute-bound", "healthy", "too-few-workers"}, also: notCritical},
	{name: "S27a", script: "s27_stalls.py", step: 20 * ms,
		verdict: []string{"periodic-stall"}, fix: []string{"async-checkpoint"}, never: aboutData},
	{name: "S27b", script: "s27_stalls.py", arguments: []string{"--validation"}, step: 20 * ms,
		verdict: []string{"periodic-stall"}, fix: []string{"validation-less"}, never: aboutData},
	{name: "S28", script: "s28_straggler.py", step: 40 * ms, wait: 20 * ms,
		verdict: []string{"rank-straggler"}, fix: []string{"fix-straggler", "more-workers", "nvme-cache"}, never: []string{"larger-batch", "compile"}},
	{name: "S28 control", script: "s28_straggler.py", arguments: []string{"--control"}, step: 20 * ms,
		verdict: []string{"compute-bound", "healthy"}, fix: []string{""}},
	{name: "S29", script: "s29_idle.py",
		verdict: []string{"idle-allocated"}, fix: []string{""}},
	{name: "S29 blocked", script: "s29_idle.py", arguments: []string{"--blocked"},
		verdict: []string{"storage-latency", "slow-tail", "too-few-workers", "data-wait"}, unrepaired: true},
	{name: "S30", script: "s30_worker_memory.py", step: 20 * ms,
		verdict: []string{"memory-growth"}, fix: []string{"", "array-dataset"}, never: aboutData},
	{name: "F29 tar shards on a slow disk", script: "f29_tar_shards.py", step: 33 * ms, wait: 21 * ms,
		verdict: []string{"storage-bandwidth"}, fix: []string{"nvme-cache", "parallel-filesystem"},
		never: []string{"more-workers", "prefetch-factor", "shard-files"}},
	{name: "F30 object store", script: "f30_object_store.py", step: 42 * ms, wait: 30 * ms,
		verdict: []string{"storage-latency", "too-few-workers"}, fix: []string{"more-workers", "shard-files", "nvme-cache"},
		never: []string{"cheaper-decode", "pin-memory", "more-gpus"}},
	{name: "F34 dataset larger than memory", script: "f34_cache_thrash.py", step: 17 * ms, wait: 7 * ms,
		verdict: []string{"too-few-workers", "cache-thrash", "storage-latency"}, fix: []string{"more-workers", "more-ram", "nvme-cache"},
		never: []string{"cheaper-decode", "prefetch-factor"}, also: finds("cache-thrash")},
	{name: "F36 JPEG on all cores", script: "f36_jpeg_on_all_cores.py", burns: true, step: 24 * ms, wait: 14 * ms,
		verdict: []string{"cpu-transform"}, fix: []string{"preprocess-once", "cheaper-decode", "cpu-limit"},
		never: []string{"nvme-cache", "more-workers", "prefetch-factor"}, also: saysNoHelp("nvme-cache")},
	{name: "F38 heavy tail", script: "f38_video_tail.py", step: 35 * ms, wait: 15 * ms,
		verdict: []string{"slow-tail"}, fix: []string{"slow-samples", "out-of-order", "prefetch-factor"},
		never: []string{"more-workers", "nvme-cache", "parallel-filesystem"}},
	{name: "F40 tokenising in collate", script: "f40_tokenise_in_collate.py", burns: true, step: 22 * ms, wait: 14 * ms,
		verdict: []string{"cpu-transform"}, fix: []string{"vectorize-collate", "preprocess-once"},
		never: []string{"more-workers", "prefetch-factor", "nvme-cache"}},
	{name: "F42 join per sample", script: "f42_join_per_sample.py", burns: true, step: 20 * ms, wait: 12 * ms,
		verdict: []string{"cpu-transform"}, fix: []string{"preprocess-once", "precompute-features", "cheaper-decode", "cpu-limit"},
		never: []string{"more-workers", "nvme-cache", "prefetch-factor"}},
	{name: "F46 one lock", script: "f46_one_lock.py", step: 32 * ms, wait: 20 * ms,
		verdict: []string{"serial-read"}, fix: []string{"per-worker-handles"},
		never: []string{"more-workers", "prefetch-factor", "nvme-cache", "parallel-filesystem"}},
	{name: "F47 row groups at random", script: "f47_row_groups.py", step: 21 * ms, wait: 11 * ms,
		verdict: []string{"read-amplification"}, fix: []string{"sequential-layout", "nvme-cache", "more-workers"},
		never: []string{"prefetch-factor", "cheaper-decode"}},
	{name: "F48 fewer shards than workers", script: "f48_few_shards.py", step: 20 * ms, wait: 9 * ms,
		verdict: []string{"starved-workers"}, fix: []string{"more-shards"}, never: []string{"more-workers", "prefetch-factor"}},
	{name: "F50 mixed batch sizes", script: "f50_mixed_batches.py", step: 20 * ms, wait: 8 * ms,
		verdict: []string{"too-few-workers"}, fix: []string{"more-workers"}, never: []string{"prefetch-factor", "out-of-order"}},
	{name: "F51 two loaders", script: "f51_two_loaders.py", step: 40 * ms, wait: 25 * ms,
		verdict: []string{"too-few-workers"}, fix: []string{"more-workers"}, also: asksForWorkers(3)},
	{name: "F59 launches ahead", script: "f59_launches_ahead.py", step: 40 * ms,
		verdict: []string{"compute-bound", "healthy"}, fix: []string{""}, never: aboutData},
}
