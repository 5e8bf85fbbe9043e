"""One ``next()`` on a loader: the hot path, about two clock reads and one packed record.

``fetch`` calls the loader exactly once and returns or raises exactly what the loader did. The training thread is the
main thread until an optimizer steps on another one; a ``next()`` inside another, or on any other thread, is recorded
as upstream time. Thread CPU is read for fetches at least a millisecond apart, elsewhere it is unknown: reading it
costs as much as all the rest.
"""

from __future__ import annotations

import sys
import threading
from struct import Struct
from typing import Any, Callable, Dict, Optional

from . import layout
from .layout import END, ERROR, FETCH, FIRST, NESTED, NO_GRAD, OFF_THREAD, UNKNOWN32, UNKNOWN64
from .meter import Meter
from .ring import Ring, totals_slot
from .stream import IN_DEVICE, IN_FETCH, complain, core, failed, foreign, ring_for

MILLISECOND = 1_000_000

get_ident = threading.get_ident
_pack_fetch = layout.pack_fetch
_pack_totals = Struct("<QQQQQ").pack_into  # fetches, wait, between, no-grad fetches, end of the last
_pack_progress = Struct("<QQQ").pack_into  # header: fetches of all loaders, epoch length, batch index
_depths = threading.local()  # .depth: next() calls a thread other than the training one is inside of


def _always() -> bool:
    return True


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
    """A loader object as the records know it, with its running totals."""

    __slots__ = ("number", "ring", "note", "epochs", "totals_at", "fetches", "wait", "between", "no_grad",
                 "last_end", "first_begin", "built", "length", "meter")  # fmt: skip

    def __init__(self, number: int, note: Dict[str, Any]) -> None:
        self.number = number
        self.note = note
        self.totals_at = totals_slot(number)
        self.epochs = 0
        self.length: Optional[int] = None
        self.meter: Optional[Meter] = None
        self.ring: Optional[Ring] = None
        self.clear()

    def clear(self) -> None:
        self.fetches = self.wait = self.between = self.no_grad = self.last_end = self.first_begin = self.built = 0

    def join(self, ring: Ring) -> None:
        """Announces the loader in a ring that does not know it yet (the first, or a forked child's own)."""
        self.clear()
        self.meter = None
        self.ring = ring
        ring.note(self.note)


class Track:
    """One iterator of a loader. Holds no reference to the iterator: workers stop when that is dropped."""

    __slots__ = ("loader", "ring", "epoch", "batch", "first", "length", "ready", "index", "builds",
                 "source", "__weakref__")  # fmt: skip

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.ring: Optional[Ring] = None
        self.epoch = loader.epochs
        loader.epochs += 1
        self.batch = 0
        self.first = FIRST
        self.length: Optional[int] = None  # batches this iterator will yield
        self.ready: Optional[Callable[[Any], int]] = None  # batches built and waiting
        self.index: Optional[Callable[[Any], int]] = None  # index of the batch just delivered, if not simply counted
        self.builds = False  # the fetch itself builds the batch (no workers): its counters are read
        self.source: Any = None

    def join(self, ring: Ring) -> None:
        self.ring = ring
        if self.loader.ring is not ring:
            self.loader.join(ring)
        self.write_iterator(ring)

    def write_iterator(self, ring: Ring) -> None:
        """Writes ITERATOR and what else a reader must know of this iterator."""

    def restart(self) -> None:
        """The iterator was reset for another epoch (persistent workers)."""
        self.epoch = self.loader.epochs
        self.loader.epochs += 1
        self.batch = 0
        self.first = FIRST


def fetch(track: Track, call: Callable[[Any], Any], it: Any) -> Any:
    """``call(it)``, observed. At a step boundary the cached-data test may serve the batch instead."""
    if core.test_due and core.boundary != core.step:
        source = None
        try:
            source = _at_boundary(track, call, it)
        except Exception as error:
            failed(IN_FETCH, "step boundary", error)
        if source is not None:
            return core.test.serve(source)
    return live(track, call, it, 0)


def _at_boundary(track: Track, call: Callable[[Any], Any], it: Any) -> Any:
    """The source to serve from when the cached-data test wants this step, else None."""
    if core.off or core.depth or get_ident() != core.training or not is_grad_enabled():
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
    core.boundary = core.step
    if not core.test.poll(core.step):
        return None
    from .source import source_of

    return source_of(track, call, it)


def live(track: Track, call: Callable[[Any], Any], it: Any, extra: int) -> Any:
    """One real ``call(it)`` with its FETCH; extra are further flags of the record."""
    if core.off:
        return call(it)
    if get_ident() != core.training:
        return _off_thread(track, call, it, extra)
    ring = core.ring or ring_for("main")
    if ring is None:
        return call(it)
    depth = core.depth
    mark = meter = None
    try:
        if track.ring is not ring:
            track.join(ring)
        flags = extra | track.first
        if depth:
            flags |= NESTED
        if not is_grad_enabled():
            flags |= NO_GRAD
        core.depth = depth + 1
        ready = track.ready
        waiting = UNKNOWN32 if ready is None else ready(it)
        step = core.step
        if core.device is not None and not depth:
            mark = _device_before()
        cpu = -1
        enter = core.clock()
        if enter >= core.measure_at:
            core.measure_at = enter + MILLISECOND
            if track.builds and not depth:
                meter = _meter(track)
                meter.begin()
            cpu = core.cpu_clock()
            enter = core.clock()
    except Exception as error:
        core.depth = depth
        failed(IN_FETCH, "before next", error)
        return call(it)
    try:
        batch = call(it)
    except BaseException as error:
        end = END if isinstance(error, StopIteration) else ERROR
        try:
            leave = core.clock()
            spent = UNKNOWN64 if cpu < 0 else core.cpu_clock() - cpu
            core.depth = depth
            _write(ring, track, flags | end, enter, leave, track.batch, step, waiting, spent)
        except Exception as inner:
            failed(IN_FETCH, "after failed next", inner)
        raise
    try:
        leave = core.clock()
        spent = UNKNOWN64 if cpu < 0 else core.cpu_clock() - cpu
        core.depth = depth
        after = meter.end() if meter is not None else None
        index = track.index
        number = _write(
            ring, track, flags, enter, leave, track.batch if index is None else index(it), step, waiting, spent
        )
        track.batch += 1
        track.first = 0
        if meter is not None and after is not None:
            meter.write(ring, track.loader.number, after, batch, False)
        if mark is not None:
            _device_after(mark, number, track.loader.number, ring)
    except Exception as error:
        failed(IN_FETCH, "after next", error)
    return batch


def _write(
    ring: Ring, track: Track, flags: int, enter: int, leave: int, batch: int, step: int, ready: int, cpu: int
) -> int:
    """FETCH, totals and header of a fetch on the training thread; returns the record's number."""
    loader = track.loader
    with ring.lock:
        number = ring.head + 1
        seq = number & 0xFFFFFFFF
        at = 65536 + (((number - 1) & (ring.capacity - 1)) << 6)
        ring.map[at : at + 64] = _pack_fetch(
            seq, FETCH, flags, loader.number, enter, leave, batch, track.epoch, step, core.thread, cpu, ready,
            core.block, seq,
        )  # fmt: skip
        ring.head = number
        ring.longs[3] = number
    if flags & 0b00010111:  # nested, off-thread, cached, discarded: no wait of the training
        return number
    if loader.last_end:
        loader.between += enter - loader.last_end
    else:
        ring.longs[(loader.totals_at >> 3) + 6] = loader.first_begin = enter
    loader.last_end = leave
    loader.wait += leave - enter
    delivered = not flags & 0b01001000
    if delivered:
        loader.fetches += 1
        core.fetches += 1
        if not core.fetches & 63:
            _look_after_steps()
        if track.builds:
            loader.built += 1
            ring.longs[(loader.totals_at >> 3) + 5] = loader.built
    if flags & NO_GRAD:
        loader.no_grad += delivered
        core.validation = _validated(core.validation, loader.number, enter, leave)
    else:
        if core.validation is not None:
            _validation_over(ring)
        length = track.length
        _pack_progress(ring.map, 104, core.fetches, UNKNOWN64 if length is None else length, track.batch)
        if core.unit == 0 and delivered:
            core.step += 1
            ring.longs[10] = core.step
    _pack_totals(
        ring.map, loader.totals_at, loader.fetches, loader.wait, loader.between, loader.no_grad, loader.last_end
    )
    if leave > ring.clock_due:
        ring.pair_clocks()
    return number


def _look_after_steps() -> None:
    """torch.compile takes our wrapper off optimizer classes; every 64 fetches it is looked for."""
    optimizer = sys.modules.get("datawait.optimizer")
    if optimizer is not None:
        optimizer.rewrap()


def _validated(sofar: Any, loader: int, enter: int, leave: int) -> Any:
    if sofar is None:
        return (loader, enter, leave)
    return (sofar[0], sofar[1], leave)


def _validation_over(ring: Ring) -> None:
    """A training fetch after fetches without autograd: the validation loop between them is one MARK."""
    loader, begin, end = core.validation
    core.validation = None
    ring.mark(layout.VALIDATION, begin, end, loader)


def _meter(track: Track) -> Meter:
    meter = track.loader.meter
    if meter is None:
        meter = track.loader.meter = Meter(core.cpu_clock)
    return meter


def _off_thread(track: Track, call: Callable[[Any], Any], it: Any, extra: int) -> Any:
    """A fetch on a thread that does not train: recorded as upstream, kept out of the totals."""
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
        waiting = UNKNOWN32 if track.ready is None else track.ready(it)
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
        _finish_off_thread(ring, track, flags, enter, track.batch, step, thread, cpu, waiting, depth)
        raise
    index = track.batch if track.index is None else track.index(it)
    _finish_off_thread(ring, track, flags, enter, index, step, thread, cpu, waiting, depth)
    track.batch += 1
    track.first = 0
    return batch


def _finish_off_thread(
    ring: Ring, track: Track, flags: int, enter: int, batch: int, step: int, thread: int, cpu: int, ready: int,
    depth: int,
) -> None:  # fmt: skip
    _depths.depth = depth
    try:
        leave = core.clock()
        ring.write(
            _pack_fetch, FETCH, flags, track.loader.number, enter, leave, batch, track.epoch, step, thread,
            core.cpu_clock() - cpu, ready, 0,
        )  # fmt: skip
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
    if foreign(error):
        raise error
    core.device = None
    complain(IN_DEVICE, "device clock", error)
