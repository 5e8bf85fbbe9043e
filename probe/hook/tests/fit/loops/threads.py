"""Loaders consumed on other threads, and trainings on them."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset
from witness import Witness, Work

from .common import loader


def prefetching_thread(witness: Witness) -> None:
    """A thread pulls on the loader and feeds a queue; the main thread trains."""
    ready: "queue.Queue[Any]" = queue.Queue(2)

    def pull() -> None:
        for batch in witness.each(loader()):
            ready.put(batch)
        ready.put(None)

    work = Work(witness)
    thread = threading.Thread(target=pull)
    thread.start()
    for batch in iter(ready.get, None):
        work.train(batch)
    thread.join()


def training_thread(witness: Witness, accumulate: int = 1, pause: float = 0.0) -> None:
    """The whole training runs on another thread than the main one, which never fetches."""

    def run() -> None:
        witness.training = threading.get_native_id()
        work = Work(witness)
        for _ in range(2):
            for number, batch in enumerate(witness.each(loader()), 1):
                if accumulate == 1:
                    work.train(batch)
                    continue
                loss = work.loss(batch)
                loss.backward()
                witness.saw(batch, loss)
                time.sleep(pause)
                if number % accumulate == 0:
                    witness.step(work.optimizer)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def threads_in_turn(witness: Witness) -> None:
    """One training after the other, each in a thread of its own, as tuners and web interfaces do it. Each begins while
    nothing of the one before is left."""

    def run() -> None:
        witness.training = threading.get_native_id()
        work = Work(witness)
        for batch in witness.each(loader()):
            work.train(batch)
        seen.append(threading.get_ident())

    seen: Any = []
    over = threading.Event()
    for _ in range(4):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if len(seen) == 2:  # takes the identity that has become free, so that the third gets another
            threading.Thread(target=over.wait).start()
    over.set()


def prefetching_and_training_threads(witness: Witness) -> None:
    """Neither of them is the main thread. What is random happens on one of them only."""
    ready: "queue.Queue[Any]" = queue.Queue(2)
    upstream = witness.iter(DataLoader(TensorDataset(torch.arange(96.0).reshape(24, 4)), batch_size=3), "upstream")

    def pull() -> None:
        for _ in range(8):
            ready.put(witness.next(upstream))

    def run() -> None:
        witness.training = threading.get_native_id()
        work = Work(witness)
        for x, _ in witness.each(loader(), "own"):
            work.train(torch.cat([x, ready.get()[0]]))

    threads = [threading.Thread(target=pull), threading.Thread(target=run)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def asynchronous(witness: Witness) -> None:
    """asyncio, with each next() handed to a thread of a pool."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    work = Work(witness)

    async def main() -> None:
        pool = ThreadPoolExecutor(1)
        it = witness.iter(loader())
        for _ in range(8):
            work.train(await asyncio.get_running_loop().run_in_executor(pool, witness.next, it))
        pool.shutdown()

    asyncio.run(main())
