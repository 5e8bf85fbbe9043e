"""The legs a plan may ask for, and the one that needs a device."""

from __future__ import annotations

import sys
from typing import Any, Dict, Optional

from . import control
from .block import Block, BusyBlock, CachedBlock, Kit, LiveBlock
from .pulls import UNAVAILABLE, Source, Void
from .replay import ReplayPool
from .trials import TrialBlock


class DeviceBlock(CachedBlock):
    """Batches that are on the device already: what is left is the step without the copy."""

    def __init__(self, planned: control.PlannedBlock, step: int, kit: Kit) -> None:
        super().__init__(planned, step, kit)
        self._pools: Dict[int, ReplayPool] = {}
        self._emulated: Any = None

    def admit(self, source: Source) -> None:
        super().admit(source)
        try:
            pool = self.kit.pool(source).on_device(source.to_device, self._device_room)
        except Exception as error:
            raise Void(UNAVAILABLE, "%s: %s" % (type(error).__name__, error)) from error
        if not pool:
            raise Void(UNAVAILABLE, "a batch does not fit beside the model")
        self._pools[source.loader] = pool
        emulated = sys.modules.get(__package__ + ".emulated")
        self._emulated = emulated.current() if emulated is not None else None
        if self._emulated is not None:
            self._emulated.resident_data = True

    def _device_room(self, leaves: Any) -> int:
        """A quarter of what is free there: running out of device memory would end the script itself."""
        for leaf in leaves:
            device = getattr(leaf.master, "device", None)
            if getattr(device, "type", None) == "cuda":
                return int(sys.modules["torch"].cuda.mem_get_info(device)[0]) // 4
        return self.kit.cap

    def pool(self, source: Source) -> ReplayPool:
        return self._pools[source.loader]

    def close(self) -> None:
        if self._emulated is not None:
            self._emulated.resident_data = False
        self._pools = {}


LEGS: Dict[int, Any] = {
    control.LIVE: LiveBlock,
    control.HOST_CACHED: CachedBlock,
    control.HOST_CACHED_BUSY: BusyBlock,
    control.DEVICE_CACHED: DeviceBlock,
    control.TRIAL: TrialBlock,
}


def make(planned: control.PlannedBlock, step: int, kit: Kit) -> Block:
    leg: Optional[Any] = LEGS.get(planned.leg)
    if leg is None:
        raise Void(UNAVAILABLE, "this hook has no such leg")
    made: Block = leg(planned, step, kit)
    return made
