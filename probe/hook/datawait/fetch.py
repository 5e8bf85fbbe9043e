"""One ``next()`` on a loader: the hot path, about two clock reads and one packed record.

The loader is called exactly once, and what it returned or raised is returned or raised. The training thread is the
main thread until an optimizer steps on another one; a ``next()`` inside another, or on any other thread, is recorded
as upstream time. What other threads fetch before the first step is held back until that says which of them trains.
Thread CPU is read for fetches at least ten milliseconds apart (one where they build the batch, with all other counters;
fifty where they are trivial), elsewhere it is unknown. All that is made of it is a mean, and where the caches are cold,
as they are after a wait for a worker, a fetch for which it is read takes several times what another takes.

There are two ways through it that leave the same records. In a loop faster than these ten milliseconds most fetches
only have two times to tell: they go the short way of ``observing``, which is one frame and as few lines as can be. What
is cold costs more than what is computed: a batch of a real loader runs through more code than the processor's first
cache holds, so ten lines of Python between two of them take as long as thirty in a loop of their own, and after a step
of 30 ms every object, C function and system call touched is a microsecond or more. Tried, and no better: packing at
once instead of in rows of 64 (or of 32 or 16: a flush has its own price), packing a row by columns, records as flat
lists of numbers, properties that fold the switches of ``core`` into one.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Optional, Tuple

from . import layout, stacks
from .foreign import own
from .layout import END, ERROR, FETCH, FIRST, NESTED, NO_GRAD, OFF_THREAD, UNCOUNTED, UNKNOWN64
from .meter import REST, TRIVIAL, Meter
from .ring import PLAIN, Ring
from .stacklevel import transparent
from .stream import IN_DEVICE, IN_FETCH, complain, core, failed, ring_for
from .track import Loader as Loader
from .track import Track as Track
from .track import look_around
from .transforms import timings

MILLISECOND = 1_000_000
BETWEEN_CLOCKS = 10 * MILLISECOND
LOOK_EVERY = 100 * MILLISECOND
UNSTEPPED = UNCOUNTED | NO_GRAD  # where steps are fetches, these are none

get_ident = threading.get_ident
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


def observing(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A ``__next__`` around call for iterators that carry their Track in ``_datawait``: the short way.

    It is for the training fetches of a loop under way. ``fetch`` takes the others: the first of an iterator, those
    inside another, without autograd, with a device clock, for the cached-data test, on other threads, those whose CPU
    is to be read, and all while the hook is off.
    """
    state: Any = core

    def __next__(self: Any) -> Any:
        track = self._datawait
        if track is None:  # made before the hook was installed, or while it was off
            return call(self)
        ring = track.ring
        if (
            ring is not state.ring or state.inside is not None or not track.batch or state.off or state.timing
            or state.test_due or state.device is not None or get_ident() != state.training
        ):  # fmt: skip
            return fetch(track, call, self)
        try:
            plain = is_grad_enabled()
            ready = track.ready
            waiting = track.waiting if ready is None else ready(self)
            step = state.step
            clock = state.clock  # called as a method it would be looked for among methods first
            state.inside = track
            enter = clock()
            if enter >= state.measure_at or not plain:
                plain = False
                state.inside = None
        except BaseException as error:
            state.inside = None
            _failed(error, "before next")
            return call(self)
        if not plain:
            return fetch(track, call, self, seen=(enter, waiting))
        try:
            batch = call(self)
        except BaseException as error:
            _raised(error, ring, track, self, 0, enter, step, waiting, -1, None)
            raise
        try:
            leave = clock()
            number = track.batch
            index = track.index
            pending = ring.pending
            pending.append((PLAIN, track.plain, enter, leave, number if index is None else index(self), step, waiting))
            state.inside = None  # not before: a signal handler may fetch between any two lines
            track.batch = number + 1
            if state.unit == 0:
                state.step = step + 1
            if leave >= ring.flush_at or len(pending) > 63:
                _flush(ring, leave)
        except BaseException as error:
            state.inside = None
            _failed(error, "after next")
        return batch

    return __next__


@transparent
def fetch(
    track: Track, call: Callable[[Any], Any], it: Any, extra: int = 0, real: bool = False,
    seen: Optional[Tuple[int, int]] = None,
) -> Any:  # fmt: skip
    """``call(it)``, observed; extra are further flags of its record, and seen is what the short way, if it was tried,
    has asked for already: the time, and how many batches wait.

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
    outer = core.inside
    mark = None
    cpu = -1
    flags = track.first | extra
    timing = core.timing
    try:
        began = core.clock() if seen is None else seen[0]
        if track.ring is not ring:
            track.join(ring)
        if outer is not None:
            flags |= NESTED
        else:
            core.inside = track
            if core.device is not None:
                mark = _device_before()
        if not is_grad_enabled():
            flags |= NO_GRAD
        waiting = track.waits(it) if seen is None else seen[1]
        step = core.step
        enter = core.clock()
        if enter >= core.measure_at:
            cpu = _look(enter, track.builds and outer is None)
            enter = core.clock()
    except BaseException as error:
        core.inside = outer
        _failed(error, "before next")
        return call(it)
    try:
        batch = call(it)
    except BaseException as error:
        _raised(error, ring, track, it, flags, enter, step, waiting, cpu, outer)
        raise
    try:
        leave = core.clock()
        light = _deliver(batch, ring, track, it, flags, began, enter, leave, step, waiting, cpu, outer, mark)
        if timing:
            core.timing = False
            if not flags and cpu < 0 and mark is None:
                ring.light = light
    except BaseException as error:
        core.inside = outer
        _failed(error, "after next")
    return batch


def _look(now: int, builds: bool) -> int:
    """Reads all counters where the fetch builds the batch, a millisecond after the last time, else the thread's CPU."""
    if not builds:
        core.measure_at = now + BETWEEN_CLOCKS
        return core.cpu_clock()
    core.measure_at = now + MILLISECOND
    meter = _meter()
    meter.begin(now)
    return meter.cpu


def _deliver(
    batch: Any, ring: Ring, track: Track, it: Any, flags: int, began: int, enter: int, leave: int, step: int,
    waiting: int, cpu: int, outer: Any, mark: Any,
) -> int:  # fmt: skip
    """Records a fetch that gave a batch and about which there is more to say; returns what the hook took of it, but
    for writing what was pending."""
    after = None
    spent = UNKNOWN64
    if cpu >= 0 and get_ident() == core.training:  # still
        if track.builds and outer is None:
            after = core.meter.end()
            spent = after[0][0]
        else:
            spent = core.cpu_clock() - cpu
        if leave - enter < TRIVIAL:
            core.measure_at = enter + REST
    core.inside = outer
    index = track.index
    number = track.number
    pending = ring.pending
    record = (
        FETCH, flags, number, enter, leave, track.batch if index is None else index(it), track.epoch, step,
        core.thread, spent, waiting, core.block,
    )  # fmt: skip
    pending.append(record if mark is None else _device_after(mark, record, ring))
    if after is not None:
        core.meter.write(ring, number, after, batch, False)
    track.batch += 1
    track.first = 0
    if core.unit == 0 and not flags & UNSTEPPED:
        core.step = step + 1
    took = enter - began - leave
    light = took + core.clock() if core.timing and cpu < 0 else 0
    if leave >= ring.flush_at or len(pending) > 63:
        ring.flush(leave)
        if leave >= core.look_at:
            core.look_at = leave + LOOK_EVERY
            core.timing = True
            look_around()
    if not flags & FIRST:  # the first made the ring and said what the loader is
        ring.took(took + core.clock(), 1)
    return light


def _flush(ring: Ring, leave: int) -> None:
    """Writes what is pending after a fetch of the short way."""
    ring.flush(leave)
    if leave >= core.look_at:
        core.look_at = leave + LOOK_EVERY
        core.timing = True
        look_around()
    if ring.light:  # else its fetches are not counted yet
        ring.took(core.clock() - leave, 0)


def _failed(error: BaseException, where: str) -> None:
    if not isinstance(error, Exception):  # an interrupt that happened to come here
        raise error
    failed(IN_FETCH, where, error)


def _raised(
    error: BaseException, ring: Ring, track: Track, it: Any, flags: int, enter: int, step: int, waiting: int,
    cpu: int, outer: Any,
) -> None:  # fmt: skip
    """The loader ended or failed: nothing was delivered, but the training waited for it."""
    try:
        leave = core.clock()
        spent = UNKNOWN64 if cpu < 0 else core.cpu_clock() - cpu
        core.inside = outer
        if core.device is not None and outer is None:
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
        core.inside = outer
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
        if core.inside is not None or not is_grad_enabled():
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


def _meter() -> Meter:
    """The counters of the training thread."""
    meter: Optional[Meter] = core.meter
    if meter is None or meter.thread != core.thread:
        meter = core.meter = Meter(core.cpu_clock)
        if core.sampler is None and core.ring is not None and stacks.wanted("main"):
            timings.begin(_built_for)
            core.sampler = stacks.start(core.ring, _built_for)
    return meter


def _built_for() -> Optional[int]:
    """The loader whose batch the training thread is building; None while it is not."""
    track = core.inside
    return track.number if track is not None and track.builds else None


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
        waiting = track.waits(it)
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


def _device_after(mark: Any, record: Tuple[Any, ...], ring: Ring) -> Tuple[Any, ...]:
    """The record of a fetch around which there is a device clock, as it is to wait for being written."""
    try:
        return core.device.after(mark, record, ring)
    except Exception as error:
        _no_device(error)
        return record


def _no_device(error: BaseException) -> None:
    """The device clock failed: exposure becomes unknown, the host clock goes on."""
    own(error)
    core.device = None
    complain(IN_DEVICE, "device clock", error)
