"""Running sums of one loader, kept in the ring's header: they survive an overrun of the records."""

from __future__ import annotations

from typing import Optional

from . import layout
from .layout import END, ERROR, NO_GRAD

UNDELIVERED = END | ERROR


def totals_slot(loader: int) -> int:
    """Where a loader's totals begin in the header seen as u64; numbers from 31 on share the last slot."""
    return (layout.TOTALS_AT + min(loader, layout.TOTALS_SLOTS - 1) * layout.TOTALS_BYTES) // 8


class Totals:
    """Sums of what the training waited for, of one loader or of all beyond the table as if they were one."""

    __slots__ = (
        "loader", "at", "builds", "built", "length", "shift", "fetches", "wait", "between", "no_grad", "last_end",
        "first_begin",
    )  # fmt: skip

    def __init__(self, loader: int, builds: bool, length: Optional[int]) -> None:
        self.loader = loader  # the lowest that it counts
        self.at = totals_slot(loader)
        self.builds = builds  # its fetches build the batches themselves
        self.built = 0  # else those that ``building()`` saw
        self.length = length  # batches of its current epoch
        self.shift = 0  # of them the cached-data test replaced, less those it threw away
        self.fetches = self.wait = self.between = self.no_grad = self.last_end = self.first_begin = 0

    def begin_epoch(self, length: Optional[int]) -> None:
        self.length = length
        self.shift = 0

    def add_run(self, fetches: int, begin: int, wait: int, end: int) -> None:
        """Delivered training fetches, one after the other."""
        self._gap(begin)
        self.between += end - begin - wait
        self.last_end = end
        self.wait += wait
        self.fetches += fetches

    def add(self, flags: int, enter: int, leave: int) -> int:
        """One fetch; returns how many batches it delivered."""
        self._gap(enter)
        self.last_end = leave
        self.wait += leave - enter
        if flags & UNDELIVERED:
            return 0
        self.fetches += 1
        if flags & NO_GRAD:
            self.no_grad += 1
        return 1

    def _gap(self, begin: int) -> None:
        """What training did between the last fetch and this one."""
        if not self.last_end:
            self.first_begin = begin
        elif begin > self.last_end:  # not where a signal handler fetched before this fetch could begin
            self.between += begin - self.last_end

    def store(self, longs: "memoryview[int]") -> None:
        at = self.at
        longs[at] = self.fetches
        longs[at + 1] = self.wait
        longs[at + 2] = self.between
        longs[at + 3] = self.no_grad
        longs[at + 4] = self.last_end
        longs[at + 5] = self.fetches if self.builds else self.built
        longs[at + 6] = self.first_begin
