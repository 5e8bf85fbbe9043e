"""An emulated A100-like device, for examples and tests without a GPU. Validates arithmetic and plumbing only.

The device is one stream, as CUDA's default stream is: kernels and copies run in the order they were enqueued, and
what is enqueued on an idle device starts at once. That makes it analytic, end = max(now, previous end) + duration, with
no thread to drift while Python holds the GIL (a thread's 3.0 ms launch took 8.2 ms). A blocking copy is enqueued
like any other and the host then waits for its end, so it waits for the kernels before it too.

Everything enqueued is appended to the busy log (SPEC §7), where the agent's emulated source reads SM activity.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import sys
import time
from collections import deque
from typing import Callable, ClassVar, Deque, Dict, Optional, Tuple

KERNEL, COPY = 1, 2
NS = 1_000_000_000

_header = struct.Struct("<8sIIQ40s")
_entry = struct.Struct("<QQffII")
_current: "Optional[Gpu]" = None


def current() -> "Optional[Gpu]":
    """The device made last in this process, None where there is none."""
    return _current


class Gpu:
    """One device. depth launches may be queued before ``launch`` blocks, as with CUDA's launch queue.

    ``resident_data``: while True, ``copy`` costs nothing and is not enqueued: the batch is on the device already.
    """

    def __init__(
        self,
        index: int = 0,
        depth: int = 64,
        *,
        clock: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[float], None] = time.sleep,
        log_folder: Optional[str] = None,
    ) -> None:
        global _current
        if depth < 1:
            raise ValueError("depth must be at least 1")
        self.index = index
        self.depth = depth
        self.resident_data = False
        self.uuid = "GPU-emulated-%s-%d" % (_job(), index)
        self._clock = clock
        self._sleep = sleep
        self._end = 0  # when the stream runs dry, ns
        self._queued: Deque[int] = deque()  # ends of the launches that may still be queued
        self._total = 0  # ns enqueued so far
        self._number = 0
        self._pid = os.getpid()
        self._log = _Log.open(log_folder, index, self.uuid, clock())
        if self._log is not None:
            self._number = self._log.entries
            self._end = self._log.end
        _current = self

    def launch(self, seconds: float, sm: float = 1.0, tensor: float = 0.0) -> None:
        """Enqueues a kernel that keeps the SMs active at ratio sm; returns at once unless the queue is full."""
        now = self._clock()
        queued = self._queued
        while queued and queued[0] <= now:
            queued.popleft()
        while len(queued) >= self.depth:
            now = self._wait_until(queued[0])
            while queued and queued[0] <= now:
                queued.popleft()
        queued.append(self._enqueue(now, seconds, sm, tensor, KERNEL))

    def copy(self, seconds: float, non_blocking: bool = False) -> None:
        """Enqueues a host-to-device copy; blocking, the host waits for its end."""
        if self.resident_data:
            return
        end = self._enqueue(self._clock(), seconds, 0.0, 0.0, COPY)
        if not non_blocking:
            self._wait_until(end)

    def synchronize(self) -> None:
        """Waits until everything enqueued has ended."""
        self._wait_until(self._end)

    def record_event(self) -> "Event":
        """An event that happens when the device reaches this point of its stream."""
        return Event(self, max(self._clock(), self._end))

    @property
    def busy_seconds(self) -> float:
        """Seconds of kernels and copies the device has finished by now."""
        return (self._total - max(0, self._end - self._clock())) / NS

    def _enqueue(self, now: int, seconds: float, sm: float, tensor: float, kind: int) -> int:
        if seconds < 0:
            raise ValueError("a duration cannot be negative")
        start = max(now, self._end)
        self._end = end = start + round(seconds * NS)
        self._total += end - start
        self._number += 1
        # A forked child (a DataLoader worker) has a copy of the device; only the process that made it writes its log.
        if self._log is not None and self._pid == os.getpid():
            self._log.append(_entry.pack(start, end, sm, tensor, kind, self._number), end)
        return end

    def _wait_until(self, t: int) -> int:
        now = self._clock()
        while now < t:
            self._sleep((t - now) / NS)
            now = self._clock()
        return now


class Event:
    """A moment on the device's clock; it may still lie in the future."""

    __slots__ = ("_gpu", "ns")

    def __init__(self, gpu: Gpu, ns: int) -> None:
        self._gpu = gpu
        self.ns = ns

    def elapsed(self, later: "Event") -> float:
        """Seconds from this event to a later one."""
        return (later.ns - self.ns) / NS

    def query(self) -> bool:
        return self._gpu._clock() >= self.ns

    def synchronize(self) -> None:
        self._gpu._wait_until(self.ns)


class _Log:
    """The busy log, one whole entry per append. A process that makes the same device again goes on in its log.

    A log that cannot go on (a full disk, a script that closed every file) gives up its name: a reader sees that and
    calls what follows unknown, where a log that merely stopped would say that the device is idle. The device goes on.
    """

    opened: ClassVar[Dict[str, "_Log"]] = {}

    def __init__(self, path: str, fd: int, entries: int) -> None:
        self.path = path
        self.fd = fd
        self.entries = entries
        self.end = 0  # of the last entry this process wrote, ns
        self._file = _identity(fd)
        self._given_up = False

    @staticmethod
    def open(folder: Optional[str], index: int, uuid: str, now: int) -> "Optional[_Log]":
        folder = folder or os.environ.get("DATAWAIT_BUSY_DIR") or os.environ.get("DATAWAIT_SPOOL")
        if not folder:
            return None
        path = os.path.join(os.path.realpath(folder), "gpu-%d.busy" % index)
        if path in _Log.opened:
            return _Log.opened[path]
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            if _is_worker():  # spawn runs the script's top level once more
                return None
            raise RuntimeError("emulated GPU %d is in use by another process (%s)" % (index, path)) from None
        size = os.fstat(fd).st_size
        whole = 0
        if size < _header_bytes():
            os.truncate(fd, 0)
        else:  # a restarted rank goes on where its predecessor died
            whole = (size - _header_bytes()) // _entry.size
            os.truncate(fd, _header_bytes() + whole * _entry.size)
        log = _Log.opened[path] = _Log(path, fd, whole)
        if size < _header_bytes():
            log._write(_header.pack(b"DWBUSY1\n", 1, index, now, uuid.encode()))
        return log

    def append(self, entry: bytes, end: int) -> None:
        self._write(entry)
        self.entries += 1
        self.end = end

    def _write(self, whole: bytes) -> None:
        if self._given_up:
            return
        try:
            if self._own() and os.write(self.fd, whole) == len(whole):
                return
        except OSError:
            pass
        self._give_up()

    def _give_up(self) -> None:
        self._given_up = True
        try:
            info = os.lstat(self.path)
            if (info.st_dev, info.st_ino) == self._file:
                os.unlink(self.path)
        except OSError:
            pass

    def _own(self) -> bool:
        """Whether the descriptor is still the log's: a script that closes all may have a file of its own there."""
        return _identity(self.fd) == self._file

    def let_go(self) -> None:
        try:
            if self._own():
                os.close(self.fd)
        except OSError:
            pass


def _in_forked_child() -> None:
    """Lets go of the logs, and so of their locks: a worker that outlives its rank must not keep the next one out."""
    for log in _Log.opened.values():
        log.let_go()
    _Log.opened = {}


os.register_at_fork(after_in_child=_in_forked_child)


def _identity(fd: int) -> Tuple[int, int]:
    info = os.fstat(fd)
    return info.st_dev, info.st_ino


def _header_bytes() -> int:
    return _header.size


def _is_worker() -> bool:
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _job() -> str:
    """Eight digits that are the same in all ranks of a job and differ between jobs."""
    for name in ("DATAWAIT_BUSY_DIR", "DATAWAIT_SPOOL", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"):
        if os.environ.get(name):
            return hashlib.sha256(os.environ[name].encode()).hexdigest()[:8]
    return "00000000"
