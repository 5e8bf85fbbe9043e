"""Small real trainings that together walk through the hook. Each returns what must not depend on the hook."""

from __future__ import annotations

import collections
import hashlib
import io
import os
import pickle
import random
import sys
import threading
import time
import types
import warnings
from typing import Any, Callable, Dict, List

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

warnings.filterwarnings("ignore")


class Squares(Dataset):  # type: ignore[type-arg]
    def __init__(self, length: int = 14) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> Any:
        return torch.full((3,), float(i)) + torch.rand(1) * 1e-3, i


class Training:
    """A model that learns, and a diary of everything the hook must not touch."""

    def __init__(self, folder: str) -> None:
        torch.manual_seed(7)
        random.seed(7)
        self.folder = folder
        self.model = torch.nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.diary: List[Any] = []

    def step(self, x: Any) -> None:
        loss = self.model(x).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.diary.append(loss.item())

    def epoch(self, loader: Any) -> None:
        for x, i in loader:
            self.step(x)
            self.diary.append(i.tolist())
        print("epoch of", len(loader))

    def validate(self, loader: Any) -> None:
        with torch.no_grad():
            self.diary += [i.tolist() for _, i in loader]

    def save(self) -> None:
        path = os.path.join(self.folder, "model.pt")
        torch.save(self.model.state_dict(), path)
        self.diary.append(sorted(torch.load(path)))

    def end(self) -> Dict[str, Any]:
        rng = hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest(), random.random()
        return {"diary": self.diary, "weights": [p.tolist() for p in self.model.parameters()], "rng": rng}


def pause() -> None:
    """Longer than the hook puts records off, and than it waits before it looks around."""
    time.sleep(0.002)


def no_workers(folder: str) -> Dict[str, Any]:
    train = Training(folder)
    loader = DataLoader(Squares(), batch_size=4, shuffle=True)
    for _ in range(2):
        train.epoch(loader)
        train.validate(DataLoader(Squares(6), batch_size=2))
        pause()
    train.save()
    return train.end()


def workers(folder: str) -> Dict[str, Any]:
    train = Training(folder)
    loader = DataLoader(Squares(24), batch_size=4, shuffle=True, num_workers=1, persistent_workers=True)
    for _ in range(2):
        train.epoch(loader)
    train.validate(DataLoader(Squares(6), batch_size=2, num_workers=1, collate_fn=_slow_collate))
    train.save()
    return train.end()


def _slow_collate(batch: Any) -> Any:
    """Reads a file too."""
    pause()
    with open(__file__, "rb") as file:
        file.read(1)
    return torch.utils.data.default_collate(batch)


class Bad(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> int:
        if i in (1, 4):
            raise ValueError("bad sample")
        return i


class Stream(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter(torch.arange(12.0).reshape(4, 3))


class Nested(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> Any:
        return torch.stack([x for x, _ in DataLoader(Squares(4), batch_size=2)])


Named = collections.namedtuple("Named", "x y")


class Odd(Dataset):  # type: ignore[type-arg]
    """Batches of every shape that a batch may have."""

    def __len__(self) -> int:
        return 9

    def __getitem__(self, i: int) -> Any:
        import numpy

        pause()
        deep: Any = 1
        for _ in range(30):
            deep = [deep]
        shapes = (
            {"text": "a", "raw": b"b", "none": None}, numpy.ones(4), Named(torch.ones(2), [1, 2.0]),
            collections.OrderedDict(a=torch.ones(1)), collections.UserDict(a=torch.ones(1)), [0] * 100, deep,
            object, [torch.ones(1)] * 40,
        )  # fmt: skip
        return shapes[i]


def every_loop(folder: str) -> Dict[str, Any]:
    """The loops of a main process that are not the usual one."""
    train = Training(folder)
    it = iter(DataLoader(Bad(), batch_size=None))
    while True:
        try:
            train.diary.append(next(it))
        except ValueError as error:
            train.diary.append(str(error))
        except StopIteration:
            break
    for x in DataLoader(Stream(), batch_size=2):
        train.step(x)
    for x in DataLoader(Nested(), batch_size=None):
        train.step(x)
    train.diary.append(len(list(DataLoader(Odd(), batch_size=None))))
    for _ in range(3):  # made anew, and left early
        for x, _i in DataLoader(Squares(), batch_size=4):
            train.step(x)
            break
    second = torch.optim.Adam(train.model.parameters(), lr=0.01)
    for x, _i in DataLoader(Squares(), batch_size=4):
        train.step(x)
        second.step()
    for x, _i in DataLoader(Squares(), batch_size=4):  # the first falls silent
        train.model(x).sum().backward()
        second.step()
    torch.save(train.model.state_dict(), io.BytesIO())
    os.environ.pop("RANK", None)
    return train.end()


def threads(folder: str) -> Dict[str, Any]:
    """A thread that prefetches, and a fork between two batches."""
    train = Training(folder)
    fetched: List[Any] = []

    def prefetch() -> None:
        for x, _i in DataLoader(Squares(), batch_size=4):
            fetched.append(x)
        try:
            list(DataLoader(Bad(), batch_size=None))
        except ValueError as error:
            fetched.append(str(error))

    train.epoch(DataLoader(Squares(8), batch_size=4))
    thread = threading.Thread(target=prefetch)
    thread.start()
    thread.join()
    for x in fetched[:-1]:
        train.step(x)
    train.diary.append(fetched[-1])
    loader = DataLoader(Squares(), batch_size=4)
    it = iter(loader)
    next(it)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = int([i.tolist() for _, i in it] != [[4, 5, 6, 7], [8, 9, 10, 11], [12, 13]])
        except Exception as error:
            print(error, file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    train.diary.append(os.waitpid(pid, 0)[1])
    train.diary += [i.tolist() for _, i in it]
    return train.end()


def watched(folder: str) -> Dict[str, Any]:
    """Loaders that are not PyTorch's."""
    import datawait

    train = Training(folder)

    def build(i: int) -> Any:
        with datawait.building(i, samples=2) as batch:
            pause()
            return batch.result(torch.full((2, 3), float(i)))

    def batches() -> Any:
        for i in range(4):
            yield build(i)

    for _ in range(2):
        for x in datawait.watch([torch.ones(2, 3)] * 3, workers=1, prefetch=2, ready=lambda: 1, name="list"):
            train.step(x)
        for x in datawait.watch(batches(), length=4):
            train.step(x)
        for x in datawait.watch([build(i) for i in range(3)], workers=0):
            train.step(x)
    for _ in datawait.watch(range(8), workers=0, name="trivial"):
        pause()
    mine = datawait.watch(batches())
    train.step(next(iter(mine)))
    train.step(next(mine))  # type: ignore[call-overload]
    train.diary.append(len(datawait.watch([1, 2])))  # type: ignore[arg-type]
    train.diary.append(datawait.watch([3, 4]).index(4))  # type: ignore[attr-defined]
    train.diary.append(iter(datawait.watch(open(os.devnull))).closed)  # type: ignore[attr-defined]  # noqa: SIM115

    thread = threading.Thread(target=lambda: train.diary.append(build(9).tolist()))
    thread.start()
    thread.join()
    try:
        with datawait.building(1):
            raise ValueError("mine")
    except ValueError as error:
        train.diary.append(str(error))
    return train.end()


STATEFUL = """
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter
from torch.utils.data._utils.worker import _worker_loop
class _StatefulMultiProcessingDataLoaderIter(_MultiProcessingDataLoaderIter):
    def _reset(self, loader, first_iter=False):
        super()._reset(loader, first_iter)
"""


def late_imports(folder: str) -> Dict[str, Any]:
    """What the hook waits for is imported in mid-run, and the worker loop crosses to a spawned child."""
    package = os.path.join(folder, "torchdata", "stateful_dataloader")
    os.makedirs(package)
    open(os.path.join(folder, "webdataset.py"), "w").close()
    for path in (os.path.dirname(package), package):
        open(os.path.join(path, "__init__.py"), "w").close()
    with open(os.path.join(package, "stateful_dataloader.py"), "w", encoding="utf-8") as file:
        file.write(STATEFUL)
    sys.path.insert(0, folder)
    train = Training(folder)
    train.epoch(DataLoader(Squares(), batch_size=4))
    for name in [name for name in sys.modules if name.split(".")[0] == "torchdata"]:
        del sys.modules[name]
    import torchdata.stateful_dataloader.stateful_dataloader as stateful
    import webdataset  # noqa: F401

    loader = DataLoader(Squares(), batch_size=4, num_workers=1)
    it = stateful._StatefulMultiProcessingDataLoaderIter(loader)
    train.diary.append([i.tolist() for _, i in it])
    loop = torch.utils.data._utils.worker._worker_loop
    train.diary.append(callable(pickle.loads(pickle.dumps(loop))))
    train.epoch(DataLoader(Squares(), batch_size=4))
    return train.end()


def emulated(folder: str) -> Dict[str, Any]:
    """An emulated device beside the training."""
    from datawait import emulated as device

    train = Training(folder)
    gpu = device.Gpu(depth=2, log_folder=folder)
    for x, _i in DataLoader(Squares(80), batch_size=4):
        train.step(x)
        gpu.copy(0.0001)
        gpu.launch(0.0003)
        gpu.launch(0.0003)
        gpu.launch(0.0003)
    gpu.synchronize()
    event = gpu.record_event()
    event.synchronize()
    train.diary += [event.query(), event.elapsed(event), round(gpu.busy_seconds, 9)]
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return train.end()


class Shadow(torch.optim.Optimizer):
    """An optimizer whose parameters lie on a device that is not there."""

    def __init__(self, device: Any) -> None:
        super().__init__([torch.zeros(1)], {})
        self.param_groups = [{"params": [types.SimpleNamespace(device=device)]}]

    def step(self, closure: Any = None) -> Any:  # type: ignore[override]
        pass


def cuda(folder: str) -> Dict[str, Any]:
    """As much of torch.cuda as the hook touches."""
    ticks = iter(range(10**6))

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            self.at = 0

        def record(self, stream: Any) -> None:
            self.at = next(ticks)

        def query(self) -> bool:
            return True

        def elapsed_time(self, later: "Event") -> float:
            return float(later.at - self.at)

    pretended = {
        "is_initialized": lambda: True, "_is_in_bad_fork": lambda: False, "Event": Event,
        "current_stream": lambda device=None: None, "is_current_stream_capturing": lambda: False,
        "current_device": lambda: 0, "get_device_properties": lambda index: types.SimpleNamespace(name="none"),
    }  # fmt: skip
    before = {name: getattr(torch.cuda, name) for name in pretended}
    vars(torch.cuda).update(pretended)
    train = Training(folder)
    shadow = Shadow(torch.device("cuda"))
    for x, _i in DataLoader(Squares(80), batch_size=4):
        train.model(x).sum().backward()
        shadow.step()
        train.diary.append(x.sum().item())
    vars(torch.cuda).update(before)
    return train.end()


SCENARIOS: Dict[str, Callable[[str], Dict[str, Any]]] = {
    "no_workers": no_workers, "cuda": cuda, "every_loop": every_loop, "watched": watched, "emulated": emulated,
    "late_imports": late_imports, "workers": workers, "threads": threads,
}  # fmt: skip
