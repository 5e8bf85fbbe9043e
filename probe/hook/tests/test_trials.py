"""Other arguments and kept samples, tried on real loaders amid a training; truth is what the script does."""

from __future__ import annotations

import pytest
import ringreader
from cachedfakes import LIVE
from test_cachedtest_torch import UNAVAILABLE, blocks_of, errors_of, run, step_ms  # noqa: F401

from datawait.trials import Memo

TRIAL = 5
MEMOISED = 1 << 24


def arguments(workers, prefetch=2, flags=0):
    return workers | prefetch << 16 | flags


def test_more_workers_are_tried_and_the_training_goes_on_as_before(run):  # noqa: F811
    """A batch sleeps 40 ms and a step computes 20: one worker gives 40 ms a step, four give 20."""
    ring = run((LIVE, 10, 30), (TRIAL, 30, 60, 0, arguments(4)), (LIVE, 60, 80), workers=1, build=0.04, compute=0.02,
               batches=100)  # fmt: skip
    assert not errors_of(ring)
    before, tried, after = blocks_of(ring)
    assert [b.flags & 1 for b in (before, tried, after)] == [0] * 3
    assert step_ms(tried) < 0.75 * step_ms(before) and step_ms(after) > 1.4 * step_ms(tried)
    assert [note for note in ring.notes if note["note"] == "trial"] == [
        {"note": "trial", "block": 2, "workers": 4, "prefetch": 2, "memoised": False}
    ]
    assert run.epochs == [100]
    live = run.seen[:30] + run.seen[60:]  # the training's own batches come in their order
    assert live == sorted(live)


def test_kept_samples_cost_nothing_to_build(run):  # noqa: F811
    ring = run((LIVE, 10, 30), (TRIAL, 30, 60, 0, arguments(1, 2, MEMOISED)), workers=1, build=0.04, compute=0.02,
               batches=80)  # fmt: skip
    live, kept = blocks_of(ring)
    assert live.flags & 1 == kept.flags & 1 == 0
    assert step_ms(kept) < 0.75 * step_ms(live)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_training_without_workers_and_a_trial_without(run, workers):  # noqa: F811
    ring = run((LIVE, 10, 30), (TRIAL, 30, 60, 0, arguments(2 - workers)), (LIVE, 60, 80), workers=workers,
               build=0.004, batches=120)  # fmt: skip
    assert [b.flags & 1 for b in blocks_of(ring)] == [0] * 3 and not errors_of(ring)
    assert run.epochs == [120]


def test_nobody_but_the_training_sees_the_trial(run):  # noqa: F811
    """No rings of its workers, no loader of its own, and the script's random state where it was."""
    body = """
import random
now = torch.get_rng_state().tolist(), random.getstate()
if step == 29:
    saved = now
assert step < 29 or now == saved, step
"""
    run.page.write(1, [(LIVE, 10, 30), (TRIAL, 30, 60, 0, arguments(2))])
    run.start(workers=1, build=0.002, batches=80, body=body)
    ring = run.finish()
    assert len(blocks_of(ring)) == 2 and len(ring.note("loader")) == 1
    workers = [r for r in ringreader.rings(run.spool) if r.declaration["producer"] == "worker"]
    assert len(workers) == 1


def test_what_cannot_be_drawn_again_is_not_tried(run):  # noqa: F811
    ring = run((LIVE, 10, 30), (TRIAL, 30, 60, 0, arguments(4)), workers=2, iterable=True, batches=100)
    tried = blocks_of(ring)[1]
    assert (tried.flags & 1, tried.reason) == (1, UNAVAILABLE) and run.epochs == [100]
    (skipped,) = ring.note("leg-skipped")
    assert skipped["leg"] == "trial" and "stream" in skipped["reason"]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_kept_sample_is_built_once_in_whichever_way_batches_are_asked_for(at_once):
    class Samples:
        built = 0

        def __len__(self):
            return 3

        def __getitem__(self, i):
            self.built += 1
            return [i]

        def __getitems__(self, indexes):
            return [self[i] for i in indexes]

    samples = Samples()
    memo = Memo(samples)
    batches = [memo.__getitems__([0, 2]) if at_once else [memo[i] for i in (0, 2)] for _ in range(5)]
    assert batches == [[[0], [2]]] * 5 and samples.built == 2 and len(memo) == 3
