"""A loader and an iterator of it, as the records know them."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, Optional

from . import layout
from .layout import FIRST, UNKNOWN32
from .ring import NOTES_SPARED, Epoch, Ring
from .stream import core
from .totals import Totals

EMULATED_GPU = os.environ.get("DATAWAIT_GPU") == "emulated"


def _none() -> None:
    return None


class Loader:
    """A loader object as the records know it."""

    __slots__ = ("number", "ring", "note", "epochs", "totals", "latest", "data")
    totals: Totals

    def __init__(self, number: int, note: Dict[str, Any]) -> None:
        self.number = number
        self.note = note
        self.epochs = 0
        self.latest: Callable[[], Any] = _none  # a weak reference to its newest Track
        self.data: Any = None  # what tells its data set from others; an identity, good while its iterator lives
        self.ring: Any = None

    def join(self, ring: Ring, builds: bool, length: Optional[int]) -> None:
        """Announces the loader in a ring that does not know it yet (the first, or a forked child's own)."""
        self.totals = ring.totals_of(self.number, builds, length)
        ring.note(self.note, spare=NOTES_SPARED)
        self.ring = ring  # last: a signal handler that raises before leaves it to be done again


class Track:
    """One iterator of a loader. Holds no reference to the iterator: workers stop when that is dropped."""

    __slots__ = ("loader", "number", "ring", "plain", "epoch", "batch", "first", "length", "ready", "waiting", "index",
                 "builds", "source", "__weakref__")  # fmt: skip

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.number = loader.number
        self.ring: Any = None
        self.plain: Any = None  # the Epoch of its plain fetches, once it has a ring
        self.epoch = loader.epochs
        loader.epochs += 1
        loader.latest = weakref.ref(self)
        self.batch = 0
        self.first = FIRST
        self.length: Optional[int] = None  # batches this iterator will yield
        self.ready: Optional[Callable[[Any], int]] = None  # batches built and waiting …
        self.waiting = UNKNOWN32  # … or the answer that needs no asking
        self.index: Optional[Callable[[Any], int]] = None  # index of the batch just delivered, if not simply counted
        self.builds = False  # the fetch itself builds the batch (no workers): its counters are read
        self.source: Any = None

    def join(self, ring: Ring) -> None:
        if self.loader.ring is not ring:
            self.loader.join(ring, self.builds, self.length)
        self.plain = Epoch(self.number, self.epoch, self.loader.totals)
        self.ring = ring  # not before all that a fetch needs is there
        self.begun(ring)

    def begun(self, ring: Ring) -> None:
        """An epoch of this iterator begins."""
        self.loader.totals.begin_epoch(self.length)
        self.write_iterator(ring)
        look_around()

    def write_iterator(self, ring: Ring) -> None:
        """Writes ITERATOR and what else a reader must know of this iterator."""

    def lost(self, it: Any) -> int:
        """The index of a batch that failed: its place in the epoch is used up all the same."""
        self.batch += 1
        return self.batch - 1

    def waits(self, it: Any) -> int:
        """Batches that are built and wait."""
        return self.waiting if self.ready is None else self.ready(it)

    def restart(self) -> None:
        """The iterator was reset for another epoch (persistent workers)."""
        self.epoch = self.loader.epochs
        self.loader.epochs += 1
        if self.ring is not None:
            self.plain = Epoch(self.number, self.epoch, self.loader.totals)
        self.batch = 0
        self.first = FIRST


def look_around() -> None:
    """Ten times a second and at every new iterator: what may have changed behind the hook's back."""
    _who_trains()
    optimizer = sys.modules.get("datawait.optimizer")
    if optimizer is not None:
        optimizer.rewrap()  # torch.compile takes the wrapper off optimizer classes
    if core.device is None and EMULATED_GPU:
        from . import events

        events.attach(None)  # a loop without optimizers never comes by there


def _who_trains() -> None:
    """Threads end, and a new one may go by the name of an old one, or be the one that trains next."""
    if threading.get_ident() == core.training:
        train_in(threading.get_native_id())
    elif core.unit == layout.BY_OPTIMIZER and core.ring is not None and not training_goes_on():
        core.ring.hold()


def training_goes_on() -> bool:
    """Whether the thread that trains has not ended. Its identity may already be that of another."""
    if core.training == threading.main_thread().ident:
        return True
    return any(thread.native_id == core.thread for thread in threading.enumerate())


def train_in(thread: int) -> None:
    """The native id of the thread that trains."""
    if thread != core.thread:
        if core.ring is not None:
            core.ring.trains_on(thread)
        core.thread = thread
