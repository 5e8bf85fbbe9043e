"""PyTorch's loaders (1.13 and newer): patches the base iterator that every framework ends up calling.

Patched are ``_BaseDataLoaderIter.__init__`` and ``__next__``, the multiprocessing iterator's ``__init__`` and
``_reset``, and ``_worker_loop``. ``DataLoader`` itself is left alone, iterators keep their class and stay lazy, and
arguments are read from the loader, never by calling code of the script that it would not have run itself.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict, Optional

from . import fetch as fetching
from . import layout, loaders, samplers
from .builds import inside
from .fetch import observing
from .foreign import own
from .layout import UNKNOWN32
from .ring import Ring
from .stacklevel import transparent
from .stream import IN_ITERATOR, complain, core, failed, now, ring_for, trains
from .track import Loader, Track

MARK = "_datawait_patched"  # attribute of a function that is ours


def patch(module: Any) -> None:
    """Patches torch.utils.data.dataloader, just imported."""
    from . import worker

    fetching.use_torch()
    base = module._BaseDataLoaderIter
    if getattr(base.__next__, MARK, False):
        return
    # Attributes of an iterator, through the class where there is nothing to say: looking into __dict__ instead would
    # make CPython (3.11 on) give up the compact form of the object, and PyTorch's own accesses to it slower.
    base._datawait = None  # its TorchTrack
    base._datawait_begin = None  # when the multiprocessing iterator began to be made
    base.__init__ = _observed_init(base.__init__)
    base.__next__ = _marked(functools.wraps(base.__next__)(observing(base.__next__)))
    _patch_multiprocessing(module._MultiProcessingDataLoaderIter)
    worker.patch(sys.modules["torch.utils.data._utils.worker"])


def patch_stateful(module: Any) -> None:
    """torchdata's StatefulDataLoader: a multiprocessing iterator and a worker loop of its own."""
    from . import worker

    fetching.use_torch()
    _patch_multiprocessing(module._StatefulMultiProcessingDataLoaderIter)
    worker.patch(module)


def _patch_multiprocessing(cls: Any) -> None:
    if not getattr(cls.__init__, MARK, False):
        cls.__init__ = _observed_start(cls.__init__)
    if "_reset" in vars(cls) and not getattr(cls._reset, MARK, False):
        cls._reset = _observed_reset(cls._reset)
    elif not hasattr(cls, "_reset"):
        complain(IN_ITERATOR, "patching a loader", AttributeError("no _reset: later epochs of kept workers are unseen"))


def _marked(wrapper: Any) -> Any:
    setattr(wrapper, MARK, True)
    return transparent(wrapper)


def _observed_init(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        if core.off:
            return original(self, loader, *args, **kwargs)
        begin = now(IN_ITERATOR, "iterator")
        original(self, loader, *args, **kwargs)
        if core.off:
            return
        try:
            track = _track(self, loader, begin)
            if track is not None and not track.starting:
                track.made(self)
        except Exception as error:
            failed(IN_ITERATOR, "iterator", error)

    return _marked(__init__)


def _observed_start(original: Callable[..., None]) -> Callable[..., None]:
    """The multiprocessing iterator: its time includes starting the workers."""

    @functools.wraps(original)
    def __init__(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        if core.off:
            return original(self, loader, *args, **kwargs)
        try:
            self._datawait_begin = core.clock()  # tells the base __init__ that the work goes on after it
        except Exception as error:
            failed(IN_ITERATOR, "iterator start", error)
        original(self, loader, *args, **kwargs)
        try:
            track = self._datawait
            if track is not None:
                track.made(self)
        except Exception as error:
            failed(IN_ITERATOR, "iterator start", error)

    return _marked(__init__)


def _observed_reset(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def _reset(self: Any, *args: Any, **kwargs: Any) -> None:
        track = self._datawait
        if core.off or track is None or track.starting:
            return original(self, *args, **kwargs)
        begin = now(IN_ITERATOR, "iterator reset")
        original(self, *args, **kwargs)
        try:
            track.restart()
            track.index = _index(self)
            track.length = _length(self, args[0] if args else kwargs.get("loader"))
            track.announce(begin, core.clock(), layout.RESET)
        except Exception as error:
            failed(IN_ITERATOR, "iterator reset", error)

    return _marked(_reset)


class TorchTrack(Track):
    """An iterator of a DataLoader."""

    __slots__ = ("begin", "end", "starting", "workers", "prefetch", "pids", "flags", "pin_memory")

    def __init__(self, loader: Loader, begin: int, starting: bool) -> None:
        super().__init__(loader)
        self.begin = begin
        self.end = begin
        self.starting = starting  # its multiprocessing iterator is not complete yet
        self.workers = 0
        self.prefetch = UNKNOWN32
        self.pids: Any = ()
        self.flags = 0
        self.pin_memory = False

    def made(self, it: Any) -> None:
        """The iterator is complete: writes ITERATOR and, where there are workers, one WORKER each."""
        self.end = core.clock()
        self.starting = False
        if self.workers:
            self.prefetch = _count(getattr(it, "_prefetch_factor", None))
        self.pids = tuple(w.pid for w in getattr(it, "_workers", ()))
        self.ready = _ready(it) if self.workers else None
        self.index = _index(it)
        self.announce(self.begin, self.end, 0)

    def announce(self, begin: int, end: int, flags: int) -> None:
        self.begin, self.end, self.flags = begin, end, flags
        ring = ring_for("main")
        if ring is None:
            return
        if self.ring is ring:
            self.begun(ring)
        else:
            self.join(ring)

    def lost(self, it: Any) -> int:
        if self.index is None:
            return super().lost(it)
        batch = self.index(it)
        if self.index is _last_received and batch < self.batch:
            return self.batch  # a timeout or an interrupt: the batch is still to come
        if batch != UNKNOWN32:
            self.batch += 1
        return batch

    def write_iterator(self, ring: Ring) -> None:
        length = UNKNOWN32 if self.length is None else min(self.length, UNKNOWN32 - 1)
        number = self.loader.number
        ring.write(
            layout.pack_iterator, layout.ITERATOR, self.flags, number,
            self.begin, self.end, self.epoch, self.workers, length, self.prefetch,
        )  # fmt: skip
        if self.flags & layout.RESET:
            return
        for worker, pid in enumerate(self.pids):
            if pid is not None:
                ring.write(layout.pack_worker, layout.WORKER, 0, number, self.end, pid, worker, self.epoch)


def _track(it: Any, loader: Any, begin: int) -> Optional[TorchTrack]:
    """Gives a new iterator its Track; the loader is described when it is seen first."""
    if core.guessed and not inside():
        trains()
    known = loaders.find(loader)
    if known is None:
        known = loaders.register(loader, describe(loader))
    if it._datawait is not None:
        return it._datawait
    started = it._datawait_begin
    track = TorchTrack(known, begin if started is None else started, started is not None)
    track.workers = _count(getattr(it, "_num_workers", getattr(loader, "num_workers", None)))
    track.builds = track.workers == 0
    track.pin_memory = bool(getattr(it, "_pin_memory", False))
    if not track.workers:
        track.waiting = 0
    track.length = _length(it, loader)
    it._datawait = track
    return track


def _length(it: Any, loader: Any) -> Optional[int]:
    """Batches the iterator will yield. ``len(loader)`` is not called: on an iterable dataset it has side effects
    (torch then warns when more batches come than it said)."""
    return None if _iterable(loader) else _length_of(getattr(it, "_index_sampler", None))


def _ready(it: Any) -> Optional[Callable[[Any], int]]:
    """Batches built and waiting: received out of order, in the result queue, and already pinned."""
    try:
        queue = it._worker_result_queue
        free: Callable[[], int] = queue._sem._semlock._get_value  # Queue.qsize() without its two method calls
        size = queue._maxsize
        pinned: Any = getattr(it._data_queue, "queue", None) if it._data_queue is not queue else ()

        def ready(it: Any) -> int:
            count = len(it._task_info) - it._tasks_outstanding + size - free() + len(pinned)
            return count if count > 0 else 0

        ready(it)  # with another PyTorch than was known it fails now or not at all
    except Exception as error:
        own(error)
        return None
    return ready


def _index(it: Any) -> Optional[Callable[[Any], int]]:
    """Index under which the worker built the batch just delivered, to join FETCH and BATCH."""
    if not hasattr(it, "_rcvd_idx") or not hasattr(it, "_task_info"):
        return None

    if getattr(it, "_in_order", True):
        return _last_received
    known = set(it._task_info)

    def delivered(it: Any) -> int:
        """Out of order: the one task that is no longer known."""
        now = it._task_info.keys()
        gone = known - now
        known.clear()
        known.update(now)
        return gone.pop() if len(gone) == 1 else UNKNOWN32

    return delivered


def _last_received(it: Any) -> int:
    return int(it._rcvd_idx) - 1


def describe(loader: Any) -> Dict[str, Any]:
    """The `loader` note: classes and arguments, read and never called."""
    dataset = getattr(loader, "dataset", None)
    sampler = getattr(loader, "sampler", None)
    iterable = _iterable(loader)
    context = getattr(loader, "multiprocessing_context", None)
    method = None
    try:
        method = context.get_start_method() if context is not None else None  # type: ignore[union-attr]
    except Exception as error:
        own(error)
    batch_size = loader.batch_size
    if batch_size is None:
        batch_size = _integer(samplers.attributes(getattr(loader, "batch_sampler", None)).get("batch_size"))
    length = dataset_length = None
    if not iterable:
        indexes = getattr(loader, "_index_sampler", None)
        length = _length_of(indexes)
        if length is not None and samplers.measures(indexes, dataset):
            dataset_length = _length_of_dataset(dataset)
    else:  # what len(loader) was told, if anybody asked; asking may cost, or change what the dataset does
        dataset_length = getattr(loader, "_IterableDataset_len_called", None)
    return {
        "kind": "torch",
        "dataset": _class(dataset),
        "sampler": _class(sampler),
        "arguments": {
            "num_workers": loader.num_workers,
            "prefetch_factor": loader.prefetch_factor,
            "batch_size": batch_size,
            "shuffle": type(sampler).__name__ == "RandomSampler" if not iterable else None,
            "pin_memory": bool(loader.pin_memory),
            "persistent_workers": bool(loader.persistent_workers),
            "drop_last": bool(loader.drop_last),
            "in_order": getattr(loader, "in_order", None),  # before 2.6 there is no such argument
            "multiprocessing_context": method,
        },
        "length": _integer(length),
        "dataset_length": _integer(dataset_length),
        "iterable": iterable,
        "name": type(loader).__name__ if type(loader).__name__ != "DataLoader" else None,
    }


def _length_of(indexes: Any) -> Optional[int]:
    try:
        return len(indexes) if samplers.measurable(indexes) else None
    except Exception as error:
        own(error)
        return None


def _length_of_dataset(dataset: Any) -> Optional[int]:
    try:
        return len(dataset)
    except Exception as error:
        own(error)
        return None


def _iterable(loader: Any) -> bool:
    """As PyTorch decides it, and as it told where that has its old name: 1 is _DatasetKind.Iterable."""
    kind = _integer(getattr(loader, "_dataset_kind", None))
    if kind is not None:
        return kind == 1
    return issubclass(type(getattr(loader, "dataset", None)), sys.modules["torch.utils.data"].IterableDataset)


def _count(value: Any) -> int:
    known = _integer(value)
    return UNKNOWN32 if known is None or not 0 <= known < UNKNOWN32 else known


def _integer(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _class(thing: Any) -> Optional[str]:
    if thing is None:
        return None
    return "%s.%s" % (type(thing).__module__, type(thing).__qualname__)
