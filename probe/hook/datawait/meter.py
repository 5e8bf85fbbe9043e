"""What building a batch costs: CPU, run queue, reads, opened files, bytes. One meter per building thread.

CPU is the thread's CPU clock. Field 1 of schedstat is not used for it: it moves only on a tick or a context switch
(a 1.5 ms zlib batch read 0.34 ms there). Field 2, the time spent runnable but not running, is exact at a switch.
Counters are deltas between ``begin`` and ``end``; one that cannot be read stays unknown.

Reading them costs several microseconds, between steps of a training ten times as much, so callers measure batches at
least a millisecond apart (``due``; fifty where batches are trivial), and what an IO holds, the dearest, is read for
batches ten milliseconds apart. Both pick by
time, not by batch, so the sample is fair as long as slow batches do not follow a rhythm.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections import UserDict
from typing import Any, Callable, List, Optional, Tuple

from . import descriptors
from .foreign import own, without_frames
from .layout import COST, IO, UNKNOWN32, UNKNOWN64
from .reads import Reads
from .ring import Ring

MILLISECOND = 1_000_000
TRIVIAL = MILLISECOND // 10  # a batch that takes less …
REST = 50 * MILLISECOND  # … has little to tell: none is measured for so long
BETWEEN_IO = 10 * MILLISECOND
NO_ROOM = RecursionError("no room to look at what is opened")  # made beforehand: there is none for a call either

getrusage = resource.getrusage
SELF = resource.RUSAGE_SELF
process_clock = time.process_time_ns
pread = os.pread

REQUESTS_ARE_SEEN = sys.version_info >= (3, 10)  # http.client raised no audit events before

# [files opened, HTTP requests] of this process since the audit hook was set; None = not counted
audited: Optional[List[int]] = None
reads: Optional[Reads] = None  # a sample of them, from then on


class Meter:
    """Reads the counters of the thread that made it; use it on that thread only."""

    __slots__ = (
        "cpu_clock", "schedstat", "io", "io_due", "due", "collate", "sizer", "open", "cpu", "process", "queue", "usage",
        "reads", "files", "requests", "own", "thread", "opened",
    )  # fmt: skip

    def __init__(self, cpu_clock: Callable[[], int] = time.thread_time_ns) -> None:
        self.cpu_clock = cpu_clock
        self.thread = threading.get_native_id()
        self.schedstat = _open("/proc/thread-self/schedstat")
        self.io = _open("/proc/self/io")
        self.opened = [(fd, _identity(fd)) for fd in (self.schedstat, self.io) if fd is not None]
        self.due = 0  # measure no batch that begins before this time
        self.io_due = 0
        self.collate = 0  # wall ns spent in collate_fn since begin()
        self.sizer = Sizer()
        self.open = False  # between begin() and end()
        self.own = 0  # bytes this meter itself read between its two looks at the I/O counters
        self.reads: Optional[Tuple[int, int, int]] = None
        self.usage: Optional[resource.struct_rusage] = None  # at begin(), where an IO is due

    def close(self) -> None:
        """A script that closed every file may have one of its own under the same number."""
        for fd, identity in self.opened:
            try:
                if _identity(fd) == identity:
                    os.close(fd)
            except OSError as error:
                own(error)

    def begin(self, now: int) -> None:
        self.collate = 0
        self.own = 0
        self.due = now + MILLISECOND
        self.open = True
        if now >= self.io_due:
            self.io_due = now + BETWEEN_IO
            self.reads = self.io_counters()
            self.usage = getrusage(SELF)
        else:
            self.reads = self.usage = None
        if audited is not None:
            self.files, self.requests = audited
        self.queue = self.run_queue()
        self.process = process_clock()
        self.cpu = self.cpu_clock()  # last: nearest to the work

    def end(self) -> Tuple[Any, ...]:
        """What it cost since begin(). A signal handler that fetches may begin anew before this is written."""
        cpu = self.cpu_clock() - self.cpu
        process = process_clock() - self.process
        queue = self.run_queue()
        io = None if self.usage is None else self._io(self.usage)
        self.open = False
        files = requests = UNKNOWN32
        if audited is not None:
            files = audited[0] - self.files
            if REQUESTS_ARE_SEEN:
                requests = audited[1] - self.requests
        waited = UNKNOWN64 if queue is None or self.queue is None else queue - self.queue
        return (cpu, process, waited), self.collate, (files, requests), io

    def _io(self, before: Any) -> Tuple[int, ...]:
        """What an IO holds of the time since begin()."""
        usage = getrusage(SELF)
        reads = None if self.reads is None else self.io_counters()
        rchar = read_bytes = calls = UNKNOWN64
        if reads is not None and self.reads is not None:
            rchar, read_bytes = reads[0] - self.reads[0], reads[1] - self.reads[1]
            calls = reads[2] - self.reads[2] - (1 if self.schedstat is None else 3)  # our own preads in between
        return rchar, read_bytes, calls, usage[14] - before[14], usage[15] - before[15]  # and context switches

    def write(self, ring: Ring, ref: int, cost: Tuple[Any, ...], batch: Any, collates: bool) -> int:
        """Puts COST, and IO if that was due, of what end() measured with what the ring has pending; returns how many
        records that are."""
        times, collate, counts, io = cost
        size, tensors = self.sizer.size(batch)
        pending = ring.pending
        pending.append((COST, 0, ref, *times, collate if collates else UNKNOWN64, size, *counts, tensors))
        if io is None:
            return 1
        pending.append((IO, 0, ref, *io))
        return 2

    def run_queue(self) -> Optional[int]:
        """Nanoseconds this thread was runnable but not running; None where the kernel keeps no account."""
        if self.schedstat is None:
            return None
        try:
            text = pread(self.schedstat, 64, 0)
            self.own += len(text)
            _, waited, slices = text.split()
            if slices == b"0":  # "0 0 0": not accounted (schedstats off, gVisor)
                return None
            return int(waited)
        except (OSError, ValueError) as error:
            own(error)
            self.schedstat = None  # the script closed files that are not its own, as daemons do
            return None

    def io_counters(self) -> Optional[Tuple[int, int, int]]:
        """rchar, read_bytes, syscr of the process. They miss recv, mmap and FUSE: a lower bound."""
        if self.io is None:
            return None
        try:
            text = pread(self.io, 256, 0)
            read, self.own = self.own, len(text)
            fields = text.split()  # rchar: wchar: syscr: syscw: read_bytes: … (proc(5))
            if fields[0] != b"rchar:":
                raise ValueError("not /proc/self/io any more")
            return int(fields[1]) - read, int(fields[9]), int(fields[5])
        except (OSError, ValueError, IndexError) as error:
            own(error)
            self.io = None
            return None


def _open(path: str) -> Optional[int]:
    try:
        with descriptors.kept():
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        own(error)
        return None


def _identity(fd: Optional[int]) -> Optional[Tuple[int, int]]:
    if fd is None:
        return None
    info = os.fstat(fd)
    return info.st_dev, info.st_ino


class Sizer:
    """Bytes and tensors of a batch; no code of the script's own classes is run for it. Looks at the first LEAF_LIMIT
    leaves; a batch with more is walked to its end only once in a while and unknown in between, so that a list of
    thousands of tensors costs next to nothing."""

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
        elif _is_tensor(kind):
            self.bytes += _tensor_bytes(item)
            self.tensors += 1
            self.seen = True
        elif _is_array(kind):
            self.bytes += sys.modules["numpy"].ndarray.nbytes.__get__(item)
            self.seen = True
        elif issubclass(kind, (tuple, list)):  # named tuples
            for part in tuple.__iter__(item) if issubclass(kind, tuple) else list.__iter__(item):
                self._walk(part, depth + 1)
        elif issubclass(kind, dict):  # OrderedDict
            for part in dict.values(item):
                self._walk(part, depth + 1)
        elif issubclass(kind, UserDict):  # transformers' BatchEncoding
            self._walk(object.__getattribute__(item, "__dict__").get("data"), depth + 1)


class _TooMany(Exception):
    pass


def _is_tensor(kind: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(kind, torch.Tensor)


def _tensor_bytes(tensor: Any) -> int:
    torch: Any = sys.modules["torch"]
    if type(tensor) is torch.Tensor:
        return int(tensor.numel() * tensor.element_size())
    # A subclass may have a say in every function called on it (__torch_function__), these two included.
    left_alone = getattr(torch._C, "DisableTorchFunctionSubclass", None) or torch._C.DisableTorchFunction  # PyTorch 1
    with left_alone():
        return int(torch.Tensor.numel(tensor) * torch.Tensor.element_size(tensor))


def _is_array(kind: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, numpy.ndarray)


def audit() -> None:
    """Counts opened files and HTTP requests from here on, and samples their names while batches are built. Worker
    processes only, and it can never be removed: every audited event (``id()`` is one, so ``copy.deepcopy`` feels it)
    then costs a Python call."""
    global audited, reads
    if audited is not None or os.environ.get("DATAWAIT_AUDIT") == "off":
        return
    counts = audited = [0, 0]
    sample = reads = Reads()

    def hook(event: str, args: Tuple[Any, ...]) -> None:
        if event == "open":
            counts[0] += 1
            if sample.taken is not None:
                try:
                    sample.opened(args[0], args[2])
                except RecursionError:  # the script is so deep that there is no room to go in there
                    sample.taken, sample.trouble = None, NO_ROOM
                except Exception as error:
                    sample.taken = None
                    own(error)
                    sample.trouble = without_frames(error)
        elif event == "http.client.send" and isinstance(args[1], bytes) and b" HTTP/1." in args[1][:4096]:
            counts[1] += 1  # a request's head; its body is sent apart, and may be anything that can be iterated
            if sample.taken is not None:
                try:
                    sample.asked(args[1])
                except RecursionError:
                    sample.taken, sample.trouble = None, NO_ROOM
                except Exception as error:
                    sample.taken = None
                    own(error)
                    sample.trouble = without_frames(error)

    sys.addaudithook(hook)
