"""What the hook may cost, and whether a run kept to it: for the end of a run, and for README (.ci/bench-readme)."""

from __future__ import annotations

import sys
from typing import Dict, List, Optional, Tuple

from interval import interval

Row = Tuple[str, str, Optional[float]]  # what, "benchmark:unit", the most it may be

ROWS: List[Row] = [
    ("a fetch that does nothing, added", "BenchmarkFetch/observed:added-ns/op", 3000),
    ("the same, when the thread's CPU clock is read (every ten milliseconds at most)",
     "BenchmarkFetch/looking-at-thread-clock:added-ns/op", None),
    ("the same, when all counters are read (no workers; once a millisecond at most)",
     "BenchmarkFetch/looking-at-all-counters:added-ns/op", None),
    ("the same, with the device clock around it (emulated events)",
     "BenchmarkFetch/with-emulated-device-clock:added-ns/op", 10_000),
    ("a fetch of a trivial DataLoader without workers, bare", "BenchmarkLoader/trivial/bare:ns/op", None),
    ("such a fetch observed, added", "BenchmarkLoader/trivial/observed:added-ns/op", 3000),
    ("that loader's loop, against it bare", "BenchmarkLoader/trivial/observed:x-bare", 1.25),
    ("a loader of empty batches, PyTorch's own floor, against it bare", "BenchmarkLoader/empty/observed:x-bare", None),
    ("a fetch of a trivial DataLoader with 2 workers, added",
     "BenchmarkLoader/trivial/workers=2/observed:added-ns/op", 3000),
    ("the same, two readings of the clock around it and nothing else",
     "BenchmarkLoader/trivial/workers=2/timed-only:added-ns/op", None),
    ("that loader's loop, against it bare", "BenchmarkLoader/trivial/workers=2/observed:x-bare", 1.25),
    ("a training of steps of 200 µs, fetch and step, added",
     "BenchmarkTraining/step-of-200us/observed:added-ns/op", None),
    ("the same, against it bare", "BenchmarkTraining/step-of-200us/observed:x-bare", None),
    ("a fetch between steps of 35 ms, all caches cold, no workers, bare",
     "BenchmarkTraining/step-of-35ms/fetch/bare:ns/op", None),
    ("such a fetch observed, added: all counters are read each time",
     "BenchmarkTraining/step-of-35ms/fetch/observed:added-ns/op", None),
    ("the same without the counters",
     "BenchmarkTraining/step-of-35ms/fetch/observed-without-counters:added-ns/op", None),
    ("a process of its own, a trivial loader and no steps, added: datawait",
     "BenchmarkBeside/trivial-step/datawait:added-ns/op", None),
    ("TraceML 0.5, added", "BenchmarkBeside/trivial-step/TraceML:added-ns/op", None),
    ("torch.profiler, 3 of 100 steps, added", "BenchmarkBeside/trivial-step/torch.profiler:added-ns/op", None),
    ("the same with steps of 200 µs, against bare: datawait", "BenchmarkBeside/step-of-200us/datawait:x-bare", None),
    ("TraceML 0.5", "BenchmarkBeside/step-of-200us/TraceML:x-bare", None),
    ("torch.profiler, 3 of 100 steps", "BenchmarkBeside/step-of-200us/torch.profiler:x-bare", None),
    ("a worker, a batch, added", "BenchmarkWorker/batch/observed:added-ns/op", 15_000),
    ("a worker, a batch, when all counters are read (once a millisecond at most)",
     "BenchmarkWorker/batch/looking-at-all-counters:added-ns/op", 15_000),
    ("a worker, its stack looked at twenty times a second: of a core", "BenchmarkWorker/sampling:core-percent", 0.5),
    ("one such look", "BenchmarkWorker/sampling:ns/op", None),
    ("a worker, a file opened (audit hook)", "BenchmarkWorker/open/observed:added-ns/op", 2000),
    ("a worker, a deepcopy of 12 containers (audit hook)", "BenchmarkWorker/deepcopy/observed:added-ns/op", None),
    ("part: records", "BenchmarkPart/without-records:price-ns", None),
    ("part: reading the clock twice", "BenchmarkPart/without-clock:price-ns", None),
    ("part: guards (fail-open)", "BenchmarkPart/without-guards:price-ns", None),
    ("part: looking whether anything rare is due", "BenchmarkPart/without-checks:price-ns", None),
]  # fmt: skip


def shown(value: float, key: str) -> str:
    if key.endswith("core-percent"):
        return "%.2f %%" % value
    return "%.2f×" % value if key.endswith("x-bare") else "%.2f µs" % (value / 1000)


def cell(values: List[float], key: str) -> str:
    """The median, its interval, and of how many rounds."""
    middle, low, high = (shown(value, key) for value in interval(values))
    unit = "×" if key.endswith("x-bare") else " %" if key.endswith("core-percent") else " µs"
    return "%s (%s – %s, n = %d)" % (middle, low[: -len(unit)], high, len(values))


def verdict(values: List[float], key: str, most: Optional[float]) -> str:
    """Against the bar; where the interval reaches over it, that is said."""
    if most is None:
        return ""
    middle, _, high = interval(values)
    said = "≤ " + shown(most, key)
    if middle > most:
        return said + ": **missed**"
    return said if high <= most else said + ": not sure"


def tell(results: Dict[str, List[float]]) -> None:
    for what, key, most in ROWS:
        if key not in results:
            continue
        words = (what, cell(results[key], key), verdict(results[key], key, most))
        print("%s: %s %s" % words, file=sys.stderr)
