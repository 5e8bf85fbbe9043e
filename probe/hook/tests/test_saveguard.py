"""The save-guard: what ends the run before it happens, and what must not."""

# ruff: noqa: SIM115

from __future__ import annotations

import hashlib
import io
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from os import remove as remove_bound_early

import pytest

from datawait.guardpaths import Ages, process_start
from datawait.saveguard import SaveGuard


class Stopped(BaseException):
    """Where the run would have parked."""


class Files:
    """A folder with files from before the run, and room for new ones."""

    def __init__(self, root):
        self.root = root
        for name in ("last.ckpt", "optimizer.pt", "checkpoint-10/model.bin", "keep/a.txt"):
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"weights of %s" % name.encode())
        (root / "empty").mkdir()
        (root / "empty.txt").touch()
        (root / "link").symlink_to(root / "last.ckpt")
        self.before = self.digest()

    def digest(self):
        found = {}
        for path in sorted(self.root.rglob("*")):
            if "new" in path.name or "fresh" in str(path):
                continue
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        return found

    def new(self, name="new.tmp"):
        path = self.root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b"scratch")
        return path


@pytest.fixture
def files(tmp_path):
    root = tmp_path / "run"
    root.mkdir()
    return Files(root)


@pytest.fixture
def stops():
    return []


@pytest.fixture
def guard(tmp_path, files, stops, monkeypatch):
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / "ring").write_bytes(b"old")
    for cache in ("torchinductor_me", ".triton"):
        (tmp_path / cache).mkdir()
        (tmp_path / cache / "old").touch()
    time.sleep(0.03)  # file times move in steps of a clock tick
    started = time.time()
    time.sleep(0.03)

    def stop(call, target):
        stops.append((call, target))
        raise Stopped

    guard = SaveGuard(stop, str(spool))
    guard.arm()
    guard._ages.started = started
    yield guard
    guard.disarm()


def raises(error, call, *args):
    with pytest.raises(error):
        call(*args)


def held(files, stops, action, call, name=None):
    with pytest.raises(Stopped):
        action()
    ((got, target),) = stops
    assert got == call
    assert name is None or name in target
    assert files.digest() == files.before


DELETIONS = {
    "remove": (lambda r: os.remove(r / "last.ckpt"), "os.remove"),
    "remove str": (lambda r: os.remove(str(r / "last.ckpt")), "os.remove"),
    "remove bytes": (lambda r: os.remove(os.fsencode(r / "last.ckpt")), "os.remove"),
    "remove bound early": (lambda r: remove_bound_early(r / "last.ckpt"), "os.remove"),
    "unlink": (lambda r: os.unlink(r / "optimizer.pt"), "os.unlink"),
    "unlink of a link": (lambda r: os.unlink(r / "link"), "os.unlink"),
    "rmdir": (lambda r: os.rmdir(r / "empty"), "os.rmdir"),
    "removedirs": (lambda r: os.removedirs(r / "empty"), "os.rmdir"),
    "rename away": (lambda r: os.rename(r / "last.ckpt", r / "new"), "os.rename"),
    "replace it": (lambda r: os.replace(r / "new.tmp", r / "last.ckpt"), "os.replace"),
    "shutil.move": (lambda r: shutil.move(str(r / "new.tmp"), str(r / "last.ckpt")), "os.rename"),
    "rmtree": (lambda r: shutil.rmtree(r / "checkpoint-10"), "shutil.rmtree"),
    "rmtree of a new folder with an old file": (lambda r: shutil.rmtree(r / "fresh"), "shutil.rmtree"),
    "Path.unlink": (lambda r: (r / "last.ckpt").unlink(), "Path.unlink"),
    "Path.rmdir": (lambda r: (r / "empty").rmdir(), "Path.rmdir"),
    "Path.rename": (lambda r: (r / "last.ckpt").rename(r / "new"), "Path.rename"),
    "Path.replace": (lambda r: (r / "new.tmp").replace(r / "last.ckpt"), "Path.replace"),
    "open w": (lambda r: open(r / "last.ckpt", "w"), "open"),
    "open wb": (lambda r: open(file=r / "last.ckpt", mode="wb"), "open"),
    "open through a link": (lambda r: open(r / "link", "w+b"), "open"),
    "write_bytes": (lambda r: (r / "last.ckpt").write_bytes(b""), "open"),
    "Path.open": (lambda r: (r / "last.ckpt").open("w"), "open"),
    "copyfile": (lambda r: shutil.copyfile(r / "new.tmp", r / "last.ckpt"), "open"),
}


@pytest.mark.parametrize("name", DELETIONS)
def test_what_is_older_than_the_run_stays(guard, files, stops, name):
    action, call = DELETIONS[name]
    files.new()
    if "new folder" in name:
        (files.root / "fresh").mkdir()
        guard.disarm()
        os.rename(files.root / "keep", files.root / "fresh" / "keep")
        files.before = files.digest()
        guard.arm()
        guard._ages.started = time.time() - 0.01
        os.utime(files.root / "fresh" / "keep" / "a.txt", (1, 1))
    held(files, stops, lambda: action(files.root), call)


INNOCENT = {
    "new file": lambda f: os.remove(f.new()),
    "new path": lambda f: f.new().unlink(),
    "rename of a new file": lambda f: os.replace(f.new(), f.root / "new2"),
    "new folder": lambda f: shutil.rmtree(f.new("fresh/deep/new").parents[1]),
    "temporary folder": lambda f: tempfile.TemporaryDirectory().cleanup(),
    "temporary file": lambda f: tempfile.NamedTemporaryFile().close(),
    "spool": lambda f: os.remove(f.root.parent / "spool" / "ring"),
    "bytecode": lambda f: os.remove(f.root.parent / "__pycache__" / "m.pyc"),
    "compiler caches": lambda f: (
        os.remove(f.root.parent / "torchinductor_me" / "old"),
        os.remove(f.root.parent / ".triton" / "old"),
    ),
    "missing": lambda f: raises(FileNotFoundError, os.remove, f.root / "none"),
    "missing path": lambda f: (f.root / "none").unlink(missing_ok=True),
    "wrong type": lambda f: raises(TypeError, os.remove, None),
    "no argument": lambda f: raises(TypeError, os.remove),
    "rmtree of nothing": lambda f: shutil.rmtree(f.root / "none", ignore_errors=True),
    "reading": lambda f: open(f.root / "last.ckpt").read(),
    "appending": lambda f: open(f.root / "keep" / "a.txt", "a").close(),
    "writing where nothing was": lambda f: open(f.root / "empty.txt", "w").close(),
    "a new checkpoint by another writer": lambda f: open(f.root / "new", "wb").close(),
    "rewriting a new file": lambda f: [f.new(), f.new()],
    "a device": lambda f: open("/dev/null", "w").close(),
    "a descriptor": lambda f: open(os.open(f.root / "empty.txt", os.O_WRONLY), "w").close(),
    "kernel files": lambda f: open("/proc/self/comm", "w").close(),
}


@pytest.mark.parametrize("name", INNOCENT)
def test_what_a_run_may_do(guard, files, stops, name):
    if name == "bytecode":
        guard._ages.started = 0
        (files.root.parent / "__pycache__").mkdir()
        (files.root.parent / "__pycache__" / "m.pyc").touch()
        guard._ages.started = time.time() + 10
    INNOCENT[name](files)
    assert not stops and files.digest() == files.before


def test_shared_memory_is_not_a_checkpoint(guard, stops):
    path = "/dev/shm/datawait-test-%d" % os.getpid()
    open(path, "w").close()
    guard._ages.started = time.time() + 10
    os.remove(path)
    assert not stops


def test_nothing_is_patched_before_it_is_armed_nor_left_behind(tmp_path):
    import builtins

    names = [(os, "remove"), (os, "replace"), (shutil, "rmtree"), (builtins, "open"), (io, "open"),
             (pathlib.Path, "unlink"), (sys.modules[__name__], "remove_bound_early")]  # fmt: skip
    before = [vars(owner)[name] for owner, name in names]
    finders = list(sys.meta_path)
    guard = SaveGuard(lambda call, target: None, str(tmp_path))
    assert [vars(owner)[name] for owner, name in names] == before
    guard.arm(), guard.arm()
    assert all(vars(owner)[name] is not old for (owner, name), old in zip(names, before))
    guard.disarm()
    assert all(vars(owner)[name] is old for (owner, name), old in zip(names, before))
    assert sys.meta_path == finders


def test_stand_ins_look_like_what_they_stand_for(guard):
    assert os.remove.__name__ == "remove" and "path" in os.remove.__doc__
    assert pickle.loads(pickle.dumps(os.remove)).__name__ == "remove"
    assert shutil.rmtree.avoids_symlink_attacks in (True, False)
    assert os.unlink in os.supports_dir_fd and os.unlink != os.remove

    class Holder:
        opener = open

    with Holder().opener(os.devnull) as file:  # a builtin kept in a class is no method
        assert file.read() == ""


def test_the_dir_fd_forms(guard, files, stops):
    fd = os.open(files.root, os.O_RDONLY)
    held(files, stops, lambda: os.remove("last.ckpt", dir_fd=fd), "os.remove")
    stops.clear()
    files.new()
    os.remove("new.tmp", dir_fd=fd)
    held(files, stops, lambda: os.replace("empty.txt", "optimizer.pt", src_dir_fd=fd, dst_dir_fd=fd), "os.replace")
    os.close(fd)


def test_calls_made_by_the_stop_itself_go_through(tmp_path, files):
    def stop(call, target):
        os.remove(files.new())
        open(files.root / "empty.txt", "w").close()
        raise Stopped

    guard = SaveGuard(stop, str(tmp_path / "spool"))
    guard.arm()
    guard._ages.started = time.time() + 10
    try:
        with pytest.raises(Stopped):
            os.remove(files.root / "last.ckpt")
    finally:
        guard.disarm()
    assert files.digest() == files.before


def test_every_thread_is_held(guard, files, stops):
    raised = []

    def rotate():
        try:
            os.remove(files.root / "last.ckpt")
        except Stopped as error:
            raised.append(error)

    threads = [threading.Thread(target=rotate) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(raised) == len(stops) == 4 and files.digest() == files.before


def test_a_forked_child_is_not_held_by_its_parents_guard(guard, files, stops):
    pid = os.fork()
    if not pid:
        os.remove(files.new())
        os.remove(files.root / "keep" / "a.txt")
        os._exit(len(stops))
    assert os.waitpid(pid, 0)[1] == 0


def test_process_start():
    before = time.time()
    code = "from datawait.guardpaths import process_start; print(process_start())"
    started = float(
        subprocess.check_output([sys.executable, "-c", code], env={"PYTHONPATH": os.pathsep.join(sys.path)})
    )
    assert before - 0.5 < started < time.time()
    assert process_start() < before


def test_a_tree_too_large_to_look_through_counts_as_old(tmp_path, monkeypatch):
    monkeypatch.setattr("datawait.guardpaths.MOST_ENTRIES", 10)
    ages = Ages(str(tmp_path / "spool"), started=lambda: 0.0)
    for number in range(11):
        (tmp_path / str(number)).touch()
    assert ages.old_tree(tmp_path)
