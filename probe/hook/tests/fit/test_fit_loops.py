"""Every shape of training loop runs as it would unobserved, and the ring says what the script saw."""

from __future__ import annotations

import os
import signal

import pytest
from agreement import agrees, unchanged

from datawait import layout


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_that_train_have_rings_of_their_own(cells, method):
    pair = cells("loops:in_processes", method=method)
    unchanged(pair)
    assert pair.mains == []
    for number in range(2):
        ours = pair.part(str(number))
        unchanged(ours)
        agrees(ours)
        assert len(ours.workers) == number


def check(cells, cell, **arguments):
    pair = cells("loops:" + cell, **arguments)
    unchanged(pair)
    return pair, agrees(pair)


PLAIN = [
    ("zipped", {}),
    ("twins", {}),
    ("early_break", {}),
    ("early_break", {"workers": 2}),
    ("short_epochs", {}),
    ("short_epochs", {"persistent": True}),
    ("forever", {}),
    ("progress_bar", {}),
    ("kept", {}),
    ("kept", {"workers": 2}),
    ("after_the_end", {}),
    ("after_the_end", {"workers": 1}),
    ("scheduled", {}),
    ("saves", {}),
]


@pytest.mark.parametrize("cell, arguments", PLAIN, ids=["%s %s" % plain for plain in PLAIN])
def test_a_loop_is_seen_whole_and_unchanged(cells, cell, arguments):
    check(cells, cell, **arguments)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("off", ["no_grad", "inference_mode"])
def test_validation_is_never_charged_to_training(cells, off, workers):
    pair, fetches = check(cells, "validation", off=off, workers=workers)
    assert len(fetches["validate"]) == 4 * 3
    marks = [m for m in pair.ring.all("MARK") if m.ref == layout.VALIDATION]
    loops = [fetches["validate"][at : at + 3] for at in range(0, 12, 3)]
    assert [(m.begin, m.end) for m in marks] == [(loop[0].enter, loop[-1].exit) for loop in loops]
    assert {m.value for m in marks} == {fetches["validate"][0].ref}
    train = pair.ring.totals(fetches["train"][0].ref)
    assert train["wait"] == sum(f.exit - f.enter for f in fetches["train"])


def test_a_loader_made_anew_each_time_is_one(cells):
    pair, fetches = check(cells, "validation_made_anew")
    assert len(pair.ring.note("loader")) == 2
    assert [f.epoch for f in fetches["validate"] if f.batch == 0] == [0, 1, 2]


def test_two_loaders_and_two_optimizers(cells):
    pair, fetches = check(cells, "gan")
    assert pair.ring.step == 8 and len({s.ref for s in pair.ring.all("STEP")}) == 2
    assert [f.step for f in fetches["real"]] == list(range(9))


def test_accumulated_gradients_are_four_fetches_a_step(cells):
    _, fetches = check(cells, "accumulation")
    assert [f.step for f in fetches["train"]][4:] == [1, 1, 1, 1, 2]


@pytest.mark.parametrize("batch_size", [None, 2])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loop_that_skips_bad_samples_sees_all_the_others(cells, workers, batch_size):
    pair, fetches = check(cells, "skip_bad", workers=workers, batch_size=batch_size)
    bad = 2 * 3  # samples 3, 4 and 11 of both epochs, which lie in three batches of two as well
    assert len(pair.observed.same["skipped"]) == bad
    assert sum(bool(f.flags & layout.ERROR) for f in fetches["train"]) == bad


def test_a_cycle_asks_the_loader_once(cells):
    _, fetches = check(cells, "cycled")
    assert len(fetches["train"]) == 4


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_inside_a_data_set_is_upstream(cells, workers):
    pair, fetches = check(cells, "nested", workers=workers)
    assert pair.ring.totals(fetches["outer"][0].ref)["fetches"] == len(pair.observed.steps)
    assert ("inner" in fetches) == (workers == 0)


def test_workers_end_with_their_iterator(cells):
    pair, _ = check(cells, "deleted")
    assert pair.bare.same["children"] == [2, 0, 2, 0, 0]


def test_a_prefetching_thread_is_upstream(cells):
    pair, fetches = check(cells, "prefetching_thread")
    assert pair.ring.fetches == 0 and all(f.flags & layout.OFF_THREAD for f in fetches["train"])


@pytest.mark.parametrize("accumulate, pause", [(1, 0.0), (4, 0.0), (4, 0.01)])
def test_a_training_on_another_thread_is_seen_from_its_first_fetch(cells, accumulate, pause):
    pair, fetches = check(cells, "training_thread", accumulate=accumulate, pause=pause)
    assert pair.ring.fetches == 16 and not any(f.flags & layout.OFF_THREAD for f in fetches["train"])


def test_one_training_after_the_other_each_on_its_thread(cells):
    pair, _ = check(cells, "threads_in_turn")
    assert pair.ring.fetches == 4 * 8


def test_neither_thread_is_the_main_one(cells):
    _, fetches = check(cells, "prefetching_and_training_threads")
    assert all(f.flags & layout.OFF_THREAD for f in fetches["upstream"])
    assert not any(f.flags & layout.OFF_THREAD for f in fetches["own"])


def test_a_pool_that_fetches_is_upstream(cells):
    _, fetches = check(cells, "asynchronous")
    assert all(f.flags & layout.OFF_THREAD for f in fetches["train"])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_bad_sample_ends_the_script_as_ever(cells, workers):
    pair, _ = check(cells, "bad_sample", workers=workers)
    assert os.WEXITSTATUS(pair.observed.status) == 1
    assert "ValueError: item 8 cannot be read" in pair.observed.stderr
    assert not [m for m in pair.ring.all("MARK") if m.ref == layout.ENDED]


@pytest.mark.parametrize("caught", [True, False])
@pytest.mark.parametrize("workers", [0, 1])
def test_an_interrupt_reaches_the_script(cells, workers, caught):
    pair, fetches = check(cells, "interrupted", workers=workers, caught=caught)
    assert pair.observed.stdout == ("interrupted\n" if caught else "")
    assert pair.observed.status == (0 if caught else signal.SIGINT)
    assert [bool(f.flags & layout.ERROR) for f in fetches["train"]] == [False] * 6 + [True]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_handler_of_the_script_saves_and_leaves(cells, workers):
    pair, _ = check(cells, "terminated", workers=workers)
    assert os.WEXITSTATUS(pair.observed.status) == 7 and list(pair.observed.files) == ["last.pt"]


@pytest.mark.parametrize("how, code", [("return", 0), ("exit", 3), ("message", 1), ("hard", 4)])
def test_a_script_leaves_in_mid_epoch_as_it_would(cells, how, code):
    pair, _ = check(cells, "leaves", how=how, whole_exit=True)
    assert os.WEXITSTATUS(pair.observed.status) == code
    assert pair.ring.state == (layout.OPEN if how == "hard" else layout.CLOSED)


def test_a_step_with_a_closure_is_one(cells):
    pair, _ = check(cells, "closures")
    assert pair.ring.step == 8 and len(pair.observed.same["evaluated"]) > 16


@pytest.mark.parametrize("count", [3, 20])
def test_the_first_of_several_optimizers_counts(cells, count):
    pair, _ = check(cells, "several_optimizers", count=count)
    assert pair.ring.step == 8


def test_a_new_optimizer_takes_over_from_one_that_is_gone(cells):
    pair, _ = check(cells, "sweep")
    assert pair.ring.step == 18 * 2


def test_a_step_that_a_scaler_skips_is_none(cells):
    pair, _ = check(cells, "scaled")
    assert pair.ring.step == 6 and pair.observed.same["scale"] == [4.0]


def test_without_an_optimizer_a_fetch_is_a_step(cells):
    pair, fetches = check(cells, "by_hand")
    assert (pair.ring.unit, pair.ring.step) == (layout.BY_FETCH, 16)
    assert [f.step for f in fetches["train"] if not f.flags & layout.END] == list(range(16))


@pytest.mark.parametrize("workers", [0, 2])
def test_inference_has_no_steps(cells, workers):
    pair, fetches = check(cells, "inference", workers=workers)
    assert (pair.ring.unit, pair.ring.step) == (layout.BY_FETCH, 0)
    assert pair.ring.totals(0)["no_grad"] == 8 and len(fetches["train"]) == 9
