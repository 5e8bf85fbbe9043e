"""Runs on the side of the job: data sets that keep an account of every item they build.

An item is drawn from all three random generators, so a draw too many anywhere changes what is trained on. Each process
that builds writes ``built-<pid>``: [worker, index, begin, end] for every item, and at the end of a worker the state of
its generators.
"""

from __future__ import annotations

import json
import os
import random
import time
from typing import Any, Dict, Iterator

import numpy
import torch
from torch.utils.data import Dataset, IterableDataset, Sampler, get_worker_info
from witness import generators, now

MAIN = os.getpid()  # of the process that imported this: the training, and where workers are forked, its parent
built = 0  # items of this process
_files: Dict[int, Any] = {}


def item(index: int) -> Any:
    return torch.tensor([index / 32, torch.rand(1).item(), float(numpy.random.rand()), random.random()]), index


def account(index: int, begin: int) -> None:
    """Writes down one item, begun then and ready now."""
    global built
    built += 1
    info = get_worker_info()
    _write([-1 if info is None else info.id, index, begin, now()])


def _write(row: Any) -> None:
    pid = os.getpid()
    if pid not in _files:
        _files.clear()
        _files[pid] = open("built-%d" % pid, "a", buffering=1, encoding="utf-8")  # noqa: SIM115
        if get_worker_info() is not None:
            from multiprocessing.util import Finalize

            Finalize(None, lambda: _write(["rng", *generators()]), exitpriority=10)
    _files[pid].write(json.dumps(row) + "\n")


def built_by_all() -> int:
    """Items that the workers have built by now."""
    count = 0
    for name in os.listdir("."):
        if name.startswith("built-"):
            with open(name, encoding="utf-8") as file:
                count += len(file.readlines())
    return count


class Items(Dataset):
    """Map-style."""

    def __init__(self, length: int = 24, seconds: float = 0.0005, bad: Any = ()) -> None:
        self.length = length
        self.seconds = seconds
        self.bad = set(bad)
        self.slow: Dict[int, float] = {}

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        begin = now()
        index = int(index)
        if index in self.bad:
            raise ValueError("item %d cannot be read" % index)
        made = item(index)
        time.sleep(self.slow.get(index, self.seconds))
        account(index, begin)
        return made


class Stream(IterableDataset):
    """Iterable; workers share it out. Nobody must ask for its length: that alone changes what PyTorch does."""

    def __init__(self, length: int = 24, seconds: float = 0.0005) -> None:
        self.length = length
        self.seconds = seconds

    def __len__(self) -> int:
        with open("asked-for-the-length", "a", encoding="ascii") as file:
            file.write("x")
        return self.length

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, stride = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, self.length, stride):
            begin = now()
            made = item(index)
            time.sleep(self.seconds)
            account(index, begin)
            yield made


class Shuffled(Sampler):
    """Draws like RandomSampler, and counts what was taken from it."""

    def __init__(self, length: int, generator: Any = None) -> None:
        self.length = length
        self.generator = generator
        self.drawn = 0

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        for index in torch.randperm(self.length, generator=self.generator).tolist():
            self.drawn += 1
            yield index
