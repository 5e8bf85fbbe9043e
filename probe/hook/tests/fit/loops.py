"""Runs on the side of the job: training loops as people write them."""

from __future__ import annotations

import gc
import itertools
import os
import queue
import signal
import sys
import threading
import time
from typing import Any, Iterator

import data
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from witness import Witness, Work


def loader(length: int = 24, workers: int = 0, **options: Any) -> Any:
    dataset = data.Items(length, bad=options.pop("bad", ()))
    return DataLoader(dataset, batch_size=options.pop("batch_size", 3), num_workers=workers, **options)


def built() -> int:
    return data.built


# --- several loaders ------------------------------------------------------------------------------------------------


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


# --- ways to go through one ---------------------------------------------------------------------------------------


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


# --- threads ------------------------------------------------------------------------------------------------------


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


# --- ends and interruptions -----------------------------------------------------------------------------------------


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


# --- optimizers -----------------------------------------------------------------------------------------------------


def closures(witness: Witness) -> None:
    """LBFGS evaluates the loss as often as it likes within one step."""
    work = Work(witness, lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=4))
    for batch in witness.each(loader(), ahead=built):

        def closure(batch: Any = batch) -> Any:
            work.optimizer.zero_grad()
            loss = work.loss(batch)
            loss.backward()
            witness.note("evaluated", float(loss).hex())
            return loss

        witness.saw(batch, witness.step(work.optimizer, closure))


def several_optimizers(witness: Witness, count: int = 3) -> None:
    """One for each part of the model; the first is the one that counts."""
    work = Work(witness)
    work.model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(count)))
    optimizers = [torch.optim.AdamW(part.parameters(), lr=0.01) for part in work.model]
    for batch in witness.each(loader()):
        loss = work.loss(batch)
        loss.backward()
        for number, optimizer in enumerate(optimizers):
            if number < 16:
                witness.step(optimizer, counts=number == 0)
            else:
                optimizer.step()  # the ring leaves these out
            optimizer.zero_grad()
        witness.saw(batch, loss)


def scheduled(witness: Witness) -> None:
    """Learning-rate schedulers wrap step() as well."""
    work = Work(witness)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(work.optimizer, 0.1, total_steps=20)
    for batch in witness.each(loader()):
        work.train(batch)
        scheduler.step()
        witness.note("rate", scheduler.get_last_lr()[0].hex())


def scaled(witness: Witness) -> None:
    """A gradient scaler that skips the steps of two batches."""
    work = Work(witness)
    scaler = make_scaler(work)
    for number, batch in enumerate(witness.each(loader())):
        loss = work.loss(batch) * (float("inf") if number in (2, 5) else 1.0)
        work.optimizer.zero_grad()
        scaler.scale(loss).backward()
        if number in (2, 5):
            scaler.step(work.optimizer)
        else:
            witness.step(work.optimizer, call=lambda: scaler.step(work.optimizer))
        scaler.update()
        witness.saw(batch, loss)
    witness.note("scale", scaler.get_scale())
    witness.note("weights", work.model.weight.flatten().tolist())


def make_scaler(work: Work) -> Any:
    """PyTorch's for the CPU (2.3 and newer); before that there is none, and this stands in for it."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cpu", init_scale=16.0)

    class Scaler:
        factor = 16.0
        found = False

        def scale(self, loss: Any) -> Any:
            return loss * self.factor

        def step(self, optimizer: Any) -> Any:
            gradients = [parameter.grad for group in optimizer.param_groups for parameter in group["params"]]
            for gradient in gradients:
                gradient.div_(self.factor)
            self.found = not all(torch.isfinite(gradient).all() for gradient in gradients)
            return None if self.found else optimizer.step()

        def update(self) -> None:
            self.factor *= 0.5 if self.found else 1.0

        def get_scale(self) -> float:
            return self.factor

    return Scaler()


def by_hand(witness: Witness) -> None:
    """No optimizer: the weights are moved by hand."""
    work = Work(witness)
    for _ in range(2):
        for batch in witness.each(loader(), ahead=built):
            loss = work.loss(batch)
            work.model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in work.model.parameters():
                    parameter -= 0.01 * parameter.grad
            witness.saw(batch, loss)


def inference(witness: Witness, workers: int = 0) -> None:
    work = Work(witness)
    with torch.no_grad():
        for batch in witness.each(loader(24, workers)):
            witness.saw(batch, work.loss(batch))


def sweep(witness: Witness) -> None:
    """More trainings in one process than there are optimizers whose steps the ring takes in any case."""
    for _ in range(18):
        work = Work(witness)
        for batch in witness.each(loader(6)):
            work.train(batch)


def saves(witness: Witness) -> None:
    """A checkpoint every third step, resumed from in mid-run."""
    work = Work(witness)
    for number, batch in enumerate(witness.each(loader())):
        work.train(batch)
        if number % 3 == 2:
            state = {"model": work.model.state_dict(), "optimizer": work.optimizer.state_dict(), "step": number}
            torch.save(state, "step-%d.pt" % number)
    state = torch.load("step-2.pt")
    work.model.load_state_dict(state["model"])
    work.optimizer.load_state_dict(state["optimizer"])
    for batch in witness.each(loader()):
        work.train(batch)
