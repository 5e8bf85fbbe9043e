"""PyTorch's loaders with the hook and without it: trivial ones, with workers, and in trainings of real steps."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict

import measure
from patched import Switch

from datawait import stream


def main() -> None:
    import torch
    import torch.utils.data.dataloader as loaders
    import training

    torch.set_num_threads(1)
    quick, slow = training.fast(), training.slow()
    switch = Switch(loaders, torch.optim.SGD)
    both = switch.both

    print("torch: %s" % torch.__version__, flush=True)
    measure.alternate("Loader/trivial", both(training.fetching(training.trivial)), 400)
    measure.alternate("Loader/empty", both(training.fetching(training.empty)), 400)
    measure.alternate("Training/" + training.FAST, both(training.stepping(quick, training.trivial)), 200, runs=5)
    measure.alternate("Loader/trivial/workers=2", on_one(training.trivial(200_000, workers=2), switch), 50, runs=100)
    measure.report("Training/" + training.SLOW, 10, ns=training.stepping(slow, training.trivial)(10))
    cold = training.fetching_one_by_one(training.trivial, slow)
    loops = both(cold)
    loops["observed-without-counters"] = without_counters(loops["observed"])
    measure.alternate("Training/%s/fetch" % training.SLOW, loops, 8, runs=1)


def on_one(loader: Any, switch: Switch) -> Dict[str, measure.Loop]:
    """Each way on one iterator, in turns that are short beside what its workers and the scheduler do to a fetch: from
    loader to loader that moves the fetch by tens of microseconds. The workers are observed all the time."""
    it = iter(loader)
    next(it)

    def calling(fetch: Callable[[Any], Any]) -> measure.Loop:
        def run(n: int) -> float:
            begin = measure.clock()
            for _ in itertools.repeat(None, n):
                fetch(it)
            return (measure.clock() - begin) / n

        return run

    bare, observed = switch.of("__next__")
    times = [0, 0]

    def timed(it: Any) -> Any:
        """The least that anything written in Python could do."""
        begin = stream.core.clock()
        batch = bare(it)
        times[:] = (begin, stream.core.clock())
        return batch

    return {"bare": calling(bare), "observed": calling(observed), "timed-only": calling(timed)}


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
