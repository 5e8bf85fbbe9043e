"""The save-guard: what ends the run before it happens, and what must not."""

# ruff: noqa: SIM115

from __future__ import annotations

import gzip
import io
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from os import remove as remove_bound_early

import pytest
from guardfiles import Files, Stopped

from datawait import saveguard, stream
from datawait.saveguard import SaveGuard

numpy = pytest.importorskip("numpy")


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "run")


@pytest.fixture
def stops():
    return []


@pytest.fixture
def guard(tmp_path, files, stops, monkeypatch):
    """Armed in a run that works in files.root; tmp_path around it is a place for temporary files."""
    monkeypatch.chdir(files.root)
    for folder in ("spool", "torchinductor_me", ".triton", "__pycache__", "wandb", "scratch"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "old").write_text("from before")

    def stop(call, target):
        stops.append((call, target))
        raise Stopped

    guard = SaveGuard(stop, str(tmp_path / "spool"))
    guard.arm()
    yield guard
    guard.disarm()


def test_a_question_that_fails_is_told_and_the_call_goes_on(guard, files, monkeypatch):
    def broken(*args):
        raise LookupError("ours")

    told = []
    monkeypatch.setattr(saveguard, "complain", lambda reason, where, error: told.append((where, str(error))))
    monkeypatch.setattr(guard._ages, "old_content", broken)
    open("log.txt", "w").close()
    assert told == [("save-guard", "ours")]


def test_what_a_signal_handler_raises_while_it_is_asked_goes_on_to_the_script(guard, files, monkeypatch):
    class Late(Exception):
        pass

    def late(number, frame):
        raise Late

    before = signal.signal(signal.SIGUSR1, late)
    monkeypatch.setattr(guard._ages, "old_content", lambda *args: os.kill(os.getpid(), signal.SIGUSR1))
    try:
        with pytest.raises(Late):
            open("log.txt", "w").close()
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def descriptor(files):
    """Of last.ckpt, open for writing before the guard was armed."""
    fd = os.open(files.root / "last.ckpt", os.O_RDWR)
    yield fd
    os.close(fd)


def raises(error, call, *args):
    with pytest.raises(error):
        call(*args)


OLD = {
    "remove": (lambda r: os.remove(r / "last.ckpt"), "os.remove"),
    "remove str": (lambda r: os.remove(str(r / "last.ckpt")), "os.remove"),
    "remove bytes": (lambda r: os.remove(os.fsencode(r / "last.ckpt")), "os.remove"),
    "remove bound early": (lambda r: remove_bound_early(r / "last.ckpt"), "os.remove"),
    "unlink": (lambda r: os.unlink(r / "optimizer.pt"), "os.unlink"),
    "unlink of a link": (lambda r: os.unlink(r / "link"), "os.unlink"),
    "replacing a link": (lambda r: [os.remove(r / "link"), os.symlink(r / "new.tmp", r / "link")], "os.remove"),
    "rmdir": (lambda r: os.rmdir(r / "empty"), "os.rmdir"),
    "removedirs": (lambda r: os.removedirs(r / "empty"), "os.rmdir"),
    "rename away": (lambda r: os.rename(r / "last.ckpt", r / "new"), "os.rename"),
    "rename of a folder": (lambda r: os.rename(r / "checkpoint-10", r / "new"), "os.rename"),
    "renames": (lambda r: os.renames(r / "keep/a.txt", r / "new"), "os.rename"),
    "replace it": (lambda r: os.replace(r / "new.tmp", r / "last.ckpt"), "os.replace"),
    "shutil.move": (lambda r: shutil.move(str(r / "new.tmp"), str(r / "last.ckpt")), "os.rename"),
    "rmtree": (lambda r: shutil.rmtree(r / "checkpoint-10"), "shutil.rmtree"),
    "rmtree of a new folder with an old file": (lambda r: shutil.rmtree(r / "new"), "shutil.rmtree"),
    "Path.unlink": (lambda r: (r / "last.ckpt").unlink(), "Path.unlink"),
    "Path.rmdir": (lambda r: (r / "empty").rmdir(), "Path.rmdir"),
    "Path.rename": (lambda r: (r / "last.ckpt").rename(r / "new"), "Path.rename"),
    "Path.replace": (lambda r: (r / "new.tmp").replace(target=r / "notes.txt"), "Path.replace"),
    "open w": (lambda r: open(r / "notes.txt", "w"), "open"),
    "open wb": (lambda r: open(file=r / "last.ckpt", mode="wb"), "open"),
    "open r+": (lambda r: open(r / "notes.txt", "r+b"), "open"),
    "open through a link": (lambda r: open(r / "link", "w+b"), "open"),
    "write_bytes": (lambda r: (r / "last.ckpt").write_bytes(b""), "open"),
    "write_text": (lambda r: (r / "notes.txt").write_text(""), "open"),
    "Path.open": (lambda r: (r / "last.ckpt").open("w"), "open"),
    "copyfile": (lambda r: shutil.copyfile(r / "new.tmp", r / "last.ckpt"), "open"),
    "copy into a folder": (lambda r: shutil.copy(r / "new/a.txt", r / "keep"), "open"),
    "zipfile, adding": (lambda r: zipfile.ZipFile(r / "notes.txt", "a"), "open"),
    "gzip": (lambda r: gzip.open(r / "notes.txt", "wb"), "open"),
    "numpy's tofile": (lambda r: numpy.ones(3).tofile(str(r / "notes.txt")), "open"),
    "numpy.memmap, made anew": (lambda r: numpy.memmap(r / "notes.txt", mode="w+", shape=3), "open"),
    "os.open, emptying": (lambda r: os.open(r / "notes.txt", os.O_WRONLY | os.O_TRUNC), "os.open"),
    "os.open, writing": (lambda r: os.open(r / "notes.txt", os.O_RDWR), "os.open"),
    "os.truncate": (lambda r: os.truncate(r / "last.ckpt", 0), "os.truncate"),
    "touched, then removed": (lambda r: [os.utime(r / "notes.txt"), os.remove(r / "notes.txt")], "os.remove"),
    "Path.touch, then removed": (lambda r: [(r / "notes.txt").touch(), os.remove(r / "notes.txt")], "os.remove"),
    "added to, then removed": (lambda r: [open("notes.txt", "a").close(), os.remove("notes.txt")], "os.remove"),
    "os.system": (lambda r: os.system("rm -rf checkpoint-10"), "os.system"),
    "subprocess": (lambda r: subprocess.run(["rm", str(r / "last.ckpt")]), "subprocess"),
    "subprocess elsewhere": (lambda r: subprocess.run(["rm", "a.txt"], cwd=r / "keep"), "subprocess"),
    "a shell": (lambda r: subprocess.run("cd . && rm last.ckpt", shell=True), "subprocess"),
    "os.popen": (lambda r: os.popen("cat new.tmp > last.ckpt").read(), "subprocess"),
    "os.posix_spawn": (lambda r: os.posix_spawn("/bin/rm", ["rm", "last.ckpt"], {}), "os.posix_spawn"),
}


@pytest.mark.parametrize("name", OLD)
def test_what_was_there_before_the_first_cached_batch_stays(guard, files, stops, name):
    action, call = OLD[name]
    files.new(), files.new("new/a.txt")
    if name.startswith("rmtree of a new folder"):
        with open(files.root / "new" / "old.txt", "w"):
            os.utime(files.root / "new" / "old.txt", (1, 1))  # unpacked with the date it had
    files.held(stops, lambda: action(files.root), call)


def test_an_open_file_is_not_emptied(descriptor, guard, files, stops):
    files.held(stops, lambda: os.ftruncate(descriptor, 0), "os.ftruncate")


# Written for the first time, so that only the name tells what it is.
NEW_MODELS = {
    "open wb": (lambda r: open(r / "new.pkl", "wb"), "open"),
    "open x": (lambda r: open(r / "new.ckpt", "xb"), "open"),
    "appending": (lambda r: open(r / "new.pickle", "ab"), "open"),
    "write_bytes": (lambda r: (r / "new.bin").write_bytes(b""), "open"),
    "os.open": (lambda r: os.open(r / "new.pt", os.O_CREAT | os.O_WRONLY), "os.open"),
    "numpy.save": (lambda r: numpy.save(r / "new", numpy.ones(3)), "open"),
    "numpy.savez": (lambda r: numpy.savez(r / "new", numpy.ones(3)), "open"),
    "the end of an atomic save": (lambda r: os.replace(r / "new.tmp", r / "new.pth.tar"), "os.replace"),
    "a copy": (lambda r: shutil.copy(r / "last.ckpt", r / "new.ckpt"), "open"),
    "a folder": (lambda r: os.makedirs(r / "checkpoint-20" / "new"), "os.mkdir"),
    "a folder as a path": (lambda r: (r / "epoch=3").mkdir(), "Path.mkdir"),
}


@pytest.mark.parametrize("name", NEW_MODELS)
def test_what_is_called_like_a_checkpoint_is_not_even_begun(guard, files, stops, name):
    action, call = NEW_MODELS[name]
    files.new()
    files.held(stops, lambda: action(files.root), call)
    assert [path.name for path in files.root.rglob("*new*")] == ["new.tmp"]


def rotate_logs(root):
    """As logging.handlers.RotatingFileHandler does."""
    for source, target in (("log.txt.log", "log.txt.log.1"), ("log.csv", "log.csv.1")):
        if os.path.exists(root / source):
            os.rename(root / source, root / target)
    os.remove(root / "log.csv.1")
    open(root / "log.csv", "w").close()


def empty_a_nameless_file(root):
    with tempfile.TemporaryFile(dir=root) as file:
        file.write(b"scratch")
        file.flush()
        os.utime(file.fileno(), (1, 1))
        os.ftruncate(file.fileno(), 0)


INNOCENT = {
    "new file": lambda f: os.remove(f.new()),
    "new path": lambda f: f.new().unlink(),
    "rename of a new file": lambda f: os.replace(f.new(), f.root / "new2"),
    "new folder": lambda f: shutil.rmtree(f.new("new/deep/new").parents[1]),
    "temporary folder": lambda f: tempfile.TemporaryDirectory().cleanup(),
    "temporary file": lambda f: tempfile.NamedTemporaryFile().close(),
    "temporary file in the folder": lambda f: tempfile.NamedTemporaryFile(dir=f.root).close(),
    "a temporary file from before": lambda f: os.remove(f.root.parent / "scratch" / "old"),
    "a temporary model": lambda f: numpy.save(f.root.parent / "scratch" / "a.npy", numpy.ones(3)),
    "spool": lambda f: os.remove(f.root.parent / "spool" / "old"),
    "bytecode": lambda f: os.remove(f.root.parent / "__pycache__" / "old"),
    "compiler caches": lambda f: (
        os.remove(f.root.parent / "torchinductor_me" / "old"),
        os.remove(f.root.parent / ".triton" / "old"),
    ),
    "a tracker's folder": lambda f: (f.root.parent / "wandb" / "old").write_text("summary"),
    "missing": lambda f: raises(FileNotFoundError, os.remove, f.root / "none"),
    "missing path": lambda f: (f.root / "none").unlink(missing_ok=True),
    "wrong type": lambda f: raises(TypeError, os.remove, None),
    "no argument": lambda f: raises(TypeError, os.remove),
    "a wrong mode": lambda f: [raises(TypeError, open, f.root / "notes.txt", 3), raises(ValueError, open, "n", "q")],
    "rmtree of nothing": lambda f: shutil.rmtree(f.root / "none", ignore_errors=True),
    "reading": lambda f: open(f.root / "last.ckpt").read(),
    "reading a descriptor": lambda f: os.close(os.open(f.root / "last.ckpt", os.O_RDONLY)),
    "reading a zip": lambda f: raises(zipfile.BadZipFile, zipfile.ZipFile, f.root / "notes.txt"),
    "numpy.memmap as it comes": lambda f: numpy.memmap(f.root / "notes.txt"),
    "appending": lambda f: open(f.root / "keep" / "a.txt", "a").close(),
    "appending to a descriptor": lambda f: os.close(os.open(f.root / "notes.txt", os.O_WRONLY | os.O_APPEND)),
    "a lock of an earlier run": lambda f: os.close(os.open(f.root / "old.lock", os.O_RDWR | os.O_TRUNC)),
    "a log of this run": lambda f: open(f.root / "log.csv", "w").close(),
    "logs that rotate": lambda f: rotate_logs(f.root),
    "an event file": lambda f: open(f.root / "events.out.tfevents.new.0", "wb").close(),
    "a folder for the day": lambda f: (f.root / "2024-05-01-new").mkdir(),
    "a folder that is there": lambda f: os.makedirs(f.root / "checkpoint-10", exist_ok=True),
    "writing where nothing was": lambda f: open(f.root / "empty.txt", "w").close(),
    "rewriting a new file": lambda f: [f.new(), f.new()],
    "a device": lambda f: open("/dev/null", "w").close(),
    "a descriptor": lambda f: open(os.open(f.root / "empty.txt", os.O_WRONLY), "w").close(),
    "a file without a name": lambda f: empty_a_nameless_file(f.root),
    "kernel files": lambda f: open("/proc/self/comm", "w").close(),
    "a child": lambda f: subprocess.run(["cat", str(f.root / "last.ckpt")], stdout=subprocess.DEVNULL),
    "a child that deletes a new file": lambda f: subprocess.run(["rm", str(f.new())]),
}


@pytest.mark.parametrize("name", INNOCENT)
def test_what_a_run_may_do(guard, files, stops, name):
    INNOCENT[name](files)
    assert not stops and files.digest() == files.before


def test_a_log_from_before_the_run_stays(guard, files, stops):
    os.utime(files.root / "log.csv", (1, 1))
    files.held(stops, lambda: open(files.root / "log.csv", "w"), "open", "log.csv")


def test_a_temporary_file_from_before_the_run_stays(guard, files, stops):
    path = files.root.parent / "scratch" / "old"
    os.utime(path, (1, 1))
    files.held(stops, lambda: os.remove(path), "os.remove", "scratch/old")


def test_shared_memory_is_not_a_checkpoint(guard, stops):
    path = "/dev/shm/datawait-test-%d" % os.getpid()
    open(path, "w").close()
    os.utime(path, (1, 1))
    os.remove(path)
    assert not stops


class Building:
    """A fetch under way by a loader without workers."""

    builds = True


def test_a_dataset_may_fill_its_cache(guard, files, stops, monkeypatch):
    monkeypatch.setattr(stream.core, "inside", Building)
    monkeypatch.setattr(stream.core, "training", threading.get_ident())
    numpy.save(files.root / "new.npy", numpy.ones(3))
    os.replace(files.root / "new.npy", files.root / "new-too.npy")
    assert not stops
    files.held(stops, lambda: open(files.root / "optimizer.pt", "wb"), "open")


def test_nothing_is_patched_before_it_is_armed_nor_left_behind(tmp_path):
    import builtins

    names = [(os, "remove"), (os, "replace"), (os, "open"), (shutil, "rmtree"), (builtins, "open"), (io, "open"),
             (pathlib.Path, "unlink"), (subprocess.Popen, "__init__"), (sys.modules[__name__], "remove_bound_early"),
             ]  # fmt: skip
    before = tuple(vars(owner)[name] for owner, name in names)
    finders = list(sys.meta_path)
    guard = SaveGuard(lambda call, target: None, str(tmp_path))
    assert tuple(vars(owner)[name] for owner, name in names) == before
    try:
        assert guard.arm() == guard.arm()
        assert all(vars(owner)[name] is not old for (owner, name), old in zip(names, before))
    finally:
        guard.disarm()
    assert all(vars(owner)[name] is old for (owner, name), old in zip(names, before))
    assert sys.meta_path == finders


def test_stand_ins_look_like_what_they_stand_for(guard):
    assert os.remove.__name__ == "remove" and "path" in os.remove.__doc__
    assert pickle.loads(pickle.dumps(os.remove)).__name__ == "remove"
    assert shutil.rmtree.avoids_symlink_attacks in (True, False)
    assert os.unlink in os.supports_dir_fd and os.open in os.supports_dir_fd and os.unlink != os.remove

    class Holder:
        opener = open

    with Holder().opener(os.devnull) as file:  # a builtin kept in a class is no method
        assert file.read() == ""


def test_the_dir_fd_forms(guard, files, stops):
    fd = os.open(files.root, os.O_RDONLY)
    files.held(stops, lambda: os.remove("last.ckpt", dir_fd=fd), "os.remove")
    stops.clear()
    files.held(stops, lambda: os.open("notes.txt", os.O_WRONLY | os.O_TRUNC, dir_fd=fd), "os.open")
    stops.clear()
    files.new()
    os.remove("new.tmp", dir_fd=fd)
    files.held(
        stops, lambda: os.replace("empty.txt", "optimizer.pt", src_dir_fd=fd, dst_dir_fd=fd), "os.replace"
    )
    os.close(fd)


def test_calls_made_by_the_stop_itself_go_through(tmp_path, files, monkeypatch):
    monkeypatch.chdir(files.root)

    def stop(call, target):
        os.remove(files.root / "log.csv")
        open(files.root / "empty.txt", "w").close()
        raise Stopped

    guard = SaveGuard(stop, str(tmp_path / "spool"))
    guard.arm()
    try:
        with pytest.raises(Stopped):
            os.remove(files.root / "last.ckpt")
    finally:
        guard.disarm()
    assert files.digest() == files.before and not os.path.exists("log.csv")


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


def test_a_child_of_the_run_is_held_apart(guard, files, stops):
    def held(call, target):
        os._exit(40 if call == "os.remove" and not stops else 41)

    guard._held = held
    pid = os.fork()
    if not pid:
        os.remove(files.new())
        os.remove(files.root / "keep" / "a.txt")
        os._exit(42)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 40
    assert files.digest() == files.before


def test_arming_costs_no_more_than_a_few_ticks_of_the_file_clock(tmp_path, files):
    """A guard against a wait that grows, not a benchmark."""
    guard = SaveGuard(lambda call, target: None, str(tmp_path))
    began = time.monotonic()
    guard.arm()
    took = time.monotonic() - began
    guard.disarm()
    assert took < 1
