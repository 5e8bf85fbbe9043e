"""Every shape of PyTorch loader trains as it would unobserved, and the ring says what the script saw."""

from __future__ import annotations

import pytest
from agreement import agrees, unchanged

from datawait import layout

SHAPES = {
    "map, no workers": {},
    "shuffled": {"shuffle": True},
    "shuffled, 2 workers": {"shuffle": True, "workers": 2},
    "map, 1 worker": {"workers": 1},
    "map, 4 workers": {"workers": 4},
    "iterable, no workers": {"kind": "iterable"},
    "iterable, 1 worker": {"kind": "iterable", "workers": 1},
    "iterable, 4 workers": {"kind": "iterable", "workers": 4},
    "iterable, last batches short": {"kind": "iterable", "workers": 2, "length": 23},
    "batch_sampler, no workers": {"batch_sampler": True},
    "batch_sampler, 2 workers": {"batch_sampler": True, "workers": 2},
    "batch_size=None, no workers": {"batch_size": None, "length": 12},
    "batch_size=None, 2 workers": {"batch_size": None, "length": 12, "workers": 2},
    "iterable with batch_size=None, 2 workers": {"kind": "iterable", "batch_size": None, "length": 12, "workers": 2},
    "drop_last": {"length": 25, "batch_size": 4, "drop_last": True, "workers": 2},
    "persistent workers": {"workers": 2, "persistent_workers": True, "epochs": 4},
    "iterable with persistent workers": {"kind": "iterable", "workers": 2, "persistent_workers": True, "epochs": 3},
    "timeout": {"workers": 1, "timeout": 30},
    "worker_init_fn": {"workers": 2, "drawing_init": True},
    "generator, no workers": {"generator": 99},
    "generator, 2 workers": {"workers": 2, "generator": 99},
    "prefetch_factor 1": {"workers": 2, "prefetch_factor": 1},
    "prefetch_factor 6": {"workers": 2, "prefetch_factor": 6},
    "fork": {"workers": 2, "multiprocessing_context": "fork"},
    "spawn": {"workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True},
    "forkserver": {"workers": 1, "multiprocessing_context": "forkserver", "persistent_workers": True},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_a_training_is_seen_whole_and_unchanged(cells, shape):
    pair = cells("loaders:train", **shape)
    unchanged(pair)
    agrees(pair)
    ring, workers, epochs = pair.ring, shape.get("workers", 0), shape.get("epochs", 2)
    assert ring.state == layout.CLOSED and ring.all("MARK")[-1].ref == layout.ENDED
    assert len(pair.workers) == workers * (1 if shape.get("persistent_workers") else epochs)
    iterators = ring.all("ITERATOR")
    resets = [bool(shape.get("persistent_workers")) and epoch > 0 for epoch in range(epochs)]
    assert [bool(i.flags & layout.RESET) for i in iterators] == resets
    assert {i.workers for i in iterators} == {workers}
    assert {i.prefetch for i in iterators} == {shape.get("prefetch_factor", 2) if workers else None}
    # How long a sampler of the script is, or an iterable data set, nobody asks.
    assert {i.length for i in iterators} == {8 if shape.get("shuffle") else None}
    assert ring.totals(0)["built"] == (0 if workers else len(pair.observed.steps))


@pytest.mark.parametrize("pin", [False, True], ids=["", "pinned"])
@pytest.mark.parametrize("kind", ["map", "iterable"])
def test_a_queue_left_alone_is_seen_to_be_full(cells, kind, pin):
    pair = cells("loaders:full_queue", kind=kind, workers=2, prefetch_factor=3, pin=pin)
    unchanged(pair)
    fetches = agrees(pair)["train"]
    assert [f.ready for f in fetches] == [6] * 3


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_go_through_the_pin_thread(cells, workers):
    """On a stand-in for an accelerator: there is none here."""
    pair = cells("loaders:pinned", workers=workers)
    unchanged(pair)
    agrees(pair)
    same = pair.observed.same
    assert same["pinned on"] == [["pin" if workers else "main"]] and same["pinned"][0] == 2 * len(same["order"])


def test_warnings_name_the_line_they_would_unobserved(cells):
    unchanged(cells("loaders:train", workers=1, pin_memory=True, epochs=1))  # newer ones say: no accelerator
    pair = cells("loaders:warned")
    unchanged(pair)
    assert pair.bare.same["warnings"] and "collating" in pair.bare.stderr


def test_batches_out_of_order(cells):
    if cells.torch < (2, 6):
        pytest.skip("in_order came with PyTorch 2.6")
    pair = cells("loaders:out_of_order")
    unchanged(pair)
    fetches = agrees(pair)["train"]
    firsts = pair.observed.same["first"]
    assert firsts[0] != 0
    assert [f.batch for f in fetches[:-1]] == [first // 3 for first in firsts]


MORE = [
    ("restarted", {}),
    ("peeked", {}),
    ("pipes", {}),
    ("pipes", {"workers": 1}),
    ("at_once", {}),
    ("at_once", {"workers": 1}),
]


@pytest.mark.parametrize("cell, arguments", MORE, ids=["%s %s" % more for more in MORE])
def test_rarer_shapes(cells, cell, arguments):
    pair = cells("loaders:" + cell, **arguments)
    unchanged(pair)
    agrees(pair)


@pytest.mark.parametrize("workers", [0, 1])
def test_nobody_touches_what_belongs_to_the_script(cells, workers):
    pair = cells("loaders:touchy", workers=workers)
    unchanged(pair)
    agrees(pair)


def test_loaders_and_iterators_look_as_ever(cells):
    unchanged(cells("loaders:every_iterator"))
