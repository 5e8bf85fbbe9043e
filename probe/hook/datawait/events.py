"""The device clock around a fetch: how long the compute stream had nothing to run while the host waited.

An event goes into the stream before ``next()`` and one after it; the device time between them is *compute stream
idle*. Both are read at least LAG fetches later and only if they have happened, so nothing here waits for the device,
and CUDA is never initialised: the clock is attached at an optimizer step, to the device of the optimizer's parameters,
once CUDA is in use. Parameters on several devices: no clock, exposure stays unknown.

The compute stream is the one on which the last optimizer step or CUDA graph was launched. A fetch made while another
stream is current has no exposure: what that stream had to run says nothing of the training. While any thread captures
a CUDA graph nothing is recorded or queried, as one query from anywhere ends a capture in global mode (CUDA Runtime API,
cudaStreamBeginCapture). A query can wait for the lock of the context; a clock whose queries do is given up.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Tuple

from . import layout
from .layout import EXPOSED, UNKNOWN64
from .ring import NUMBERED, Ring
from .stacklevel import transparent
from .stream import IN_DEVICE, complain, core

LAG = 8
MOST_PENDING = 4096
SLOW_QUERY = 1_000_000  # ns: an answer about an event takes microseconds
MOST_SLOW = 4  # queries in a row; one may have lost its core

_tries = 0
_given_up = False
_captures = 0  # of CUDA graphs under way, in any thread


def attach(optimizer: Any) -> None:
    """Called after optimizer steps until there is a clock; looks at a few steps, then seldom."""
    global _tries
    _tries += 1
    if _given_up or (_tries > 8 and _tries & 255):
        return
    try:
        if os.environ.get("DATAWAIT_GPU") == "emulated":
            core.device = _emulated_clock()
        else:
            core.device = _cuda_clock(optimizer)
        if core.device is not None:
            _give_up()  # if it fails, once is enough
    except Exception as error:
        _give_up()
        complain(IN_DEVICE, "attaching the device clock", error)


def _give_up() -> None:
    global _given_up
    _given_up = True


def in_forked_child() -> None:
    global _tries, _given_up, _captures
    _tries, _given_up, _captures = 0, False, 0


os.register_at_fork(after_in_child=in_forked_child)


class DeviceClock:
    """Pairs of events in flight, oldest first; subclasses know how to record and read one."""

    def __init__(self, device: int, flags: int) -> None:
        self.device = device
        self.flags = flags
        self.pending: Deque[List[Any]] = deque()  # [number of the FETCH, None = not written yet; loader; three events]
        self.last: Any = None  # second event of the previous fetch

    def record(self) -> Any:
        raise NotImplementedError

    def happened(self, event: Any) -> bool:
        raise NotImplementedError

    def between(self, first: Any, second: Any) -> int:
        """Nanoseconds of device time."""
        raise NotImplementedError

    def release(self, event: Any) -> None:
        """The event will not be read again."""

    def launched(self) -> None:
        """The training has just launched work on the current stream."""

    def before(self) -> Any:
        event = self.record()
        if event is None:
            self.last = None
        return event

    def broken(self) -> None:
        """The fetch begun with before() delivered nothing."""
        self.last = None

    def after(self, before: Any, fetch: Tuple[Any, ...], ring: Ring) -> Tuple[Any, ...]:
        """Returns the record of the fetch as it is to be put off: so that its number is told, if it has an exposure."""
        event = self.record()
        if event is None:
            self.last = None
            return fetch
        pair = [None, fetch[2], self.last, before, event]
        self.pending.append(pair)
        self.last = event
        if len(self.pending) > LAG:
            self.read(ring)
        return NUMBERED, pair, fetch

    def read(self, ring: Ring, young: int = LAG, most: int = 2) -> None:
        """Puts off EXPOSED for what is old enough and has happened; at most two, so that no fetch pays for many."""
        for _ in range(most):
            if len(self.pending) <= young or not self.happened(self.pending[0][4]):
                break
            if self.pending[0][0] is None:
                ring.flush()
            fetch, loader, last, before, event = self.pending[0]
            if fetch is None:  # in a signal handler that came while records are written
                break
            self.pending.popleft()
            idle = self.between(before, event)
            span = UNKNOWN64 if last is None else self.between(last, before)
            ring.pending.append((EXPOSED, self.flags, self.device, core.clock(), idle, span, fetch, loader))
            if last is not None:
                self.release(last)
            self.release(before)
        if len(self.pending) > MOST_PENDING:  # a device that far behind is stuck; do not grow with it
            self.pending.clear()
            self.last = None

    def read_all(self, ring: Ring) -> None:
        """After a synchronisation everything has happened: the last fetches before it need not stay unread."""
        self.read(ring, young=0, most=MOST_PENDING)
        ring.flush()


class EmulatedClock(DeviceClock):
    def __init__(self, gpu: Any) -> None:
        super().__init__(gpu.index, layout.EMULATED)
        self.gpu = gpu

    def record(self) -> Any:
        return self.gpu.record_event()

    def happened(self, event: Any) -> bool:
        return bool(event.query())

    def between(self, first: Any, second: Any) -> int:
        return int(second.ns - first.ns)


class CudaClock(DeviceClock):
    def __init__(self, cuda: Any, device: int) -> None:
        super().__init__(device, 0)
        self.cuda = cuda
        self.pool: List[Any] = []
        self.slow = 0  # queries in a row that had to wait
        self.stream = cuda.current_stream(device)  # the compute stream

    def launched(self) -> None:
        self.stream = self.cuda.current_stream(self.device)

    def record(self) -> Any:
        cuda = self.cuda
        if self._capturing():
            return None
        stream = cuda.current_stream(self.device)
        if stream != self.stream:
            return None
        event = self.pool.pop() if self.pool else cuda.Event(enable_timing=True)
        event.record(stream)
        return event

    def _capturing(self) -> bool:
        return _captures > 0 or bool(self.cuda.is_current_stream_capturing())

    def happened(self, event: Any) -> bool:
        if self._capturing():
            return False
        asked = core.clock()
        answer = bool(event.query())
        took = core.clock() - asked
        self.slow = self.slow + 1 if took > SLOW_QUERY else 0
        if self.slow >= MOST_SLOW:
            raise RuntimeError("asking for an event takes %.1f ms: exposure is not measured any more" % (took / 1e6))
        return answer

    def between(self, first: Any, second: Any) -> int:
        return max(0, round(first.elapsed_time(second) * 1e6))

    def release(self, event: Any) -> None:
        self.pool.append(event)


def _emulated_clock() -> Optional[DeviceClock]:
    module = sys.modules.get("datawait.emulated")
    gpu = module.current() if module is not None else None
    if gpu is None:
        return None
    _announce(gpu.uuid, gpu.index, "emulated A100", True)
    return EmulatedClock(gpu)


def _cuda_clock(optimizer: Any) -> Optional[DeviceClock]:
    torch = sys.modules["torch"]
    cuda = torch.cuda
    if not cuda.is_initialized() or cuda._is_in_bad_fork():
        return None
    devices = set()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            devices.add(parameter.device)
    if len(devices) != 1:
        _give_up()
        return None
    device = devices.pop()
    if device.type != "cuda":
        return None
    index = device.index if device.index is not None else cuda.current_device()
    ring = core.ring
    if ring is not None:
        now = core.clock()
        ring.mark(layout.CUDA_SEEN, now, now, index)
    properties = cuda.get_device_properties(index)
    uuid = getattr(properties, "uuid", None)
    _announce("GPU-%s" % uuid if uuid is not None else None, index, str(properties.name), False)
    _watch_graphs(getattr(cuda, "CUDAGraph", None))
    return CudaClock(cuda, index)


def _watch_graphs(graph: Any) -> None:
    """Learns of captures and replays, which are methods of one class from PyTorch 1.10 on."""
    for name, around in (("capture_begin", _beginning), ("capture_end", _ending), ("replay", _replaying)):
        original = getattr(graph, name, None)
        if original is not None and not getattr(original, MARK, False):
            observed = functools.wraps(original)(around(original))
            setattr(observed, MARK, True)
            setattr(graph, name, observed)


MARK = "_datawait_graph"


def _beginning(original: Callable[..., Any]) -> Callable[..., Any]:
    @transparent
    def capture_begin(*args: Any, **kwargs: Any) -> Any:
        global _captures
        _captures += 1
        try:
            return original(*args, **kwargs)
        except BaseException:
            _captures -= 1
            raise

    return capture_begin


def _ending(original: Callable[..., Any]) -> Callable[..., Any]:
    @transparent
    def capture_end(*args: Any, **kwargs: Any) -> Any:
        global _captures
        try:
            return original(*args, **kwargs)
        finally:
            _captures = max(0, _captures - 1)

    return capture_end


def _replaying(original: Callable[..., Any]) -> Callable[..., Any]:
    @transparent
    def replay(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        launched()
        return result

    return replay


def launched() -> None:
    """The training has just launched a step on the current stream. Never raises."""
    clock = core.device
    if clock is None or _captures:
        return
    try:
        clock.launched()
    except Exception as error:
        core.device = None
        complain(IN_DEVICE, "looking for the compute stream", error)


def _announce(uuid: Optional[str], index: int, name: str, emulated: bool) -> None:
    """Which GPU this process trains on; at its declaration that was not known yet."""
    if core.ring is not None:
        core.ring.note(
            {
                "note": "device",
                "gpu_uuid": uuid,
                "index": index,
                "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
                "name": name,
                "emulated": emulated,
            }
        )
