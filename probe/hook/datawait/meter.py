"""What building a batch costs: CPU, run queue, reads, opened files, bytes. One meter per building thread.

CPU is the thread's CPU clock. Field 1 of schedstat is not used for it: it moves only on a tick or a context switch
(a 1.5 ms zlib batch read 0.34 ms there). Field 2, the time spent runnable but not running, is exact at a switch.
Counters are deltas between ``begin`` and ``end``; one that cannot be read stays unknown.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from typing import Any, Callable, List, Optional, Tuple

from .layout import COST, IO, UNKNOWN32, UNKNOWN64, pack_cost, pack_io
from .ring import Ring

RUSAGE_THREAD = getattr(resource, "RUSAGE_THREAD", None)

# [files opened, HTTP requests] of this process since the audit hook was set; None = not counted
audited: Optional[List[int]] = None


class Meter:
    """Reads the counters of the thread that made it; use it on that thread only."""

    __slots__ = ("clock", "cpu_clock", "schedstat", "io", "before", "collate", "due", "sizer", "own")

    def __init__(self, cpu_clock: Callable[[], int] = time.thread_time_ns) -> None:
        self.cpu_clock = cpu_clock
        self.schedstat = _open("/proc/thread-self/schedstat")
        self.io = _open("/proc/self/io")
        self.before: Optional[Tuple[Any, ...]] = None
        self.own = 0  # bytes this meter itself read between its two looks at the I/O counters
        self.collate = 0  # wall ns spent in collate_fn since begin()
        self.due = 0  # begin no measured batch before this time
        self.sizer = Sizer()

    def begin(self) -> None:
        self.collate = 0
        self.own = 0
        files = audited
        self.before = (
            self.io_counters(),
            files and (files[0], files[1]),
            self.switches(),
            self.run_queue(),
            time.process_time_ns(),
            self.cpu_clock(),  # last: nearest to the work
        )

    def end(self) -> Tuple[Any, ...]:
        cpu = self.cpu_clock()
        return cpu, time.process_time_ns(), self.run_queue(), self.switches(), self.io_counters()

    def write(self, ring: Ring, ref: int, after: Tuple[Any, ...], batch: Any, collate: bool) -> None:
        """Writes COST, and IO where it is readable, for the batch between the last begin() and after."""
        before = self.before
        if before is None:
            return
        self.before = None
        io0, files0, switches0, queue0, process0, cpu0 = before
        cpu1, process1, queue1, switches1, io1 = after
        files = requests = UNKNOWN32
        if files0 and audited is not None:
            files, requests = audited[0] - files0[0], audited[1] - files0[1]
        size, tensors = self.sizer.size(batch)
        ring.write(
            pack_cost, COST, 0, ref, cpu1 - cpu0, process1 - process0,
            UNKNOWN64 if queue0 is None or queue1 is None else queue1 - queue0,
            self.collate if collate else UNKNOWN64, size, files, requests, tensors,
        )  # fmt: skip
        if io0 is not None and io1 is not None:
            voluntary = involuntary = UNKNOWN64
            if switches0 is not None and switches1 is not None:
                voluntary, involuntary = switches1[0] - switches0[0], switches1[1] - switches0[1]
            calls = io1[2] - io0[2] - (1 if self.schedstat is None else 3)  # our own preads in between
            ring.write(pack_io, IO, 0, ref, io1[0] - io0[0], io1[1] - io0[1], calls, voluntary, involuntary)

    def run_queue(self) -> Optional[int]:
        """Nanoseconds this thread was runnable but not running; None where the kernel keeps no account."""
        if self.schedstat is None:
            return None
        text = os.pread(self.schedstat, 64, 0)
        self.own += len(text)
        fields = text.split()
        if len(fields) < 3 or fields[2] == b"0":  # "0 0 0": not accounted (schedstats off, gVisor)
            return None
        return int(fields[1])

    def io_counters(self) -> Optional[Tuple[int, int, int]]:
        """rchar, read_bytes, syscr of the process. They miss recv, mmap and FUSE: a lower bound."""
        if self.io is None:
            return None
        text = os.pread(self.io, 256, 0)
        own, self.own = self.own, len(text)
        fields = text.split()  # rchar: wchar: syscr: syscw: read_bytes: … (proc(5))
        return int(fields[1]) - own, int(fields[9]), int(fields[5])

    def switches(self) -> Optional[Tuple[int, int]]:
        """Voluntary and involuntary context switches of this thread."""
        if RUSAGE_THREAD is None:
            return None
        usage = resource.getrusage(RUSAGE_THREAD)
        return usage.ru_nvcsw, usage.ru_nivcsw


def _open(path: str) -> Optional[int]:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


class Sizer:
    """Bytes and tensors of a batch. Looks at the first LEAF_LIMIT leaves; a batch with more is walked to its end
    only once in a while and unknown in between, so that a list of thousands of tensors costs next to nothing."""

    LEAF_LIMIT = 32
    FULL_LIMIT = 20000
    FULL_EVERY = 64

    __slots__ = ("skip", "bytes", "tensors", "left", "seen")

    def __init__(self) -> None:
        self.skip = 0

    def size(self, batch: Any) -> Tuple[int, int]:
        if self.skip > 0:
            self.skip -= 1
            return UNKNOWN64, UNKNOWN32
        self.bytes = self.tensors = 0
        self.seen = False
        self.left = self.FULL_LIMIT
        try:
            self._walk(batch, 0)
        except _TooMany:
            self.skip = self.FULL_EVERY
            return UNKNOWN64, UNKNOWN32
        if self.left < self.FULL_LIMIT - self.LEAF_LIMIT:
            self.skip = self.FULL_EVERY
        if not self.seen:
            return UNKNOWN64, UNKNOWN32  # nothing in it that we know how to measure
        return self.bytes, self.tensors

    def _walk(self, item: Any, depth: int) -> None:
        self.left -= 1
        if self.left < 0 or depth > 16:
            raise _TooMany
        kind = type(item)
        if kind is tuple or kind is list:
            for part in item:
                self._walk(part, depth + 1)
        elif kind is dict:
            for part in item.values():
                self._walk(part, depth + 1)
        elif kind is int or kind is float or kind is bool or item is None:
            pass
        elif kind is bytes or kind is bytearray or kind is str:
            self.bytes += len(item)
            self.seen = True
        elif _is_tensor(item):
            self.bytes += item.numel() * item.element_size()
            self.tensors += 1
            self.seen = True
        elif _is_array(item):
            self.bytes += item.nbytes
            self.seen = True
        elif isinstance(item, (tuple, list)):  # named tuples
            for part in tuple.__iter__(item) if isinstance(item, tuple) else list.__iter__(item):
                self._walk(part, depth + 1)
        elif isinstance(item, dict):  # BatchEncoding and OrderedDict; dict's own iterator runs no user code
            for part in dict.values(item):
                self._walk(part, depth + 1)
        elif isinstance(getattr(item, "data", None), dict):  # UserDict (transformers' BatchEncoding)
            for part in item.data.values():
                self._walk(part, depth + 1)


class _TooMany(Exception):
    pass


def _is_tensor(item: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(item, torch.Tensor)


def _is_array(item: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(item, numpy.ndarray)


def audit() -> None:
    """Counts opened files and HTTP requests from here on. Worker processes only, and it can never be removed:
    every audited event (``id()`` is one, so ``copy.deepcopy`` feels it) then costs a Python call."""
    global audited
    if audited is not None or os.environ.get("DATAWAIT_AUDIT") == "off":
        return
    counts = audited = [0, 0]

    def hook(event: str, args: Tuple[Any, ...]) -> None:
        if event == "open":
            counts[0] += 1
        elif event == "http.client.send" and b" HTTP/1." in bytes(args[1][:4096]):
            counts[1] += 1  # a request's head; its body is sent apart

    sys.addaudithook(hook)
