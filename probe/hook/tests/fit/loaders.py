"""Runs on the side of the job: training with every kind of loader PyTorch offers."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Dict, Optional

import data
import torch
from torch.utils.data import BatchSampler, DataLoader
from witness import Witness, Work


def train(witness: Witness, epochs: int = 2, **shape: Any) -> None:
    """Epochs of one loader."""
    loader, ahead, numbered = make(**shape)
    work = Work(witness)
    for _ in range(epochs):
        for batch in witness.each(loader, ahead=ahead, numbered=numbered):
            work.train(batch)
    torch.save(work.model.state_dict(), "final.pt")
    print("trained %d steps" % witness.count)


def make(
    kind: str = "map",
    workers: int = 0,
    length: int = 24,
    batch_size: Optional[int] = 3,
    seconds: float = 0.0005,
    generator: Optional[int] = None,
    batch_sampler: bool = False,
    drawing_init: bool = False,
    shuffle: bool = False,
    **options: Any,
) -> Any:
    """A loader, told how in the words of DataLoader's own arguments; what tells how far it has gone; and whether its
    k-th batch is its k-th task (workers that share out a stream end at different tasks)."""
    if generator is not None:
        options["generator"] = torch.Generator().manual_seed(generator)
    if drawing_init:
        options["worker_init_fn"] = draw
    if kind == "iterable":
        loader = DataLoader(data.Stream(length, seconds), batch_size=batch_size, num_workers=workers, **options)
        return loader, None if workers else lambda: data.built, not workers
    sampler = data.Shuffled(length, options.get("generator"))
    order: Dict[str, Any] = {"sampler": sampler, "batch_size": batch_size}
    if shuffle:
        loader = DataLoader(data.Items(length, seconds), batch_size, shuffle=True, num_workers=workers, **options)
        return loader, None if workers else lambda: data.built, True
    if batch_sampler:
        order = {"batch_sampler": Tensors(sampler, 3, drop_last=False)}
    loader = DataLoader(data.Items(length, seconds), num_workers=workers, **order, **options)
    return loader, (lambda: sampler.drawn) if workers else (lambda: data.built), True


class Tensors(BatchSampler):
    """Gives the indexes of a batch as a tensor, as some samplers do."""

    def __iter__(self) -> Any:
        return map(torch.tensor, super().__iter__())


def draw(worker: int) -> None:
    torch.rand(worker + 1)


def full_queue(witness: Witness, pin: bool = False, **shape: Any) -> None:
    """Steps so slow that all workers have built ahead all they may when the next batch is asked for."""
    if pin:
        stand_in_for_an_accelerator()
    loader, ahead, numbered = make(length=48, pin_memory=pin, **shape)
    work = Work(witness)
    it = witness.iter(loader, ahead=ahead, numbered=numbered)
    for step in range(3):
        while data.built_by_all() < 3 * (loader.num_workers * loader.prefetch_factor + step):
            time.sleep(0.01)
        time.sleep(0.3)  # for the hand-off
        work.train(witness.next(it))
    witness.loose = True


def pinned(witness: Witness, **shape: Any) -> None:
    """Batches go through PyTorch's pin thread."""
    pins = stand_in_for_an_accelerator()
    train(witness, pin_memory=True, **shape)
    witness.note("pinned", len(pins))
    witness.note("pinned on", sorted({name for name, _ in pins}))
    assert pins and all(device in (None, "standin", "cuda") for _, device in pins), pins


def stand_in_for_an_accelerator() -> Any:
    """There is no accelerator here: this stands in for torch.cuda and torch.accelerator where the loader looks at them,
    so that its pin thread really runs; and for the pinning of a tensor, which copies it. Returns (thread, device) of
    each tensor pinned."""
    import types

    from torch.utils.data import dataloader
    from torch.utils.data._utils import pin_memory

    pins: Any = []

    def pin(self: Any, device: Any = None) -> Any:
        pins.append(("main" if threading.current_thread() is threading.main_thread() else "pin", device))
        return self.clone()

    torch.Tensor.pin_memory = pin  # type: ignore[method-assign]
    device = types.SimpleNamespace(type="standin")
    modules = {
        "cuda": {
            "is_available": lambda: True, "current_device": lambda: 0, "set_device": lambda device: None,
        },
        "accelerator": {
            "is_available": lambda: True, "current_accelerator": lambda: device, "current_device_index": lambda: 0,
            "set_device_index": lambda index: None,
        },
    }  # fmt: skip

    class Torch:
        def __getattr__(self, name: str) -> Any:
            return types.SimpleNamespace(**modules[name]) if name in modules else getattr(torch, name)

    dataloader.torch = pin_memory.torch = Torch()  # type: ignore[attr-defined]
    return pins


def out_of_order(witness: Witness) -> None:
    """in_order=False. Item 0 takes so long that the other worker's batches overtake it, all of them."""
    items = data.Items(24, 0.0)
    items.slow = {0: 1.0}
    loader = DataLoader(items, batch_size=3, num_workers=2, in_order=False)
    work = Work(witness)
    for batch in witness.each(loader, numbered=False):
        work.train(batch)
        witness.note("first", int(batch[1][0]))
    witness.loose = True  # the free worker may or may not build what the slow one was asked for: PyTorch deals in turn


def every_iterator(witness: Witness) -> None:
    """What can be asked of loaders and iterators without fetching."""
    witness.loose = True  # some iterators are made and dropped
    import copy
    import inspect
    import pickle

    for workers in (0, 1):
        loader = DataLoader(data.Items(6), batch_size=2, num_workers=workers)
        it = iter(loader)
        witness.note("asked", [
            len(loader), len(it), type(it).__qualname__, type(it).__module__, iter(it) is it, hasattr(it, "send"),
            inspect.isgenerator(it), str(inspect.signature(type(it).__next__)), type(it).__next__.__doc__,
            type(it).__init__.__qualname__, isinstance(it, type(iter(loader))), data.built,
        ])  # fmt: skip
        copied = pickle.loads(pickle.dumps(copy.deepcopy(loader)))
        witness.note("copied", [len(copied), sorted(vars(copied)) == sorted(vars(loader))])
        for batch in copied:
            witness.saw(batch)
        try:
            pickle.dumps(it)
        except NotImplementedError as error:
            witness.note("pickle", str(error))


def restarted(witness: Witness) -> None:
    """Persistent workers, and a new epoch begun in the middle of one."""
    loader, _, _ = make(workers=2, persistent_workers=True)
    work = Work(witness)
    for batches in (3, 1, 8, 2):
        it = witness.iter(loader)
        for _ in range(batches):
            work.train(witness.next(it))
    witness.loose = True


def peeked(witness: Witness) -> None:
    """A new iterator for every batch."""
    loader, ahead, _ = make()
    work = Work(witness)
    for _ in range(12):
        work.train(witness.next(witness.iter(loader, ahead=ahead)))


def pipes(witness: Witness, workers: int = 0) -> None:
    """PyTorch's data pipes, which are data sets."""
    from torch.utils.data.datapipes.iter import IterableWrapper
    from torch.utils.data.datapipes.map import SequenceWrapper

    work = Work(witness)
    streamed = IterableWrapper(data.Stream(12), deepcopy=False).shuffle(buffer_size=4)
    if workers == 0:
        for batch in witness.each(DataLoader(streamed, batch_size=3), "iter", ahead=lambda: data.built):
            work.train(batch)
    mapped = SequenceWrapper(data.Items(12), deepcopy=False)
    for batch in witness.each(DataLoader(mapped, batch_size=3, shuffle=True, num_workers=workers), "map"):
        work.train(batch)


class AtOnce(data.Items):
    """Builds all items of a batch in one call (PyTorch 2.0 and newer; before that one by one)."""

    def __getitems__(self, indexes: Any) -> Any:
        return [self[index] for index in indexes]


def at_once(witness: Witness, workers: int = 0) -> None:
    work = Work(witness)
    for batch in witness.each(DataLoader(AtOnce(), batch_size=4, num_workers=workers)):
        work.train(batch)


def touchy(witness: Witness, workers: int = 0) -> None:
    """Objects of the script that notice when somebody looks at them: each of their methods draws a random number.

    Not so in a worker's feeder thread, which would draw at any time beside the batch that is built; but each is written
    down there, too.
    """
    loader = DataLoader(TouchyItems(12), batch_sampler=TouchySampler(), collate_fn=touchy_batch, num_workers=workers)
    work = Work(witness)
    for _, _, tensor in witness.each(loader):
        work.train(tensor.as_subclass(torch.Tensor))


def touch(what: str) -> None:
    if threading.current_thread() is threading.main_thread():  # not its feeder
        torch.rand(1)
    with open("touched-%d" % (os.getpid() == data.MAIN), "a", encoding="ascii") as file:
        file.write(what + "\n")


class TouchySampler:
    def __iter__(self) -> Any:
        touch("sampler iterated")
        return iter([[0, 1, 2], [6, 7, 8], [3, 4, 5]])

    def __len__(self) -> int:
        touch("sampler measured")
        return 3


class TouchyItems(data.Items):
    def __len__(self) -> int:
        touch("data set measured")
        return 12


class TouchyTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        touch("tensor: %s" % getattr(function, "__name__", function))
        return super().__torch_function__(function, types, args, kwargs or {})


class TouchyList(list):
    def __iter__(self) -> Any:
        touch("list iterated")
        return super().__iter__()

    def __len__(self) -> int:
        touch("list measured")
        return super().__len__()


class Lazy:
    """Reads its data when they are asked for."""

    def __len__(self) -> int:
        touch("length read")
        return 1

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            touch("attribute %s read" % name)
        raise AttributeError(name)

    @property
    def data(self) -> Any:
        touch("data read")
        return {}


def touchy_batch(samples: Any) -> Any:
    return TouchyList([1, 2]), Lazy(), torch.stack([x for x, _ in samples]).as_subclass(TouchyTensor)


def warned(witness: Witness) -> None:
    """A stream longer than it said, one that raises a warning for its caller, and a collate function that does."""
    import warnings

    class Liar(data.Stream):
        def __len__(self) -> int:
            return 2

        def __repr__(self) -> str:
            return "Liar()"

    def collate(samples: Any) -> Any:
        warnings.warn("collating", stacklevel=2)
        return torch.stack([x for x, _ in samples])

    loader = DataLoader(Liar(8), batch_size=2, collate_fn=collate)
    assert len(loader) == 1
    work = Work(witness)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for batch in witness.each(loader):
            work.train(batch)
        for batch in DataLoader(Liar(2), batch_size=2, collate_fn=collate, num_workers=1):
            witness.saw(batch)
    witness.note("warnings", [[str(w.message), w.filename, w.lineno] for w in caught])
    for _ in DataLoader(Liar(2), batch_size=2, collate_fn=collate, num_workers=1):
        pass  # the worker says it on stderr
