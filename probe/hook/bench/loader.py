"""PyTorch's loaders with the hook and without it: trivial ones, with workers, and in trainings of real steps."""

from __future__ import annotations

import measure

from datawait import stream


def main() -> None:
    import torch
    import torch.utils.data.dataloader as loaders
    import training
    from patched import Switch

    torch.set_num_threads(1)
    quick, slow = training.fast(), training.slow()
    both = Switch(loaders, torch.optim.SGD).both

    print("torch: %s" % torch.__version__, flush=True)
    measure.alternate("Loader/trivial", both(training.fetching(training.trivial)), 400)
    measure.alternate("Loader/empty", both(training.fetching(training.empty)), 400)
    measure.alternate("Training/" + training.FAST, both(training.stepping(quick, training.trivial)), 200, runs=5)
    two = training.fetching_one_by_one(lambda n: training.trivial(n, workers=2))
    measure.alternate("Loader/trivial/workers=2", both(two), 300, runs=1)
    measure.report("Training/" + training.SLOW, 10, ns=training.stepping(slow, training.trivial)(10))
    cold = training.fetching_one_by_one(training.trivial, slow)
    loops = both(cold)
    loops["observed-without-counters"] = without_counters(loops["observed"])
    measure.alternate("Training/%s/fetch" % training.SLOW, loops, 8, runs=1)


def without_counters(loop: measure.Loop) -> measure.Loop:
    """Without workers the fetch builds the batch, and its counters are read where a millisecond has passed: always."""

    def run(n: int) -> float:
        core = stream.core
        core.measure_at = 1 << 62
        try:
            return loop(n)
        finally:
            core.measure_at = 0

    return run
