"""The ring one process writes its records into (SPEC §4).

The whole file is allocated before it is mapped: writing to a hole of a sparse map on a full tmpfs is SIGBUS, which
nothing in Python can catch. A record is one 64-byte slice assignment, then the head moves; a reader sees either.
Nobody but the process that made a ring writes to it.
"""

from __future__ import annotations

import json
import mmap
import os
import threading
import time
from typing import Any, Callable, Dict, Mapping

from . import layout, place

MINUTE = 60_000_000_000


class Ring:
    """An open ring. ``write`` is the one way in; the header's fields are set through ``longs`` and ``ints``."""

    __slots__ = ("path", "capacity", "map", "longs", "ints", "head", "lock", "notes_end", "clock_due", "pid")

    def __init__(self, folder: str, records: int, declaration: Mapping[str, Any]) -> None:
        place.check(folder)
        self.pid = os.getpid()
        self.capacity = place.capacity(folder, records)
        self.path = os.path.join(folder, "ring-%d-%d.dwr" % (self.pid, start_ticks()))
        self.map = _allocate(self.path, place.ring_bytes(self.capacity))
        header = memoryview(self.map)[: layout.HEADER_BYTES]
        self.longs = header.cast("Q")
        self.ints = header.cast("I")
        self.head = 0
        self.lock = threading.RLock()  # re-entrant: a signal handler may fetch while this thread writes
        self.notes_end = layout.NOTES_AT
        self.clock_due = 0
        self.longs[layout.Q_LENGTH] = layout.UNKNOWN64
        self.longs[layout.Q_BATCH] = layout.UNKNOWN64
        self.ints[layout.I_HOOK] = layout.OBSERVING
        self.note(declaration)
        self.pair_clocks()
        self.ints[layout.I_STATE] = layout.OPEN
        head = layout.pack_ring_head(
            layout.MAGIC, layout.VERSION, layout.HEADER_BYTES, layout.RECORD_BYTES, self.capacity
        )
        self.map[0 : len(head)] = head  # last: a ring with its magic is complete

    def write(self, pack: Callable[..., bytes], kind: int, flags: int, ref: int, *payload: Any) -> int:
        """Appends one record made by a packer of layout.py; returns its number, from 1."""
        with self.lock:
            number = self.head + 1
            seq = number & 0xFFFFFFFF
            at = 65536 + (((number - 1) & (self.capacity - 1)) << 6)
            self.map[at : at + 64] = pack(seq, kind, flags, ref, *payload, seq)
            self.head = number
            self.longs[3] = number
            return number

    def record(self, kind: int, flags: int, ref: int, payload: bytes) -> int:
        """Appends one record whose payload (at most 52 bytes) is already packed."""
        return self.write(layout.pack_raw, kind, flags, ref, payload)

    def mark(self, code: int, begin: int, end: int, value: int = 0, detail: int = 0) -> int:
        return self.write(layout.pack_mark, layout.MARK, 0, code, begin, end, value, detail)

    def note(self, note: Mapping[str, Any]) -> bool:
        """Appends a JSON object to the note area; False (and counted) when it does not fit."""
        line = json.dumps(note, separators=(",", ":"), default=str).encode() + b"\n"
        with self.lock:
            end = self.notes_end + len(line)
            if end > layout.HEADER_BYTES:
                self.longs[layout.Q_NOTES_LOST] += 1
                return False
            self.map[self.notes_end : end] = line
            self.notes_end = end
            self.longs[layout.Q_NOTE_BYTES] = end - layout.NOTES_AT
            return True

    def pair_clocks(self) -> None:
        """Reads both clocks back to back, into the header and a note; due once a minute (``clock_due``)."""
        monotonic, realtime = clock_pair()
        self.longs[layout.Q_MONOTONIC] = monotonic
        self.longs[layout.Q_REALTIME] = realtime
        self.clock_due = monotonic + MINUTE
        # A day of pairs would fill the note area: keep half of it for what is rare, the header has the newest pair.
        if self.notes_end < layout.HEADER_BYTES // 2:
            self.note({"note": "clock", "monotonic": monotonic, "realtime": realtime})

    def close(self) -> None:
        """Says that the process ended by itself. The file stays: the agent drains and removes it."""
        self.ints[layout.I_STATE] = layout.CLOSED


def _allocate(path: str, size: int) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.posix_fallocate(fd, 0, size)
        return mmap.mmap(fd, size)
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def clock_pair() -> "tuple[int, int]":
    """CLOCK_MONOTONIC and the wall clock, of three tries the pair read closest together."""
    best = None
    for _ in range(3):
        before = time.monotonic_ns()
        realtime = time.time_ns()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, realtime)
    assert best is not None
    return best[1], best[2]


def start_ticks(pid: str = "self") -> int:
    """When the process started, in clock ticks since boot: with the pid it names a process for good."""
    with open("/proc/%s/stat" % pid, "rb") as stat:
        return int(stat.read().rpartition(b")")[2].split()[19])  # field 22; the name before it may hold anything


def boot_id() -> "str | None":
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def totals_slot(loader: int) -> int:
    """Offset of a loader's totals; numbers from 31 on share the last slot."""
    return layout.TOTALS_AT + min(loader, layout.TOTALS_SLOTS - 1) * layout.TOTALS_BYTES


Declaration = Dict[str, Any]
