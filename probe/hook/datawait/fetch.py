"""One ``next()`` on a loader: the hot path, about two clock reads and one packed record.

``fetch`` calls the loader exactly once and returns or raises exactly what the loader did. The training thread is the
main thread until an optimizer steps on another one; a ``next()`` inside another, or on any other thread, is recorded
as upstream time. What other threads fetch before the first step is held back until that says which of them trains.
Thread CPU is read for fetches at least a millisecond apart (ten where they are trivial), elsewhere it is unknown:
reading it costs as much as all the rest.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, Optional

from . import layout
from .foreign import own
from .layout import END, ERROR, FETCH, FIRST, NESTED, NO_GRAD, OFF_THREAD, UNCOUNTED, UNKNOWN32, UNKNOWN64
from .meter import Meter
from .ring import NOTES_SPARED, Ring, Totals
from .stacklevel import transparent
from .stream import IN_DEVICE, IN_FETCH, complain, core, failed, ring_for

MILLISECOND = 1_000_000
TRIVIAL = MILLISECOND // 10  # fetches that take less are measured every ten milliseconds
LOOK_EVERY = 100 * MILLISECOND
UNSTEPPED = UNCOUNTED | NO_GRAD  # where steps are fetches, these are none
EMULATED_GPU = os.environ.get("DATAWAIT_GPU") == "emulated"

get_ident = threading.get_ident
_depths = threading.local()  # .depth: next() calls a thread other than the training one is inside of


def _always() -> bool:
    return True


def _none() -> None:
    return None


is_grad_enabled: Callable[[], bool] = _always


def use_torch() -> None:
    """Autograd's switch tells validation from training; without torch everything counts as training."""
    global is_grad_enabled
    torch = sys.modules.get("torch")
    found = getattr(torch, "is_grad_enabled", None)
    if found is None:
        found = getattr(sys.modules.get("torch._C"), "is_grad_enabled", None)
    if found is not None:
        is_grad_enabled = found


class Loader:
    """A loader object as the records know it."""

    __slots__ = ("number", "ring", "note", "epochs", "totals", "latest")
    totals: Totals

    def __init__(self, number: int, note: Dict[str, Any]) -> None:
        self.number = number
        self.note = note
        self.epochs = 0
        self.latest: Callable[[], Any] = _none  # a weak reference to its newest Track
        self.ring: Optional[Ring] = None

    def join(self, ring: Ring, builds: bool, length: Optional[int]) -> None:
        """Announces the loader in a ring that does not know it yet (the first, or a forked child's own)."""
        self.ring = ring
        self.totals = ring.totals_of(self.number, builds, length)
        ring.note(self.note, spare=NOTES_SPARED)


class Track:
    """One iterator of a loader. Holds no reference to the iterator: workers stop when that is dropped."""

    __slots__ = ("loader", "number", "ring", "epoch", "batch", "first", "length", "ready", "waiting", "index", "builds",
                 "source", "__weakref__")  # fmt: skip

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.number = loader.number
        self.ring: Optional[Ring] = None
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
        self.ring = ring
        if self.loader.ring is not ring:
            self.loader.join(ring, self.builds, self.length)
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

    def restart(self) -> None:
        """The iterator was reset for another epoch (persistent workers)."""
        self.epoch = self.loader.epochs
        self.loader.epochs += 1
        self.batch = 0
        self.first = FIRST


@transparent
def fetch(track: Track, call: Callable[[Any], Any], it: Any, extra: int = 0, real: bool = False) -> Any:
    """``call(it)``, observed; extra are further flags of its record.

    The batch may come from the cached-data test instead, which decides at each step boundary, unless the fetch has
    to be real.
    """
    if core.off or get_ident() != core.training:
        return _aside(track, call, it, extra)
    if core.test_due and not real and (core.serving or core.boundary != core.step):
        source = _source(track, call, it)
        if source is not None:
            return core.test.serve(source)
    ring = core.ring or ring_for("main")
    if ring is None:
        return call(it)
    depth = core.depth
    mark = meter = None
    cpu = -1
    flags = track.first | extra
    timing = core.timing
    try:
        began = core.clock() if timing else 0
        if track.ring is not ring:
            track.join(ring)
        if depth:
            flags |= NESTED
        else:
            core.inside = track
            if core.device is not None:
                mark = _device_before()
        if not is_grad_enabled():
            flags |= NO_GRAD
        ready = track.ready
        waiting = track.waiting if ready is None else ready(it)
        step = core.step
        core.depth = depth + 1
        enter = core.clock()
        if enter >= core.measure_at:
            core.measure_at = enter + MILLISECOND
            if track.builds and not depth:
                meter = _meter()
                meter.begin(enter)
            cpu = core.cpu_clock()
            enter = core.clock()
    except BaseException as error:
        core.depth = depth
        if not isinstance(error, Exception):  # an interrupt that happened to come here
            raise
        failed(IN_FETCH, "before next", error)
        return call(it)
    try:
        batch = call(it)
    except BaseException as error:
        _raised(error, ring, track, it, flags, enter, step, waiting, cpu, depth)
        raise
    try:
        leave = core.clock()
        spent = UNKNOWN64
        if cpu >= 0:
            spent = core.cpu_clock() - cpu
            if leave - enter < TRIVIAL:
                core.measure_at = enter + 10 * MILLISECOND
        after = None if meter is None else meter.end()
        core.depth = depth
        if not depth:
            core.inside = None
        index = track.index
        batch_index = track.batch if index is None else index(it)
        number = track.number
        pending = ring.pending
        pending.append((
            FETCH, flags, number, enter, leave, batch_index, track.epoch, step, core.thread, spent, waiting, core.block,
        ))  # fmt: skip
        if meter is not None and after is not None:
            meter.write(ring, number, after, batch, False)
        track.batch += 1
        track.first = 0
        if core.unit == 0 and not flags & UNSTEPPED:
            core.step = step + 1
        core.timing = False
        if leave >= ring.flush_at or mark is not None or len(pending) > 63:
            core.timing = True
            last = ring.flush(leave)
            if mark is not None:
                _device_after(mark, last if meter is None else last - 2, number, ring)
            if leave >= core.look_at:
                core.look_at = leave + LOOK_EVERY
                look_around()
        if timing and not flags & FIRST:  # the first made the ring and said what the loader is
            ring.longs[layout.Q_OWN_NS] += enter - began + core.clock() - leave
            ring.longs[layout.Q_OWN_FETCHES] += 1
    except BaseException as error:
        core.depth = depth
        if not isinstance(error, Exception):
            raise
        failed(IN_FETCH, "after next", error)
    return batch


def _raised(
    error: BaseException, ring: Ring, track: Track, it: Any, flags: int, enter: int, step: int, waiting: int,
    cpu: int, depth: int,
) -> None:  # fmt: skip
    """The loader ended or failed: nothing was delivered, but the training waited for it."""
    try:
        leave = core.clock()
        spent = UNKNOWN64 if cpu < 0 else core.cpu_clock() - cpu
        core.depth = depth
        if not depth:
            core.inside = None
        if core.device is not None and not depth:
            core.device.broken()
        track.first = 0
        if isinstance(error, StopIteration):
            flags, batch = flags | END, track.batch
        else:
            flags, batch = flags | ERROR, track.lost(it)
        fields = (batch, track.epoch, step, core.thread, spent, waiting, core.block)
        ring.pending.append((FETCH, flags, track.number, enter, leave, *fields))
        ring.flush(leave)
    except Exception as inner:
        core.depth = depth
        failed(IN_FETCH, "after failed next", inner)


def record(track: Track, flags: int, enter: int, leave: int, batch: int, ready: int) -> int:
    """A FETCH that did not touch the loader, for the cached-data test; returns the record's number."""
    ring = core.ring
    assert ring is not None
    fields = (batch, track.epoch, core.step, core.thread, UNKNOWN64, ready, core.block)
    ring.pending.append((FETCH, flags, track.number, enter, leave, *fields))
    number = ring.flush(leave)
    if core.unit == 0 and not flags & END:
        core.step += 1
        ring.longs[layout.Q_STEP] = core.step
    ring.longs[layout.Q_BATCH] = batch
    if core.device is not None:
        core.device.broken()  # the device time up to the next real fetch is not that of one step
    return number


def _source(track: Track, call: Callable[[Any], Any], it: Any) -> Any:
    """The source to serve from when the cached-data test wants this step's fetches, else None."""
    try:
        if core.depth or not is_grad_enabled():
            return None
        ring = ring_for("main")
        if ring is None:
            return None
        if core.test is None:
            from .source import begin_test

            if not begin_test(ring):
                core.test_due = False
                return None
        if track.ring is not ring:
            track.join(ring)
        if core.boundary != core.step:
            core.boundary = core.step
            core.serving = core.test.poll(core.step)
        if not core.serving:
            return None
        from .source import source_of

        return source_of(track, call, it)
    except Exception as error:
        failed(IN_FETCH, "step boundary", error)
        return None


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
    if get_ident() == core.training:
        core.thread = threading.get_native_id()
    elif core.unit == layout.BY_OPTIMIZER and core.ring is not None and not training_goes_on():
        core.ring.hold()


def training_goes_on() -> bool:
    """Whether the thread that trains has not ended. Its identity may already be that of another."""
    if core.training == threading.main_thread().ident:
        return True
    return any(thread.native_id == core.thread for thread in threading.enumerate())


def _meter() -> Meter:
    """The counters of the training thread."""
    meter: Optional[Meter] = core.meter
    if meter is None or meter.thread != core.thread:
        meter = core.meter = Meter(core.cpu_clock)
    return meter


@transparent
def _aside(track: Track, call: Callable[[Any], Any], it: Any, extra: int) -> Any:
    """A fetch while the hook is off, or on a thread that does not train: upstream, kept out of the totals."""
    if core.off:
        return call(it)
    ring = core.ring or ring_for("main")
    if ring is None:
        return call(it)
    depth = getattr(_depths, "depth", 0)
    try:
        if track.ring is not ring:
            track.join(ring)
        _depths.depth = depth + 1
        flags = extra | track.first | OFF_THREAD | (NESTED if depth else 0)
        if not is_grad_enabled():
            flags |= NO_GRAD
        waiting = track.waiting if track.ready is None else track.ready(it)
        step = core.step
        thread = threading.get_native_id()
        cpu = core.cpu_clock()
        enter = core.clock()
    except Exception as error:
        _depths.depth = depth
        failed(IN_FETCH, "before next off thread", error)
        return call(it)
    try:
        batch = call(it)
    except BaseException as error:
        flags |= END if isinstance(error, StopIteration) else ERROR
        _finish_aside(ring, track, it, flags, enter, step, thread, cpu, waiting, depth)
        raise
    _finish_aside(ring, track, it, flags, enter, step, thread, cpu, waiting, depth)
    return batch


def _finish_aside(
    ring: Ring, track: Track, it: Any, flags: int, enter: int, step: int, thread: int, cpu: int, ready: int,
    depth: int,
) -> None:  # fmt: skip
    _depths.depth = depth
    try:
        leave = core.clock()
        batch = track.batch
        if flags & ERROR:
            batch = track.lost(it)
        elif not flags & END:
            batch = batch if track.index is None else track.index(it)
            track.batch += 1
        track.first = 0
        spent = core.cpu_clock() - cpu
        record = (FETCH, flags, track.number, enter, leave, batch, track.epoch, step, thread, spent, ready, 0)
        if ring.held is None or not ring.hold_back(record):
            ring.put_off(leave, record)
    except Exception as error:
        failed(IN_FETCH, "after next off thread", error)


def _device_before() -> Any:
    try:
        return core.device.before()
    except Exception as error:
        _no_device(error)
        return None


def _device_after(mark: Any, number: int, loader: int, ring: Ring) -> None:
    try:
        core.device.after(mark, number, loader, ring)
    except Exception as error:
        _no_device(error)


def _no_device(error: BaseException) -> None:
    """The device clock failed: exposure becomes unknown, the host clock goes on."""
    own(error)
    core.device = None
    complain(IN_DEVICE, "device clock", error)
