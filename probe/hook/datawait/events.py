"""The device clock around a fetch: how long the compute stream had nothing to run while the host waited.

An event goes into the stream before ``next()`` and one after it; the device time between them is *compute stream
idle*. Both are read at least LAG fetches later and only if they have happened, so nothing here waits for the device,
and CUDA is never initialised: the clock is attached at an optimizer step, to the device of the optimizer's parameters,
once CUDA is in use. Parameters on several devices: no clock, exposure stays unknown. While a CUDA graph is being
captured nothing is recorded or queried.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from typing import Any, Deque, List, Optional, Tuple

from . import layout
from .layout import UNKNOWN64
from .ring import Ring
from .stream import IN_DEVICE, complain, core

LAG = 8
MOST_PENDING = 4096

_tries = 0
_given_up = False


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
    except Exception as error:
        _give_up()
        complain(IN_DEVICE, "attaching the device clock", error)


def _give_up() -> None:
    global _given_up
    _given_up = True


def in_forked_child() -> None:
    global _tries, _given_up
    _tries, _given_up = 0, False


os.register_at_fork(after_in_child=in_forked_child)


class DeviceClock:
    """Pairs of events in flight, oldest first; subclasses know how to record and read one."""

    def __init__(self, device: int, flags: int) -> None:
        self.device = device
        self.flags = flags
        self.pending: Deque[Tuple[int, int, Any, Any, Any]] = deque()
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

    def before(self) -> Any:
        event = self.record()
        if event is None:
            self.last = None
        return event

    def broken(self) -> None:
        """The fetch begun with before() delivered nothing."""
        self.last = None

    def after(self, before: Any, fetch: int, loader: int, ring: Ring) -> None:
        event = self.record()
        if event is None:
            self.last = None
            return
        self.pending.append((fetch & 0xFFFFFFFF, loader, self.last, before, event))
        self.last = event
        if len(self.pending) > LAG:
            self.read(ring)

    def read(self, ring: Ring, young: int = LAG, most: int = 2) -> None:
        """Writes EXPOSED for what is old enough and has happened; at most two, so that no fetch pays for many."""
        for _ in range(most):
            if len(self.pending) <= young or not self.happened(self.pending[0][4]):
                break
            fetch, loader, last, before, event = self.pending.popleft()
            idle = self.between(before, event)
            span = UNKNOWN64 if last is None else self.between(last, before)
            ring.write(
                layout.pack_exposed, layout.EXPOSED, self.flags, self.device, core.clock(), idle, span, fetch, loader
            )
            if last is not None:
                self.release(last)
            self.release(before)
        if len(self.pending) > MOST_PENDING:  # a device that far behind is stuck; do not grow with it
            self.pending.clear()
            self.last = None

    def read_all(self, ring: Ring) -> None:
        """After a synchronisation everything has happened: the last fetches before it need not stay unread."""
        self.read(ring, young=0, most=MOST_PENDING)


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

    def record(self) -> Any:
        cuda = self.cuda
        if cuda.is_current_stream_capturing():
            return None
        event = self.pool.pop() if self.pool else cuda.Event(enable_timing=True)
        event.record(cuda.current_stream(self.device))
        return event

    def happened(self, event: Any) -> bool:
        return not self.cuda.is_current_stream_capturing() and bool(event.query())

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
    return CudaClock(cuda, index)


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
