"""``with building(index):`` — one batch built by code that is not PyTorch's, in any process or thread."""

from __future__ import annotations

import os
import threading
from typing import Any, Dict, Optional

from . import layout, meter
from .layout import UNKNOWN16, UNKNOWN32, UNKNOWN64
from .meter import Meter
from .reads import put
from .stream import IN_WORKER, builds, core, failed, ring_for

get_ident = threading.get_ident
_here = threading.local()  # .meter: counters of this thread; .ring: the ring they belong to; .open: a batch is open


def inside() -> bool:
    """Whether this thread is building a batch: a loader used meanwhile is not what a training waits for."""
    return getattr(_here, "open", False)


_meters: Dict[int, Meter] = {}  # by thread


def _meter() -> Meter:
    """Counters of this thread. Those of threads that have ended are closed: threads come and go, files would not."""
    made = Meter(core.cpu_clock)
    alive = {int(thread) for thread in os.listdir("/proc/self/task")} - {made.thread}  # it may have been another's
    for thread in list(_meters):
        ended = None if thread in alive else _meters.pop(thread, None)
        if ended is not None:
            ended.close()
    _meters[made.thread] = made
    return made


class Building:
    """One batch; ``result(batch)`` inside the block lets its bytes be counted."""

    __slots__ = ("index", "samples", "ref", "begin", "batch", "meter", "ring")

    def __init__(self, index: int, samples: Optional[int], loader: Optional[int]) -> None:
        self.index = index
        self.samples = UNKNOWN32 if samples is None else samples
        self.ref = UNKNOWN16 if loader is None else loader
        self.batch: Any = None
        self.meter: Optional[Meter] = None
        self.ring: Any = None

    def result(self, batch: Any) -> Any:
        self.batch = batch
        return batch

    def __enter__(self) -> "Building":
        try:
            if core.folder is None:
                from .arming import install

                install(explicit=False)
            if not core.off and not getattr(_here, "open", False):
                self.start()
        except Exception as error:
            failed(IN_WORKER, "building", error)
        return self

    def start(self) -> None:
        builds()
        ring = ring_for("worker")
        if ring is None:
            return
        track = core.inside
        if track is not None and get_ident() == core.training:
            if track.builds:
                return  # the FETCH around it says all of this already
            self.ref = track.loader.number
        if getattr(_here, "ring", None) is not ring:
            _here.meter = _meter()
            _here.ring = ring  # last: a signal handler that raises before leaves it to be done again
            if core.role == "worker" and not core.guessed:
                meter.audit()
        _here.open = True
        self.ring = ring
        self.begin = core.clock()
        counters: Meter = _here.meter
        counters.open = False
        if self.begin >= counters.due:
            counters.begin(self.begin)
            self.begin = core.clock()
        self.meter = counters
        if meter.reads is not None:
            meter.reads.begin()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        counters = self.meter
        if counters is None:
            return
        self.meter = None
        _here.open = False
        try:
            end = core.clock()
            taken = None if meter.reads is None else meter.reads.end()
            after = counters.end() if counters.open else None
            flags = 0 if kind is None else layout.RAISED
            fields = (UNKNOWN64, self.begin, end, UNKNOWN64, self.index & UNKNOWN32, 0, self.samples, UNKNOWN32)
            ring = self.ring
            ring.pending.append((layout.BATCH, flags, self.ref, *fields))
            if after is not None:
                counters.write(ring, self.ref, after, self.batch, False)
            if taken:
                put(ring, self.ref, taken)
            ring.built(self.ref)
            if end >= ring.flush_at or len(ring.pending) > 60:
                ring.flush(end)
        except Exception as inner:
            failed(IN_WORKER, "built", inner)
        self.batch = self.ring = None
