"""What the cached-data test writes of its blocks: one BLOCK each, void ones with their reason (SPEC §2, kind 5)."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from . import control, layout
from .layout import UNKNOWN32
from .pulls import UNAVAILABLE, Void

VOID, DEVICE_TIMED = 1, 2  # flags


class Counted(NamedTuple):
    """The counted part of a block."""

    begin: int
    end: int
    first: int
    steps: int
    fetches: int
    wait: int
    device_timed: bool


class BlockRecords:
    """``done`` is the highest block finished, void or not; the agent reads it in the ring's header."""

    def __init__(self, ring: Any, clock: Callable[[], int]) -> None:
        self.done = 0
        self._ring = ring
        self._clock = clock

    def counted(self, planned: control.PlannedBlock, counted: Counted, ready: int) -> None:
        self._write(planned, DEVICE_TIMED if counted.device_timed else 0, counted, 0, ready)

    def void(
        self, planned: control.PlannedBlock, void: Void, step: int, began: int = 0, ready: int = UNKNOWN32
    ) -> None:
        """A block that nobody may use. One that did not even begin ends when it begins."""
        if void.reason == UNAVAILABLE:
            leg = control.LEGS[planned.leg] if planned.leg < len(control.LEGS) else str(planned.leg)
            self._ring.note({"note": "leg-skipped", "leg": leg, "reason": (void.why or "exception")[:400]})
        now = self._clock()
        self._write(planned, VOID, Counted(began or now, now, step, 0, 0, 0, False), void.reason, ready)

    def _write(self, planned: control.PlannedBlock, flags: int, counted: Counted, reason: int, ready: int) -> None:
        self.done = max(self.done, planned.number)
        self._ring.write(
            layout.pack_block, layout.BLOCK, flags, planned.leg & 0xFFFF, counted.begin, counted.end, planned.number,
            counted.first & UNKNOWN32, counted.steps, counted.fetches, counted.wait, reason, ready,
        )  # fmt: skip
        self._ring.longs[layout.Q_BLOCKS] = self.done
