"""Surroundings in which the clock does what no clock does."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable

from trainings import surrounding, three_epochs


def false_clock(clock: Callable[[], int]) -> None:
    stream = sys.modules.get("datawait.stream")
    if stream is not None:
        stream.core.clock = clock  # type: ignore[attr-defined]


@surrounding
def the_clock_stands_still(folder: str) -> Any:
    now = time.perf_counter_ns()
    false_clock(lambda: now)
    return three_epochs(lambda: None)


@surrounding
def the_clock_goes_back(folder: str) -> Any:
    begin = time.perf_counter_ns()
    false_clock(lambda: 2 * begin - time.perf_counter_ns())
    return three_epochs(lambda: None)


@surrounding
def the_clock_jumps(folder: str) -> Any:
    looks = [0]

    def clock() -> int:
        looks[0] += 1
        return time.perf_counter_ns() + (looks[0] % 7 - 3) * 10**12

    false_clock(clock)
    return three_epochs(lambda: None)
