"""Old and new: what a file's times, its place and its name say to the save-guard."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from datawait import guardnames, place
from datawait.guardpaths import SKEW, Ages, past_now, process_start


@pytest.fixture
def work(tmp_path, monkeypatch):
    """The working folder of a run; tmp_path around it is a place for temporary files."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def written(path, content="weights"):
    path.write_text(content)
    return path


def test_what_is_written_in_the_same_tick_is_told_apart(work):
    """File times move in steps of up to ten milliseconds; many files fall into one."""
    for turn in range(30):
        before = written(work / ("before-%d.txt" % turn))
        ages = Ages(str(work / "spool"), past_now())
        after = written(work / ("after-%d.txt" % turn))
        assert ages.old(before) and not ages.old(after)


def test_what_the_run_made_before_the_first_cached_batch_is_old(work):
    made = written(work / "best.txt")
    ages = Ages(str(work / "spool"), past_now())
    assert process_start() < made.stat().st_mtime and ages.old(made) and ages.old_content(made)


def test_temporary_files_and_caches_are_old_only_if_the_run_is_younger(work, tmp_path, monkeypatch):
    places = [tmp_path / "scratch", tmp_path / "hub", work / "wandb", work / "mlruns" / "0"]
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    for folder in places:
        folder.mkdir(parents=True)
        written(folder / "a.txt")
    ages = Ages(str(work / "spool"), past_now())
    assert not any(ages.old(folder / "a.txt") for folder in places)
    for folder in places:
        os.utime(folder / "a.txt", (1, 1))
    assert all(ages.old(folder / "a.txt") for folder in places)


def test_a_temporary_folder_inside_the_working_folder(work, monkeypatch):
    (work / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(work / "tmp"))
    inside, beside = written(work / "tmp" / "a"), written(work / "b")
    ages = Ages(str(work / "spool"), past_now())
    assert not ages.old(inside) and ages.old(beside)


def test_a_run_that_works_in_the_temporary_folder_itself(work, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(work))
    path = written(work / "a")
    assert not Ages(str(work / "spool"), past_now()).old(path)


def test_a_file_server_has_a_clock_of_its_own(work, monkeypatch):
    monkeypatch.setattr(place, "filesystem", lambda folder: "nfs4")
    limit = past_now()
    ages = Ages(str(work / "spool"), limit)
    path = written(work / "a")
    assert ages.old(path)
    beyond = limit + SKEW + 1_000_000_000
    os.utime(path, ns=(beyond, beyond))
    assert ages.old(path)  # its change time is not past the limit
    ages.limit -= SKEW + 1_000_000_000
    assert not ages.old(path)


def test_an_old_file_stays_old_whatever_becomes_of_its_times(work):
    path = written(work / "a")
    ages = Ages(str(work / "spool"), past_now())
    ages.keep(path)
    os.utime(path)
    assert ages.old(path) and ages.old_content(path)
    ages.keep(work / "none"), ages.keep(None), ages.keep(3)


def test_a_tree_too_large_to_look_through_counts_as_old(work, monkeypatch):
    monkeypatch.setattr("datawait.guardpaths.MOST_ENTRIES", 10)
    ages = Ages(str(work / "spool"), 0)
    for number in range(11):
        (work / str(number)).touch()
    assert ages.old_tree(work)


def test_process_start():
    before = time.time()
    code = "from datawait.guardpaths import process_start; print(process_start())"
    started = float(
        subprocess.check_output([sys.executable, "-c", code], env={"PYTHONPATH": os.pathsep.join(sys.path)})
    )
    assert before - 0.5 < started < time.time()
    assert process_start() < before


@pytest.mark.parametrize(
    "name, kind",
    [
        ("model.pt", "model"),
        ("MODEL_BEST.PTH.TAR", "model"),
        ("pytorch_model-00001-of-00002.bin", "model"),
        ("data.tar", None),
        ("app.log", "log"),
        ("app.log.3", "log"),
        ("train.log.2024-05-01", "log"),
        ("metrics.csv", "log"),
        ("events.out.tfevents.1714.host.0", "log"),
        ("best.json", None),
        ("latest", None),
        ("catalog", None),
        ("csv", None),
    ],
)
def test_names(name, kind):
    assert (guardnames.model(name), guardnames.log(name)) == (kind == "model", kind == "log")


@pytest.mark.parametrize(
    "name, is_one",
    [("checkpoint-500", 1), ("checkpoint_0", 1), ("epoch=3-step=40", 1), ("global_step100", 1), ("iter_0000010/", 1),
     ("checkpoints", 0), ("step", 0), ("2024-05-01", 0), ("version_0", 0), ("run-1", 0)],
)  # fmt: skip
def test_names_of_checkpoint_folders(name, is_one):
    assert guardnames.model_folder(name) == bool(is_one)
