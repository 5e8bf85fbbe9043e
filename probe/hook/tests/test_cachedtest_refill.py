"""The queue of a loader fills up while batches come from memory; the live block after it must not be fooled.

Each case is a loader whose step time follows from arithmetic: T = max(C, L/W) for builds of equal length, and a live
run without any test as the reference for the others. Discarding a fixed W·P + 2 steps would see no gain in any of them.
"""

from __future__ import annotations

import random

import pytest
from cachedfakes import BUSY, HOST, LIVE, MS, Job, Source

from datawait import cachedtest


@pytest.fixture(autouse=True)
def unguarded(monkeypatch):
    monkeypatch.setattr(cachedtest.SaveGuard, "arm", lambda self: 1)


def plan(warm, live, cached, pairs, leg=HOST):
    blocks, at = [], warm
    for _ in range(pairs):
        blocks += [(LIVE, at, at + live), (leg, at + live, at + live + cached)]
        at += live + cached
    return blocks, at


@pytest.mark.parametrize(
    "workers, prefetch, build, compute, gain",
    [
        (8, 2, 180, 20, 0.111),  # a fixed discard saw 0
        (16, 2, 400, 20, 0.20),  # 0
        (1, 2, 105, 100, 0.048),  # 0.005
        (4, 2, 160, 20, 0.5),
        (8, 2, 159, 20, 0.0),  # the loader keeps up, barely
        (4, 4, 40, 20, 0.0),
        (8, 8, 180, 20, 0.111),
    ],
)
def test_the_gain_of_equal_builds_is_exact(tmp_path, workers, prefetch, build, compute, gain):
    job = Job(tmp_path, compute * MS)
    blocks, end = plan(warm=1500, live=4 * workers + 20, cached=20, pairs=4)
    job.page.write(1, blocks)
    job.train(Source(job.loader(workers, prefetch, build * MS, length=100_000)), end + 10)
    written = job.ring.blocks()
    assert len(written) == 8 and not any(block.void for block in written)
    for live, cached in zip(written[::2], written[1::2]):
        assert cached.step == compute
        assert live.step == pytest.approx(max(compute, build / workers))
        assert 1 - cached.step / live.step == pytest.approx(gain, abs=0.001)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("workers, prefetch, build, compute", [(8, 2, 180, 20), (4, 2, 70, 20), (4, 4, 100, 20)])
def test_the_gain_of_unequal_builds(tmp_path, workers, prefetch, build, compute, seed):
    """Builds vary by a third and more. Live blocks are held against the same loader in a run without cached ones."""

    def builds():
        rng = random.Random(seed)
        drawn = [int(MS * build * rng.lognormvariate(-0.06, 0.35)) for _ in range(20_000)]
        return lambda index: drawn[index]

    reference = Job(tmp_path, compute * MS)
    source = Source(reference.loader(workers, prefetch, builds(), length=20_000))
    reference.train(source, 1000)
    begin = reference.clock.now
    reference.train(source, 2000)
    true = (reference.clock.now - begin) / 2000 / MS

    job = Job(tmp_path, compute * MS)
    blocks, end = plan(warm=1000, live=100 + workers, cached=20, pairs=20)
    job.page.write(1, blocks)
    job.train(Source(job.loader(workers, prefetch, builds(), length=20_000)), end + 10)
    live = [block for block in job.ring.blocks() if block.leg == LIVE]
    measured = sum(block.end - block.begin for block in live) / sum(block.steps for block in live) / MS
    assert measured == pytest.approx(true, rel=0.03)


def test_interference_shows_in_the_busy_leg_only(tmp_path):
    """While workers build, the step is slower by a tenth: live − busy is the wait, busy − cached the interference."""
    job = Job(tmp_path)
    loader = job.loader(8, 2, 200 * MS, length=100_000)

    def compute():
        building = sum(at > job.clock.now for at in loader.ready_at.values())
        job.clock.now += 2 * MS if building > 4 else 0

    job.before_step = compute
    quiet, end = plan(warm=1000, live=60, cached=30, pairs=2)
    busy, end = plan(warm=end, live=60, cached=46, pairs=2, leg=BUSY)
    job.page.write(1, quiet + busy)
    job.train(Source(loader), end + 10)
    steps = {block.leg: block.step for block in job.ring.blocks() if not block.void}
    assert steps[HOST] == 20
    assert steps[BUSY] == pytest.approx(22, abs=0.1)
    assert steps[LIVE] == pytest.approx(25, abs=0.1)


def test_depth_is_the_one_before_the_first_of_several_cached_blocks(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 1000, 1040), (HOST, 1040, 1060), (HOST, 1060, 1080), (LIVE, 1080, 1120)])
    job.train(Source(job.loader(8, 2, 180 * MS)), 1130)
    live, cached, second, again = job.ring.blocks()
    assert second.ready == 16 and again.ready == 16  # full
    assert cached.ready < 8
    assert (live.step, again.step) == (22.5, 22.5)


def test_a_new_epoch_has_no_queue_to_empty(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 40, 80), (HOST, 80, 100), (LIVE, 110, 150)])
    job.train(Source(job.loader(4, 2, 100 * MS, length=105), length=105))
    source = Source(job.loader(4, 2, 100 * MS), epoch=1)
    job.train(source, 60)
    assert source.count(16) == 0
    assert [b.step for b in job.ring.blocks()] == [25, 20, 25]
