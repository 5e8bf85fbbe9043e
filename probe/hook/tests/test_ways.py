"""The short way through a fetch leaves the records of the long way, which looks at everything: its slow twin."""

from __future__ import annotations

import random
import shutil
import tempfile

import pytest

from datawait import fetch, layout, optimizer, stream


def play(hook, seed, short):
    """A random training program on a false clock; returns what a reader finds of it."""
    dice = random.Random(seed)
    grad = [True]
    fetch.is_grad_enabled = lambda: grad[0]
    hook.short = short
    folder = hook.core.folder = tempfile.mkdtemp(prefix="datawait-test-", dir="/dev/shm")
    hook.core.reset()
    hook.core.role = "main"
    hook.core.off = False
    hook.clock.now = 1_000_000_000_000
    hook.cpu.now = 500

    def call(_):
        hook.clock.now += dice.choice([40, 900, 30_000, 700_000, 4_000_000])
        if dice.random() < 0.02:
            raise dice.choice([StopIteration, ValueError])
        if dice.random() < 0.1:
            inner()
        return "batch"

    inner = hook.iterator(lambda _: None, number=7)
    waiting = dice.choice([lambda _: dice.randrange(5), None])
    loaders = [hook.iterator(call, number=n, ready=waiting, index=dice.choice([None, lambda _: 5])) for n in range(2)]
    model = object.__new__(type("Optimizer", (), {}))
    steps = dice.random() < 0.5
    try:
        for _ in range(dice.randrange(300, 3000)):
            hook.clock.now += dice.choice([20, 1000, 100_000, 3_000_000])
            grad[0] = dice.random() > 0.05
            try:
                loaders[dice.random() < 0.1]()
            except (StopIteration, ValueError):
                pass
            if dice.random() < 0.02:
                loaders[0].track.restart()
            if steps and dice.random() < 0.8:
                optimizer.stepped(model, hook.clock.now)
        assert not hook.core.off
        ring = hook.read()
    finally:
        shutil.rmtree(folder)
    header = (ring.step, ring.unit, ring.fetches, ring.length, ring.batch, ring.head)
    return header, [ring.totals(n) for n in (0, 1, 7)], [dict(record) for record in ring.records]


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_leave_the_same_records(hook, monkeypatch, seed):
    monkeypatch.setattr(optimizer, "_numbers", {})
    monkeypatch.setattr(optimizer, "_count", 0)
    monkeypatch.setattr(layout, "MAIN_CAPACITY", layout.LEAST_CAPACITY)  # some programs go round the ring
    short = play(hook, seed, True)
    optimizer._numbers.clear()
    optimizer._count = 0
    assert short == play(hook, seed, False)
    assert stream.core.ring is not None and len(short[2]) > 200


@pytest.mark.parametrize("between", [10_000, 2_000_000])
def test_what_a_fetch_took_holds_its_share_of_writing_once(hook, between):
    observed = hook.iterator(lambda _: "batch")
    observed()
    hook.clock.tick = 1000  # every look at the clock costs a microsecond, and nothing else does
    ring = hook.core.ring

    def loop(fetches):
        for _ in range(fetches):
            hook.clock.now += between
            observed()
        return ring.longs[layout.Q_OWN_FETCHES], ring.longs[layout.Q_OWN_NS]

    before, took = loop(20_000)
    after, then = loop(6_400)
    assert after - before == pytest.approx(6_400, abs=64)
    # began, enter | next() | leave and the end make two, and whoever writes what is pending looks once more
    writes = 6_400 if between > 1_000_000 else 6_400 / 64
    assert then - took == pytest.approx(2000 * 6_400 + 1000 * writes, rel=0.05)
