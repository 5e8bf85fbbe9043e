"""A Python that starts after the first cached batch may not save either; and what a run may go on doing."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time

import pytest
from conftest import ATTACH, HOOK

from datawait import guardchild
from datawait.guardpaths import past_now


def python(folder, spool, code):
    environment = {"PYTHONPATH": ATTACH + os.pathsep + HOOK, "DATAWAIT_SPOOL": spool, "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "best.txt"
    path.write_text("weights")
    return path


def wait_for(path, seconds=30):
    until = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < until:
        time.sleep(0.02)
    return os.path.exists(path)


def test_a_python_that_starts_later_is_held_and_says_so(tmp_path, spool, old):
    agent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    from datawait.control import Agent

    guardchild.begin(spool, past_now(), Agent(agent.pid))
    child = python(tmp_path, spool, "open('new.txt', 'w').close(); open('best.txt', 'w').close()")
    held = os.path.join(spool, "held-%d" % child.pid)
    try:
        assert wait_for(held) and child.poll() is None
        with open(held) as file:
            assert json.load(file) == {"call": "open", "target": "best.txt"}
    finally:
        agent.kill()
        agent.wait()
    _, said = child.communicate(timeout=30)  # with nobody left to end it, the save is refused
    assert child.returncode == 1 and "datawait: open (best.txt) refused" in said
    assert old.read_text() == "weights" and (tmp_path / "new.txt").exists()


@pytest.mark.parametrize("flag", [None, b"", b"nonsense", b"1 2"])
def test_without_a_flag_that_makes_sense_nothing_is_held(tmp_path, spool, old, flag):
    if flag is not None:
        with open(os.path.join(spool, "guard"), "wb") as file:
            file.write(flag)
    assert python(tmp_path, spool, "open('best.txt', 'w').close()").wait(30) == 0
    assert old.read_text() == ""


def test_the_first_rank_says_it_for_all(spool):
    guardchild.begin(spool, 7, None)
    guardchild.begin(spool, 8, None)
    limit, agent = guardchild.begun(spool)
    assert (limit, agent.pid) == (7, 0) and guardchild.begun(None) is None


def test_where_it_cannot_be_said_that_is_an_error_and_nothing_half_said_is_left(spool, monkeypatch):
    def full(fd, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        guardchild.begin(spool, 7, None)
    assert os.listdir(spool) == []
    with pytest.raises(FileNotFoundError):
        guardchild.begin(os.path.join(spool, "gone"), 7, None)


def test_a_flag_that_cannot_be_read_is_an_error(spool):
    os.mkdir(os.path.join(spool, guardchild.FLAG))
    with pytest.raises(OSError):
        guardchild.begun(spool)
    assert guardchild.begun(os.path.join(spool, "gone")) is None


FRAMEWORKS = """
import sys, types
from datawait.saveguard import SaveGuard

def stop(call, target):
    print("STOP", call, target)
    raise SystemExit(0)

def framework():
    for name in ("transformers", "transformers.trainer", "botocore", "botocore.client"):
        sys.modules[name] = types.ModuleType(name)
    class Trainer:
        def _save_checkpoint(self, path): print("saved")
    class BaseClient:
        def _make_api_call(self, operation_name, parameters): return "sent"
    sys.modules["transformers.trainer"].Trainer = Trainer
    sys.modules["botocore.client"].BaseClient = BaseClient
    return Trainer(), BaseClient()

trainer, client = framework()
SaveGuard(stop, "/nowhere").arm()
assert client._make_api_call("GetObject", {}) == "sent"
"""


@pytest.mark.parametrize(
    "call, stopped",
    [
        ("trainer._save_checkpoint('out')", "STOP Trainer._save_checkpoint out"),
        ("client._make_api_call('PutObject', {})", "STOP BaseClient._make_api_call PutObject"),
    ],
)
def test_a_frameworks_own_savers_and_requests(tmp_path, call, stopped):
    command = [sys.executable, "-c", FRAMEWORKS + call]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": HOOK}, cwd=tmp_path)
    assert done.stdout.strip() == stopped and done.returncode == 0, done.stderr


INNOCENT = """
import csv, logging, logging.handlers, multiprocessing, os, shelve, sqlite3, subprocess, sys, tempfile
from datawait.saveguard import SaveGuard

def square(x):
    return x * x

def work(turn):
    for _ in range(3):
        logging.getLogger().warning("step " * 20)  # rotates in between
    with open("metrics.csv", "w", newline="") as file:
        csv.writer(file).writerow([turn])
    with open("events.out.tfevents.1", "ab") as file:
        file.write(b"event")
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "a.npy"), "wb") as file:
        file.write(b"scratch")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(square, range(4)) == [0, 1, 4, 9]
    with sqlite3.connect("runs.db") as database:
        database.execute("create table if not exists t (x)")
    part = "cache-%d.arrow.part" % turn
    with open(part, "wb") as file:
        file.write(b"rows")
    os.replace(part, "cache-%d.arrow" % turn)
    subprocess.run([sys.executable, "-c", "pass"], check=True)

def stop(call, target):
    print("STOP", call, target, flush=True)
    os._exit(1)

logging.getLogger().addHandler(logging.handlers.RotatingFileHandler("app.log", maxBytes=150, backupCount=2))
work(0)
SaveGuard(stop, "/nowhere").arm()
work(1)
work(2)
print("went on")
"""


def test_what_runs_do_all_the_time_goes_on(tmp_path):
    environment = {"PYTHONPATH": HOOK, "PATH": os.environ["PATH"], "PWD": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", INNOCENT], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.stdout == "went on\n", done.stdout + done.stderr
