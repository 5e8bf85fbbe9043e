"""Bad samples, interruptions, signals, and ways to leave."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import data
import torch
from torch.utils.data import DataLoader
from witness import Witness, Work

from .common import loader


def bad_sample(witness: Witness, workers: int = 0) -> None:
    """Nobody catches what the data set raises."""
    work = Work(witness)
    witness.loose = True
    for batch in witness.each(loader(24, workers, bad=(8,))):
        work.train(batch)


class Interrupting(data.Items):
    """Sends a signal to the training process while it waits for item 6."""

    def __init__(self, number: int) -> None:
        super().__init__(12)
        self.number = number
        self.trainer = os.getpid()

    def __getitem__(self, index: int) -> Any:
        if index == 6:
            if os.getpid() != self.trainer:
                time.sleep(0.5)  # by now it waits
            os.kill(self.trainer, self.number)
            time.sleep(0.3)
        return super().__getitem__(index)


def interrupted(witness: Witness, workers: int = 0, caught: bool = True) -> None:
    """Control-C while next() waits, caught by the script or not."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    work = Work(witness)
    witness.loose = True
    options = {"prefetch_factor": 1} if workers else {}
    it = witness.iter(DataLoader(Interrupting(signal.SIGINT), batch_size=1, num_workers=workers, **options))
    while True:
        try:
            work.train(witness.next(it))
        except KeyboardInterrupt:
            if not caught:
                raise
            print("interrupted")
            break
    for batch in witness.each(loader(6), "again"):
        work.train(batch)


def terminated(witness: Witness, workers: int = 0) -> None:
    """A handler of SIGTERM that saves and leaves, as where jobs are preempted."""

    def leave(number: int, frame: Any) -> None:
        torch.save(work.model.state_dict(), "last.pt")
        sys.exit(7)

    signal.signal(signal.SIGTERM, leave)
    work = Work(witness)
    witness.loose = True
    options = {"prefetch_factor": 1} if workers else {}
    for batch in witness.each(DataLoader(Interrupting(signal.SIGTERM), batch_size=1, num_workers=workers, **options)):
        work.train(batch)


def leaves(witness: Witness, how: str, workers: int = 2) -> None:
    """In mid-epoch, with workers and an iterator alive."""
    work = Work(witness)
    witness.loose = True
    global alive
    alive = loader(24, workers, persistent_workers=True)
    it = witness.iter(alive)
    for _ in range(3):
        batch = witness.next(it)
        time.sleep(0.002)  # so that the ring has been written when it is left for good
        work.train(batch)
    print("leaving")
    if how == "exit":
        sys.exit(3)
    if how == "message":
        raise SystemExit("told to")
    if how == "hard":
        witness.testify()
        sys.stdout.flush()
        os._exit(4)
