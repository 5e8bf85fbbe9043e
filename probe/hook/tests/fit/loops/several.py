"""Several loaders at once, in turn, inside one another and in processes."""

from __future__ import annotations

import os
import time
from typing import Any, Iterator

import data
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from witness import Witness, Work

from .common import built, loader


def validation(witness: Witness, off: str, workers: int = 0) -> None:
    """Twice an epoch, with the training iterator open."""
    work = Work(witness)
    train, validate = loader(18, workers), loader(6, workers)
    for _ in range(2):
        for number, batch in enumerate(witness.each(train)):
            work.train(batch)
            if number % 3 == 2:
                with getattr(torch, off)():
                    for held_out in witness.each(validate, "validate"):
                        witness.saw(held_out, work.loss(held_out))


def in_processes(witness: Witness, method: str = "fork") -> None:
    """torch.multiprocessing starts the processes that train; this one does not."""
    os.mkdir("0")
    os.mkdir("1")
    torch.multiprocessing.start_processes(train_there, nprocs=2, start_method=method)


def train_there(number: int) -> None:
    os.chdir(str(number))
    witness = Witness()
    work = Work(witness)
    for batch in witness.each(loader(24, workers=number)):
        work.train(batch)
    witness.testify()


def validation_made_anew(witness: Witness) -> None:
    """An evaluation function that makes its loader each time it is called."""
    work = Work(witness)
    for _ in range(3):
        for batch in witness.each(loader(9)):
            work.train(batch)
        with torch.no_grad():
            for batch in witness.each(loader(4, batch_size=4), "validate"):
                witness.saw(batch, work.loss(batch))


def gan(witness: Witness) -> None:
    """Two loaders and two optimizers; the discriminator steps twice for each step of the generator."""
    real, noise = loader(24), loader(12, workers=1)
    discriminator, generator = Work(witness), Work(witness, lambda p: torch.optim.Adam(p, lr=0.01))
    fake = witness.iter(noise, "noise")
    for number, batch in enumerate(witness.each(real, "real")):
        discriminator.train(batch)
        if number % 2:
            batch = witness.next(fake)
            loss = generator.loss(batch)
            generator.optimizer.zero_grad()
            loss.backward()
            witness.step(generator.optimizer, counts=False)
            witness.saw(batch, loss)


def zipped(witness: Witness) -> None:
    """The longer one is asked once more before the shorter one ends both."""
    work = Work(witness)
    for (x, _), (y, _) in zip(witness.each(loader(12), "long", built), witness.each(loader(9, workers=1), "short")):
        work.train(torch.cat([x, y]))


def nested(witness: Witness, workers: int = 0) -> None:
    """A data set that iterates a loader of its own."""
    inner = DataLoader(TensorDataset(torch.arange(24.0).reshape(6, 4)), batch_size=2)

    class Outer(IterableDataset):
        def __iter__(self) -> Iterator[Any]:
            begin = time.perf_counter_ns()
            for number, (x,) in enumerate(witness.each(inner, "inner")):
                made = x.mean(0) + torch.rand(4)
                data.account(number, begin)
                yield made
                begin = time.perf_counter_ns()

    work = Work(witness)
    for _ in range(2):
        for batch in witness.each(DataLoader(Outer(), batch_size=2, num_workers=workers), "outer"):
            work.train(batch)


def twins(witness: Witness) -> None:
    """Two loaders that look alike, alive at the same time."""
    work = Work(witness)
    first, second = loader(9), loader(9)
    for one, other in zip(witness.each(first, "first"), witness.each(second, "second")):
        work.train(one)
        work.train(other)
