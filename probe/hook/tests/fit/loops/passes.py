"""Ways to go through one loader: whole, in part, again, never to its end."""

from __future__ import annotations

import gc
import itertools
import os
from typing import Any, Iterator

import data
from torch.utils.data import DataLoader
from witness import Witness, Work

from .common import built, loader


def accumulation(witness: Witness) -> None:
    """A step for four batches."""
    work = Work(witness)
    for number, batch in enumerate(witness.each(loader(), ahead=built), 1):
        loss = work.loss(batch) / 4
        loss.backward()
        witness.saw(batch, loss)
        if number % 4 == 0:
            witness.step(work.optimizer)
            work.optimizer.zero_grad()


def early_break(witness: Witness, workers: int = 0) -> None:
    work = Work(witness)
    same = loader(24, workers)
    for _ in range(3):
        for number, batch in enumerate(witness.each(same, ahead=None if workers else built)):
            work.train(batch)
            if number == 2:
                break
    witness.loose = True


def skip_bad(witness: Witness, workers: int = 0, batch_size: Any = None) -> None:
    """``try: batch = next(it) except ValueError: continue``."""
    work = Work(witness)
    same = loader(16, workers, batch_size=batch_size, bad=(3, 4, 11))
    for _ in range(2):
        it = witness.iter(same, ahead=None if workers else built)
        while True:
            try:
                batch = witness.next(it)
            except StopIteration:
                break
            except ValueError as error:
                witness.note("skipped", str(error).splitlines()[-1])
                continue
            work.train(batch)


def short_epochs(witness: Witness, persistent: bool = False) -> None:
    """Two batches an epoch: less than any block of the cached-data test."""
    work = Work(witness)
    same = loader(6, workers=int(persistent), persistent_workers=persistent)
    for _ in range(12):
        for batch in witness.each(same):
            work.train(batch)


def cycled(witness: Witness) -> None:
    """itertools.cycle keeps the batches of the first round and asks the loader no more."""
    work = Work(witness)
    for batch in itertools.islice(itertools.cycle(witness.each(loader(9), ahead=built)), 10):
        work.train(batch)


def forever(witness: Witness) -> None:
    """A generator that starts its loader again and again."""

    def batches() -> Iterator[Any]:
        while True:
            yield from witness.each(same, ahead=built)

    work = Work(witness)
    same = loader(9)
    for batch in itertools.islice(batches(), 10):
        work.train(batch)


def progress_bar(witness: Witness) -> None:
    """A wrapper with a length that yields what it is given, as tqdm does."""

    class Bar:
        def __init__(self, iterable: Any) -> None:
            self.iterable = iterable

        def __len__(self) -> int:
            return len(self.iterable)

        def __iter__(self) -> Iterator[Any]:
            for done, item in enumerate(witness.each(self.iterable, ahead=built), 1):
                yield item
                print("%d/%d" % (done, len(self)))

    work = Work(witness)
    for _, batch in enumerate(Bar(loader())):
        work.train(batch)


def kept(witness: Witness, workers: int = 0) -> None:
    """An iterator that outlives the script's epochs, and is made anew only when it has ended."""
    work = Work(witness)
    same = loader(24, workers)
    it = None
    for epoch in range(4):
        for _ in range(5):
            if it is None:
                it = witness.iter(same)
            try:
                batch = witness.next(it)
            except StopIteration:
                it = witness.iter(same)
                batch = witness.next(it)
            work.train(batch)
        print("epoch %d" % epoch)
    witness.loose = True


def deleted(witness: Witness) -> None:
    """Dropping an iterator in mid-epoch ends its workers then and there, with no help of the collector."""
    gc.disable()
    work = Work(witness)
    same = loader(24, workers=2)
    for _ in range(2):
        it = witness.iter(same)
        work.train(witness.next(it))
        witness.note("children", children())
        del it
        witness.note("children", children())
    for batch in witness.each(same):
        work.train(batch)
        break
    witness.note("children", children())
    witness.loose = True


def children() -> int:
    with open("/proc/self/task/%d/children" % os.getpid(), encoding="ascii") as file:
        return len(file.read().split())


def after_the_end(witness: Witness, workers: int = 0) -> None:
    """What an iterator does that has ended, and one whose data set raises StopIteration itself."""
    work = Work(witness)
    it = witness.iter(loader(6, workers))
    for _ in range(5):
        try:
            work.train(witness.next(it))
        except StopIteration as error:
            witness.note("end", [repr(error), repr(error.__cause__), type(error.__context__).__name__])
    witness.note("default", witness.next(it, "none left"))

    class Ends(data.Items):
        def __getitem__(self, index: int) -> Any:
            if index == 4:
                raise StopIteration("of its own")
            return super().__getitem__(index)

    it = witness.iter(DataLoader(Ends(8), batch_size=2, num_workers=workers), "ends", numbered=False)
    for _ in range(5):
        try:
            work.train(witness.next(it))
        except Exception as error:
            witness.note("end", [type(error).__name__, str(error).splitlines()[-1:]])
    witness.loose = bool(workers)
