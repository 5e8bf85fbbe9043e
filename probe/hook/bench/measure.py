"""Loops that take turns, and the lines that say what they took.

Loops that are compared alternate within one run, so their ratio means something on a noisy machine. Every line is one
round, the median of a few short runs of each loop; benchstat makes one number of a benchmark's rounds. Time is CPU
time of the thread that loops, if not said otherwise: all that the hook adds there is CPU, and others on the machine
move it less than wall time.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from typing import Any, Callable, Dict, List

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "12"))
RUNS = 7  # of each loop in a round: one preemption does not count

clock = time.thread_time_ns

WITH_DECIMALS = ("x-bare", "core-percent")
SHOWN = {"ns": "ns/op", "added_ns": "added-ns/op"}

Loop = Callable[[int], float]  # runs n operations and returns the ns of one
Against = Callable[[float, float], Dict[str, float]]

results: Dict[str, List[float]] = {}  # "benchmark:unit" -> one value of each round


def header() -> None:
    print("goos: linux\npkg: datawait/probe/hook\npython: %d.%d.%d" % sys.version_info[:3], flush=True)


def report(name: str, n: int, **units: float) -> None:
    """One line; a unit is written with - where its name has _."""
    words = []
    for unit, value in units.items():
        unit = SHOWN.get(unit, unit.replace("_", "-"))
        words.append("%.*f %s" % (3 if unit in WITH_DECIMALS else 0, value, unit))
        results.setdefault("Benchmark%s:%s" % (name, unit), []).append(value)
    print("Benchmark%s %d %s" % (name, n, " ".join(words)), flush=True)


def more(first: float, ns: float) -> Dict[str, float]:
    """What a loop takes more than the first, which is bare."""
    return {"added_ns": ns - first, "x_bare": ns / first}


def price(first: float, ns: float) -> Dict[str, float]:
    """What a loop takes less than the first, which has all parts."""
    return {"price_ns": first - ns}


def alternate(
    group: str, loops: Dict[str, Loop], n: int, rounds: int = ROUNDS, runs: int = RUNS, against: Against = more
) -> None:
    """Reports loops, all but the first against it."""
    for loop in loops.values():
        loop(n)
    for _ in range(rounds):
        took: Dict[str, List[float]] = {name: [] for name in loops}
        for _ in range(runs):
            for name, loop in loops.items():
                took[name].append(loop(n))
        medians = {name: statistics.median(each) for name, each in took.items()}
        first = next(iter(medians))
        for name, ns in medians.items():
            units = {} if name == first else against(medians[first], ns)
            report("%s/%s" % (group, name), n, ns=ns, **units)


def calling(call: Callable[[], Any]) -> Loop:
    """A loop that does nothing but call."""

    def loop(n: int) -> float:
        gc.disable()
        begin = clock()
        for _ in range(n):
            call()
        end = clock()
        gc.enable()
        return (end - begin) / n

    return loop
