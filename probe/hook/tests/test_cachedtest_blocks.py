"""Blocks of the cached-data test on a job whose every nanosecond is known."""

from __future__ import annotations

import os

import pytest
from cachedfakes import BUSY, DEVICE, HOST, LIVE, MS, REREAD, Job, Source

from datawait import cachedtest, layout


@pytest.fixture(autouse=True)
def unguarded(monkeypatch):
    armed = []
    monkeypatch.setattr(cachedtest.SaveGuard, "arm", lambda self: armed.append(True) or 1)
    return armed


def test_live_and_cached_blocks_without_workers(tmp_path, unguarded):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 40), (HOST, 40, 70)])
    source = Source(job.loader(build=5 * MS))
    job.train(source, 35)
    assert not unguarded  # nothing is patched by a live block
    job.train(source, 50)
    live, cached = job.ring.blocks()
    assert (live.void, live.leg, live.first, live.steps, live.fetches) == (False, LIVE, 11, 29, 29)
    assert live.step == 25 and live.wait == 29 * 5 * MS and live.device_timed
    assert (cached.void, cached.leg, cached.first, cached.steps) == (False, HOST, 42, 28)
    assert cached.step == 20 and cached.wait == 0
    assert unguarded == [True] and job.ring.marks() == [layout.TEST_BEGAN]
    assert job.ring.longs[layout.Q_BLOCKS] == 2 and not job.errors


def test_every_fetch_of_a_block_carries_its_number(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50)])
    source = Source(job.loader())
    job.train(source, 60)
    numbers = [block for _, _, flags, block in source.fetches if not flags & layout.DISCARDED]
    assert numbers == [0] * 10 + [1] * 20 + [2] * 20 + [0] * 10


def test_cheap_copies_replay_the_very_batches_of_the_live_block(tmp_path):
    """The fake clock says that a copy costs nothing, so both legs train on the same batches in the same order."""
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 31), (HOST, 31, 63)])
    job.train(Source(job.loader()), 70)
    live, cached = job.ring.blocks()
    counted = [batch["index"] for batch in job.seen[live.first : live.first + live.steps]]
    replayed = [batch["index"] for batch in job.seen[cached.first : cached.first + cached.steps]]
    assert counted == list(range(11, 31))
    assert replayed == (counted * 2)[: cached.steps]


def test_dear_copies_are_taken_from_the_loader_afterwards(tmp_path, monkeypatch):
    job = Job(tmp_path)
    freeze = cachedtest.legs.ReplayPool.keep

    def keep(pool, *args, **kwargs):
        job.clock.now += 1 * MS  # 5 % of the step
        return freeze(pool, *args, **kwargs)

    monkeypatch.setattr(cachedtest.legs.ReplayPool, "keep", keep)
    job.page.write(1, [(LIVE, 10, 31), (HOST, 31, 63)])
    source = Source(job.loader(build=2 * MS))
    job.train(source, 70)
    live, cached = job.ring.blocks()
    assert live.step == 22  # not 23: no copy was made in a counted step
    assert cached.step == 20
    assert source.count(layout.DISCARDED) == 9  # one was copied while the live block settled
    replayed = {batch["index"] for batch in job.seen[cached.first : cached.first + cached.steps]}
    assert len(replayed) == 10


def test_an_epoch_keeps_its_length(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 60), (LIVE, 60, 80), (BUSY, 80, 100)])
    source = Source(job.loader(workers=2, length=200), length=200)
    assert job.train(source) == 200
    assert [block.void for block in job.ring.blocks()] == [False] * 4


@pytest.mark.parametrize("workers, prefetch", [(8, 4), (2, 2), (1, 1)])
def test_an_epoch_keeps_its_length_though_more_was_discarded_than_replayed(tmp_path, workers, prefetch):
    job = Job(tmp_path)
    plan = [(LIVE, 10, 40), (HOST, 40, 53, 1), (LIVE, 53, 90), (HOST, 90, 103, 1), (LIVE, 103, 140)]
    job.page.write(1, plan)
    source = Source(job.loader(workers, prefetch, 10 * workers * MS, length=160), length=160)
    assert job.train(source) == 160
    assert job.train(Source(job.loader(workers, prefetch, length=50), length=50, epoch=1)) == 50


def test_accumulation_counts_fetches_and_steps_apart(tmp_path):
    job = Job(tmp_path, accumulate=4)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50)])
    job.train(Source(job.loader(build=5 * MS)), 60)
    live, cached = job.ring.blocks()
    assert (live.steps, live.fetches) == (19, 76) and live.step == 40
    assert (cached.steps, cached.fetches) == (18, 72) and cached.step == 20


@pytest.mark.parametrize("workers, accumulate, whole", [(4, 1, 4), (6, 4, 3), (4, 4, 1), (3, 2, 3)])
def test_counted_steps_are_whole_cycles_of_the_workers(tmp_path, workers, accumulate, whole):
    job = Job(tmp_path, accumulate=accumulate)
    job.page.write(1, [(LIVE, 10, 41), (HOST, 41, 70)])
    job.train(Source(job.loader(workers)), 80)
    for block in job.ring.blocks():
        assert not block.void and block.steps % whole == 0 and block.first + block.steps in (41, 70)


def test_too_few_steps(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 18), (HOST, 18, 28), (LIVE, 40, 60)])
    job.train(Source(job.loader()), 70)
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(True, 2), (True, 2), (False, 0)]


def test_a_block_that_lies_behind_is_written_off(tmp_path):
    job = Job(tmp_path)
    source = Source(job.loader())
    job.train(source, 100)
    job.page.write(1, [(LIVE, 10, 40), (HOST, 40, 60), (LIVE, 120, 140)])
    job.train(source, 60)
    assert [(b.block, b.void, b.reason) for b in job.ring.blocks()] == [(1, True, 2), (2, True, 2), (3, False, 0)]


def test_the_plan_may_grow_while_it_runs(tmp_path):
    job = Job(tmp_path)
    source = Source(job.loader())
    job.page.write(1, [(LIVE, 10, 30)])
    job.train(source, 20)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50)])
    job.train(source, 100)
    assert [b.void for b in job.ring.blocks()] == [False, False]


def test_an_epoch_that_ends_inside(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 40), (HOST, 40, 90), (LIVE, 90, 120)])
    assert job.train(Source(job.loader(length=30), length=30)) == 30
    assert job.train(Source(job.loader(length=30), length=30, epoch=1)) == 30
    job.train(Source(job.loader(), epoch=2), 80)
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(True, 1), (True, 1), (False, 0)]
    assert not job.errors


def test_an_iterator_dropped_inside_a_block_ends_it_too(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 40)])
    job.train(Source(job.loader()), 25)
    job.train(Source(job.loader(), epoch=1), 25)
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(True, 1)]


def test_batches_larger_than_the_cap(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50), (LIVE, 50, 70)], cap=10)
    source = Source(job.loader())
    assert job.train(source, 80) == 80
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(False, 0), (True, 3), (False, 0)]


def test_a_cap_for_three_batches(tmp_path):
    make = lambda index: bytes(1000) + bytes([index])  # noqa: E731
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50)], cap=3100)
    job.train(Source(job.loader(make=make)), 60)
    cached = job.ring.blocks()[1]
    assert not cached.void
    assert len(set(job.seen[cached.first : cached.first + cached.steps])) == 3


def test_solo_builds_ask_a_full_idle_loader_for_one_batch_at_a_time(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 34), (HOST, 34, 60, 1)])
    source = Source(job.loader(4, 2, 60 * MS))
    job.train(source, 70)
    _, cached = job.ring.blocks()
    solos = job.ring.solos()
    assert len(solos) == 4 and solos == list(range(solos[0], solos[0] + 4))
    assert cached.step == 20 and not cached.void
    discarded = [f for f in source.fetches if f[2] & layout.DISCARDED]
    assert all(b[0] - a[0] >= 60 * MS for a, b in zip(discarded[-4:], discarded[-3:]))  # idle again in between


def test_workers_that_never_become_idle(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50), (LIVE, 50, 70)])
    source = Source(job.loader(2))
    source.outstanding = lambda: 1000
    begin = job.clock.now
    job.train(source, 80)
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(False, 0), (True, 6), (False, 0)]
    assert job.clock.now - begin < 15_000 * MS


def test_a_queue_that_cannot_be_seen_is_not_guessed(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50)])
    source = Source(job.loader(2))
    source.ready = lambda: None
    job.train(source, 60)
    live, cached = job.ring.blocks()
    assert (live.void, live.ready) == (False, layout.UNKNOWN32)
    assert (cached.void, cached.reason) == (True, 6)


def test_a_loader_with_unknown_workers_is_judged_by_its_queue(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50)])
    source = Source(job.loader(2))
    source.workers, source.prefetch = layout.UNKNOWN32, None
    job.train(source, 60)
    assert [b.void for b in job.ring.blocks()] == [False, False]


def test_busy_leg_keeps_the_workers_working(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 34), (BUSY, 34, 62)])
    source = Source(job.loader(4, 2, 60 * MS))
    job.train(source, 70)
    live, busy = job.ring.blocks()
    assert live.step == 20 and busy.step == 20 and busy.leg == BUSY
    assert abs(source.count(layout.DISCARDED) - source.count(layout.CACHED)) <= 8


def test_device_leg(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (DEVICE, 30, 50), (LIVE, 50, 70)])
    source = Source(job.loader())
    moved = []
    source.to_device = lambda batch: moved.append(batch) or {"moved": batch["index"]}
    job.train(source, 80)
    assert [b.void for b in job.ring.blocks()] == [False] * 3
    assert len(moved) == 19
    assert all("moved" in batch for batch in job.seen[30:50]) and "index" in job.seen[50]


def test_device_leg_without_a_device(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (DEVICE, 30, 50), (LIVE, 50, 70)])
    source = Source(job.loader())
    source.device = False
    assert job.train(source, 80) == 80
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(False, 0), (True, 4), (False, 0)]
    assert not job.ring.blocks()[0].device_timed
    assert job.ring.notes == [
        {"note": "leg-skipped", "leg": "device-cached", "reason": "RuntimeError: no device to hold the batch"}
    ]


def test_emulated_device_holds_the_data_during_its_leg_only(tmp_path, monkeypatch):
    class Gpu:
        resident_data = False

    gpu = Gpu()
    emulated = pytest.importorskip("datawait.emulated")
    monkeypatch.setattr(emulated, "current", lambda: gpu)
    job = Job(tmp_path)
    states = []
    job.before_step = lambda: states.append(gpu.resident_data)
    job.page.write(1, [(LIVE, 10, 30), (DEVICE, 30, 50), (LIVE, 50, 70)])
    job.train(Source(job.loader()), 80)
    assert states == [False] * 30 + [True] * 20 + [False] * 30


def test_a_leg_this_hook_does_not_have(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(REREAD, 10, 30), (9, 30, 50), (LIVE, 50, 70)])
    job.train(Source(job.loader()), 80)
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(True, 4), (True, 4), (False, 0)]
    assert [note["leg"] for note in job.ring.notes] == ["reread", "9"]


def test_validation_inside_a_block_makes_it_void(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50)])
    source = Source(job.loader())
    job.train(source, 20)
    job.ring.longs[layout.TOTALS_AT // 8 + 8 + 3] += 7  # no-grad fetches of loader 1
    job.train(source, 40)
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(True, 8), (False, 0)]


def test_a_second_loader_is_settled_too_and_void_when_it_comes_late(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 40)])
    first, second = Source(job.loader(1)), Source(job.loader(1))
    second.loader = 1
    for turn in range(40):
        job.train(first, 1)
        if turn == 25:
            job.train(second, 1)
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(True, 8)]


def test_two_loaders_in_every_step(tmp_path):
    job = Job(tmp_path, accumulate=1)
    job.page.write(1, [(LIVE, 10, 40), (HOST, 40, 70), (LIVE, 70, 100)])
    first = Source(job.loader(1, 2, 15 * MS, make=lambda i: ("a", i)))
    second = Source(job.loader(2, 2, 15 * MS, make=lambda i: ("b", i)))
    second.loader = 1
    first.test = second.test = job.test
    pairs = []
    for _ in range(110):
        routed = job.test.poll(job.step)
        pairs.append([job.test.serve(s) if routed else s.live_next(0) for s in (first, second)])
        job.clock.now += 10 * MS
        job.step += 1
    assert all(a[0] == "a" and b[0] == "b" for a, b in pairs)
    live, cached, again = job.ring.blocks()
    assert not any(b.void for b in (live, cached, again))
    assert (live.step, cached.step, again.step) == (15, 10, 15) and cached.fetches == 2 * cached.steps


def test_the_loaders_own_error_reaches_the_script(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (BUSY, 30, 60), (LIVE, 60, 80)])
    source = Source(job.loader(2))
    job.train(source, 45)
    source.fail = ValueError("bad sample")
    with pytest.raises(ValueError, match="bad sample") as caught:
        job.train(source, 5)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    source.fail = None
    job.train(source, 40)
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(False, 0), (True, 5), (False, 0)]
    assert not job.errors


def test_an_error_of_our_own_ends_the_test_and_not_the_training(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50), (LIVE, 50, 70)], park=90)
    source = Source(job.loader())
    source.synchronize = lambda: 1 / 0
    assert job.train(source, 80) == 80
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(True, 4)]
    assert job.errors == [("cached-data test: serve", "ZeroDivisionError: division by zero")]
    assert [batch["index"] for batch in job.seen] == list(range(80))
    assert job.test.block == 0


def test_fork_forgets_the_test(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50)])
    source = Source(job.loader())
    job.train(source, 20)
    pid = os.fork()
    if not pid:
        polled = [job.test.poll(step) for step in (20, 30, 10**6)]
        os._exit(0 if polled == [False] * 3 and job.test.block == 0 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    job.train(source, 40)
    assert [b.void for b in job.ring.blocks()] == [False, False]
