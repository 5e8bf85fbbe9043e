"""Trainings under the cached-data test: batches come twice, and nothing may be saved any more."""

from __future__ import annotations

import fcntl
import os
import pickle
import threading
import time
from typing import Any, Callable, Dict, List

import torch
from scenarios import Squares, Training
from torch.utils.data import DataLoader, Dataset


def _plan(folder: str, blocks: Any, **options: Any) -> Any:
    """The agent's side of a cached-data test."""
    from cachedfakes import Page

    page = Page(os.environ.get("DATAWAIT_SPOOL") or folder)
    page.write(1, blocks, **options)
    return page


def _test_batches(train: Training, loader: Any, step: Callable[[Any], None]) -> None:
    """One epoch; only its length and what a batch may be are noted, for batches may come twice."""
    count, kinds = 0, set()
    for x, i in loader:
        step(x)
        count += 1
        kinds.add((tuple(x.shape), x[:, 0].round().long().tolist() == i.tolist()))
    train.diary = [entry for entry in train.diary if not isinstance(entry, float)]  # losses
    train.diary.append([count, sorted(kinds)])


class Ready(Dataset):  # type: ignore[type-arg]
    """Whole batches."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> Any:
        return torch.full((4, 3), float(i)), torch.full((4,), i)


class Agent:
    """A process that lives until a rank has parked, as an agent that is killed then. It locks its page."""

    def __init__(self, page: Any, patience: float = 5.0) -> None:
        lock = os.open(page.path, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.pid = os.fork()
        if self.pid:
            os.close(lock)
            return
        try:
            import ringreader

            spool = os.environ.get("DATAWAIT_SPOOL")
            until = time.monotonic() + patience
            while spool and time.monotonic() < until and os.getppid() != 1:
                if any(ring.parked for ring in _readable(ringreader, spool)):
                    break
                time.sleep(0.02)
        finally:
            os._exit(0)

    def end(self) -> None:
        import signal

        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _readable(ringreader: Any, spool: str) -> List[Any]:
    try:
        return [ring for ring in ringreader.rings(spool) if ring.declaration["producer"] == "main"]
    except (AssertionError, OSError):
        return []


LIVE, HOST, BUSY, DEVICE = range(4)
TRIAL = 5


def served(folder: str) -> Dict[str, Any]:
    """Some batches come from memory."""
    _plan(folder, [(LIVE, 2, 14), (HOST, 14, 27), (LIVE, 28, 40)])
    train = Training(folder)
    _test_batches(train, DataLoader(Squares(84), batch_size=2), train.step)
    return {"diary": train.diary}


def tried(folder: str) -> Dict[str, Any]:
    """Other arguments are tried: no workers, and one that builds each batch once."""
    kept = 1 | 1 << 16 | 1 << 24
    _plan(folder, [(LIVE, 2, 14), (TRIAL, 14, 27, 0, 1 << 16), (LIVE, 28, 40), (TRIAL, 40, 54, 0, kept),
                   (LIVE, 56, 60)])  # fmt: skip
    train = Training(folder)
    _test_batches(train, DataLoader(Squares(130), batch_size=2), train.step)
    return {"diary": train.diary}


def guarded(folder: str) -> Dict[str, Any]:
    """What the guard looks at does no harm: all of it is new."""
    result = served(folder)
    return {**result, "files": _new_files(os.path.join(folder, "new"))}


def _new_files(folder: str) -> Any:
    import pathlib
    import shutil
    import subprocess
    import zipfile

    os.mkdir(folder)
    path = os.path.join(folder, "log")
    with open(path, "w", encoding="utf-8") as file:
        file.write("new")
    with open(path, "a", encoding="utf-8") as file:
        file.write(" and more")
    os.truncate(path, 3)
    with open(path, "r+", encoding="utf-8") as file:
        os.ftruncate(file.fileno(), 2)
    os.utime(path)
    pathlib.Path(path).touch()
    os.rename(path, path + "1")
    os.replace(path + "1", path)
    with zipfile.ZipFile(path + ".zip", "w") as archive:
        archive.write(path)
    os.close(os.open(path + "2", os.O_WRONLY | os.O_CREAT))
    codes = [
        os.system("rm -f %s.zip" % path), subprocess.call(["cp", path, path + "3"]),
        subprocess.call("mv %s3 %s4 && echo > %s5" % (path, path, path), shell=True),
        subprocess.call(["env", "A=1", "sh", "-c", "true"]),
    ]  # fmt: skip
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    codes.append(os.waitpid(pid, 0)[1])
    left = sorted(os.listdir(folder))
    shutil.rmtree(folder)
    return left, codes


def tested(folder: str) -> Dict[str, Any]:
    """Every leg of the cached-data test, beside an emulated device."""
    from datawait import emulated as device

    _plan(folder, [(LIVE, 2, 16), (HOST, 16, 34, 1), (LIVE, 34, 50), (BUSY, 50, 66), (DEVICE, 66, 84), (9, 86, 99),
                   (HOST, 100, 120), (LIVE, 125, 140)])  # fmt: skip
    train = Training(folder)
    gpu = device.Gpu(log_folder=folder)

    def step(x: Any) -> None:
        train.step(x)
        gpu.copy(0.00005)
        gpu.launch(0.0001)
        gpu.synchronize()

    for workers, length in ((1, 110), (0, 45)):  # the first epoch ends in a block
        loader = DataLoader(Ready(length), batch_size=None, num_workers=workers)
        _test_batches(train, loader, step)
    return {"diary": train.diary}


def mutated(folder: str) -> Dict[str, Any]:
    """Batches that are written into, that cannot be pickled, that hold arrays; a page that makes no sense."""
    import numpy

    class Unpicklable:
        def __init__(self, x: Any) -> None:
            self.x = x
            self.lock = threading.Lock()

    def collate(batch: Any) -> Any:
        x, i = torch.utils.data.default_collate(batch)
        large = numpy.full(20000, float(i[0]))
        return x, i, large, numpy.ones(3), [Unpicklable(x)] if int(i[0]) % 8 else []

    page = _plan(folder, [(LIVE, 2, 16), (HOST, 16, 40)], cap=1 << 24)
    train = Training(folder)
    count = 0
    for x, _i, large, _small, _odd in DataLoader(Squares(240), batch_size=4, collate_fn=collate):
        train.step(x)
        x.add_(1)
        large += 1
        count += 1
        if count == 45:
            page.write(1, [(LIVE, 46, 60)], magic=b"nonsense")
        if count == 50:
            page.write(0)
    train.diary = [count]
    return {"diary": train.diary}


def parked(folder: str) -> Dict[str, Any]:
    """The plan ends, the agent dies while the rank waits for it, and training goes on."""
    page = _plan(folder, [])
    agent = Agent(page)
    page.write(1, [(LIVE, 2, 16), (HOST, 16, 34)], park=34, agent=agent.pid, held=True)
    train = Training(folder)
    _test_batches(train, DataLoader(Squares(200), batch_size=4), train.step)
    agent.end()
    return {"diary": train.diary}


def saves_after_the_test(folder: str) -> Dict[str, Any]:
    """Once a batch came twice the run may not save; what is no save must go on."""
    page = _plan(folder, [])
    agent = Agent(page)
    page.write(1, [(LIVE, 2, 16), (HOST, 16, 34)], agent=agent.pid, held=True)
    for name in ("new", "newer"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("made during the run")
    train = Training(folder)
    _test_batches(train, DataLoader(Squares(160), batch_size=4), train.step)
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as file:
        file.write("new too")
    os.rename(os.path.join(folder, "new"), os.path.join(folder, "renamed"))
    os.remove(os.path.join(folder, "renamed"))
    import pathlib
    import shutil

    pathlib.Path(folder, "newer").unlink()
    os.mkdir(os.path.join(folder, "tree"))
    shutil.rmtree(os.path.join(folder, "tree"))
    train.diary.append(os.unlink in os.supports_dir_fd)
    train.diary.append(len({os.unlink, os.remove}))
    print("before saving", flush=True)
    pickle.loads(pickle.dumps(open))
    torch.save({"weights": torch.ones(2)}, os.path.join(folder, "model.pt"))
    print("saved", flush=True)
    agent.end()
    return {"diary": train.diary}


SCENARIOS: Dict[str, Callable[[str], Dict[str, Any]]] = {
    "served": served, "guarded": guarded, "mutated": mutated, "saves_after_the_test": saves_after_the_test,
    "parked": parked, "tried": tried, "tested": tested,
}  # fmt: skip
