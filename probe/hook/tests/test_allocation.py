"""A fetch leaves nothing behind: after a hundred thousand of them the process holds what it held before."""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc

import pytest

import datawait
from datawait import optimizer

FETCHES = 100_000
HOOK = os.path.dirname(datawait.__file__)


@pytest.fixture
def loop(hook):
    """Fetches of the given number, with steps, on a clock that goes on by a random-looking time."""
    gaps = [30, 900, 20_000, 70_000, 1_100_000, 3_000]  # some of a row, some written at once, some measured

    def loop_of(fetches, step=None):
        for n in range(fetches):
            hook.clock.now += gaps[n % 6]
            next_batch()
            if step is not None:
                optimizer.stepped(step, hook.clock.now)
        hook.core.ring.flush(hook.clock.now)

    next_batch = hook.iterator(lambda _: None)
    next_batch.track.builds = True
    return loop_of


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(optimizer, "_numbers", {})
    monkeypatch.setattr(optimizer, "_count", 0)


def blocks():
    gc.collect()
    return sys.getallocatedblocks()


WAYS = ["short", "long"]
STEPS = [None, object.__new__(type("Optimizer", (), {}))]


@pytest.mark.parametrize("step", STEPS, ids=["no steps", "steps"])
@pytest.mark.parametrize("hook", WAYS, indirect=True)
def test_blocks_do_not_grow_with_fetches(hook, loop, counted, step):
    loop(10_000, step)
    before = blocks()
    loop(FETCHES, step)
    grown = blocks() - before
    assert not hook.core.off
    assert abs(grown) < 100, "%d blocks more after %d fetches" % (grown, FETCHES)  # numbers get longer, caches fill


@pytest.mark.parametrize("hook", WAYS, indirect=True)
def test_no_line_of_the_hook_holds_more_memory_after_fetches(hook, loop):
    loop(10_000)
    ours = [tracemalloc.Filter(True, os.path.join(HOOK, "*"), all_frames=True)]
    tracemalloc.start(4)
    try:
        loop(1000)
        gc.collect()
        before = tracemalloc.take_snapshot().filter_traces(ours)
        loop(FETCHES // 5)  # under tracemalloc each takes five times as long
        gc.collect()
        after = tracemalloc.take_snapshot().filter_traces(ours)
    finally:
        tracemalloc.stop()
    held = sum(each.size_diff for each in after.compare_to(before, "lineno"))
    assert not hook.core.off
    assert held < 2000, after.compare_to(before, "lineno")[:5]


def test_a_row_of_fetches_is_all_that_waits(hook):
    observed = hook.iterator(lambda _: None)
    most = 0
    for _ in range(1000):
        hook.clock.now += 10
        observed()
        most = max(most, len(hook.core.ring.pending))
    assert most == 63
