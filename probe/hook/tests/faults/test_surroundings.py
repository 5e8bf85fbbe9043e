"""Hostile surroundings, on real PyTorch: training ends as it would without the hook, and the spool tells of it where
there is anything to tell. What happens in each stands in surroundings.py."""

from __future__ import annotations

import pytest
from programs import outcome
from surroundings import SURROUNDINGS

pytestmark = pytest.mark.xdist_group("surroundings")
OFF = 2
OPEN = 1


@pytest.fixture(scope="module")
def ran(torch_python):
    return outcome(torch_python, "surroundings.py", PYTHONWARNINGS="ignore")


@pytest.mark.parametrize("name", [name for name in SURROUNDINGS if name != "near_the_recursion_limit"])
def test_training_ends_as_it_would_without_the_hook(ran, name):
    assert ran[name]["differences"] == []
    assert name == "ring_is_replaced" or ran[name]["wrong"] == []


LEFT = ("left_by_os_exit", "left_by_sys_exit", "left_by_an_exception")


@pytest.mark.parametrize("name", [name for name in SURROUNDINGS if name not in LEFT])
def test_the_bare_run_is_one_to_compare_with(ran, name):
    status, result, _, stderr = ran[name]["bare"]
    assert status == 0 and result is not None and stderr == ""
    assert False not in (result if isinstance(result, list) else [])


# Surroundings in which something fails, and what is told of it.
TOLD = {
    "no_room_at_allocation": "No space left on device",
    "file_system_is_full": "bytes free",
    "spool_is_on_nfs": "is on nfs4",
    "many_short_lived_workers": "bytes of rings",
    "spool_opens_to_everybody": "can be written by others",
    "files_may_not_grow": "may have only 100000 bytes",
    "near_the_recursion_limit": "RecursionError",
    "the_clock_goes_back": "out of range",
    "the_clock_jumps": "out of range",
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_fails_is_told_and_nothing_else(ran, name):
    errors = " ".join(ran[name]["errors"])
    if name == "file_system_is_small" and ran[name]["bare"][1][1]:  # where one may be mounted
        assert "bytes free" in errors
        return
    assert TOLD[name] in errors if name in TOLD else errors == ""


def main_ring(ran, name):
    (ring,) = [ring for ring in ran[name]["rings"] if ring["producer"] == "main"]
    return ring


@pytest.mark.parametrize(
    "name, fetches",
    [
        ("spool_becomes_read_only", 18), ("files_may_grow_a_little", 18), ("umask_takes_all", 18), ("traced", 18),
        ("profiled", 18), ("collected_all_the_time", 18), ("every_file_is_closed_and_others_opened", 154),
        ("standard_files_are_closed", 24), ("no_descriptor_left", 22), ("a_storm_of_signals", 160),
        ("the_working_folder_is_gone", 4), ("forks_while_a_sample_is_built", 20),
    ],
)  # fmt: skip
def test_it_is_observed_all_the_same(ran, name, fetches):
    assert main_ring(ran, name)["fetches"] == fetches and main_ring(ran, name)["hook"] != OFF


def test_a_ring_may_be_as_large_as_a_file_may_grow(ran):
    assert [ring["capacity"] for ring in ran["files_may_grow_a_little"]["rings"]] == [8192] * 3


def test_forks_in_mid_record_have_rings_of_their_own(ran):
    assert sorted(ring["fetches"] for ring in ran["forks_in_mid_record"]["rings"]) == [4, 4, 4, 9]


def test_every_loader_and_fetch_is_counted_however_many_there_are(ran):
    assert main_ring(ran, "ten_thousand_loaders")["fetches"] == 10_010
    assert main_ring(ran, "a_hundred_thousand_fetches")["fetches"] == 120_000


def test_the_rings_of_ended_workers_take_their_share_of_the_spool_and_no_more(ran):
    sizes = [65536 + 64 * ring["capacity"] for ring in ran["many_short_lived_workers"]["rings"]]
    assert 2 << 20 < sum(sizes) <= 3 << 20


def test_the_hook_needs_one_frame(ran):
    """Where PyTorch just finds room, its fetch may fail, and the hook turn itself off; training goes on."""
    bare, hooked = (ran["near_the_recursion_limit"][run] for run in ("bare", "outcome"))
    (alone, *bare_result), (with_hook, *result) = bare[1], hooked[1]
    assert 5 < alone <= with_hook <= alone + 1
    assert [hooked[0], result, *hooked[2:]] == [bare[0], bare_result, *bare[2:]]


def test_a_clock_that_stands_still_makes_no_time(ran):
    ring = main_ring(ran, "the_clock_stands_still")
    assert ring["longest"] == ring["shortest"] == 0 and ring["fetches"] == 18 and not any(ring["wait"])


def test_what_leaves_at_once_is_not_said_to_have_ended(ran):
    """What was put off is lost with it; no more than was fetched is counted."""
    ring = main_ring(ran, "left_by_os_exit")
    assert ring["state"] == OPEN and 0 < ring["fetches"] <= 6
