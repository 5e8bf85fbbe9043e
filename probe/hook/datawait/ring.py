"""The ring one process writes its records into (SPEC §4).

The whole file is allocated before it is mapped: writing to a hole of a sparse map on a full tmpfs is SIGBUS, which
nothing in Python can catch. A record is one 64-byte slice assignment, then the head moves; a reader sees either.
Nobody but the process that made a ring writes to it.

Records of the hot path are put off: packing one in the middle of a training loop, all caches cold, takes three times
as long as packing twenty in a row. They wait in ``pending`` until one comes a millisecond after the last were written,
so a loop of slower steps writes each record at once, and a process that is killed loses at most that millisecond.
Whoever writes anything else writes what is pending first.
"""

from __future__ import annotations

import json
import mmap
import os
import threading
import time
from struct import Struct
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import descriptors, layout, place
from .foreign import own
from .layout import BATCH, COST, END, ERROR, FETCH, IO, NO_GRAD, OFF_THREAD, STEP, UNCOUNTED, UNKNOWN32, UNKNOWN64

MINUTE = 60_000_000_000
MILLISECOND = 1_000_000
MOST_PENDING = 64
NOTES_SPARED = 8192  # bytes of the note area that loaders leave free: a job may make thousands
MOST_HELD = 256
MOST_NAMES = 1000  # programs that one process may be in turn

UNDELIVERED = END | ERROR

_pack_totals = Struct("<QQQQQQQ").pack_into
_PACK = {
    FETCH: layout.pack_fetch,
    STEP: layout.pack_step,
    BATCH: layout.pack_batch,
    COST: layout.pack_cost,
    IO: layout.pack_io,
}


class Totals:
    """Running sums of one loader, or of all beyond the table as if they were one; they count what the training waited
    for, and survive an overrun of the records."""

    __slots__ = (
        "loader", "at", "builds", "length", "shift", "fetches", "wait", "between", "no_grad", "last_end", "first_begin",
    )  # fmt: skip

    def __init__(self, loader: int, builds: bool, length: Optional[int]) -> None:
        self.loader = loader  # the lowest that it counts
        self.at = totals_slot(loader)
        self.builds = builds  # its fetches build the batches themselves
        self.length = length  # batches of its current epoch
        self.shift = 0  # of them the cached-data test replaced, less those it threw away
        self.fetches = self.wait = self.between = self.no_grad = self.last_end = self.first_begin = 0

    def begin_epoch(self, length: Optional[int]) -> None:
        self.length = length
        self.shift = 0

    def add(self, flags: int, enter: int, leave: int) -> None:
        if self.last_end:
            if enter > self.last_end:  # not where a signal handler fetched before this fetch could begin
                self.between += enter - self.last_end
        else:
            self.first_begin = enter
        self.last_end = leave
        self.wait += leave - enter
        if not flags & UNDELIVERED:
            self.fetches += 1
            if flags & NO_GRAD:
                self.no_grad += 1

    def store(self, target: mmap.mmap) -> None:
        _pack_totals(
            target, self.at, self.fetches, self.wait, self.between, self.no_grad, self.last_end,
            self.fetches if self.builds else 0, self.first_begin,
        )  # fmt: skip


class Ring:
    """An open ring. ``put_off`` and ``write`` are the ways in; header fields are set through ``longs`` and ``ints``."""

    __slots__ = (
        "path", "capacity", "mask", "map", "longs", "ints", "head", "lock", "pending", "flush_at", "totals", "slots",
        "by_fetch", "validation", "notes_end", "clock_due", "pid", "held",
    )  # fmt: skip

    def __init__(self, folder: str, records: int, declaration: Mapping[str, Any]) -> None:
        place.check(folder)
        self.pid = os.getpid()
        self.capacity = place.capacity(folder, records)
        self.mask = self.capacity - 1
        stem = "ring-%d-%d" % (self.pid, start_ticks())
        self.path, self.map = _create(folder, stem, place.ring_bytes(self.capacity))
        try:
            self._begin(declaration)
        except BaseException:
            os.unlink(self.path)
            raise

    def _begin(self, declaration: Mapping[str, Any]) -> None:
        header = memoryview(self.map)[: layout.HEADER_BYTES]
        self.longs = header.cast("Q")
        self.ints = header.cast("I")
        self.head = 0
        self.lock = threading.RLock()  # re-entrant: a signal handler may fetch while this thread writes
        self.pending: List[Tuple[Any, ...]] = []  # records put off: (kind, flags, ref, *payload)
        self.flush_at = 0
        self.held: Optional[List[Tuple[Any, ...]]] = []  # fetches of threads of which one may turn out to train
        self.totals: Dict[int, Totals] = {}  # by loader number
        self.slots: Dict[int, Totals] = {}  # the same by where they are stored
        self.by_fetch = True  # steps are counted in fetches
        self.validation: Optional[Tuple[int, int, int]] = None  # loader, begin and end of a validation loop so far
        self.notes_end = layout.NOTES_AT
        self.clock_due = 0
        self.longs[layout.Q_LENGTH] = UNKNOWN64
        self.longs[layout.Q_BATCH] = UNKNOWN64
        self.ints[layout.I_HOOK] = layout.OBSERVING
        self.note(declaration)
        self.pair_clocks()
        self.ints[layout.I_STATE] = layout.OPEN
        head = layout.pack_ring_head(
            layout.MAGIC, layout.VERSION, layout.HEADER_BYTES, layout.RECORD_BYTES, self.capacity
        )
        self.map[0 : len(head)] = head  # last: a ring with its magic is complete

    def put_off(self, now: int, record: Tuple[Any, ...]) -> None:
        """A record (kind, flags, ref, *payload) of a kind in _PACK, written now if the last was a millisecond ago."""
        pending = self.pending
        pending.append(record)
        if now >= self.flush_at or len(pending) >= MOST_PENDING:
            self.flush(now)

    def hold(self) -> None:
        """From now on it is not known who trains."""
        with self.lock:
            if self.held is None:
                self.held = []

    def hold_back(self, fetch: Tuple[Any, ...]) -> bool:
        """Keeps a fetch off the main thread until it is known who trains; False if that is known, or never will be."""
        with self.lock:
            if self.held is None:
                return False
            self.held.append(fetch)
            if len(self.held) > MOST_HELD:
                self.let_go(None)
            return True

    def let_go(self, trains: Optional[int], step: Optional[int] = None) -> None:
        """What is held back is written: that of the thread that trains as training (with its fetches for steps, from
        this one on, where they are), the rest as it is. A fetch that began before one already counted for the same
        loader ended stays out of its sums."""
        with self.lock:
            held, self.held = self.held, None
            if not held:
                return
            self.flush(self.flush_at)
            for fetch in held:
                if fetch[8] == trains and fetch[3] >= self.totals[fetch[2]].last_end:
                    flags = fetch[1] & ~OFF_THREAD
                    fetch = (FETCH, flags, *fetch[2:7], fetch[7] if step is None else step, *fetch[8:])
                    if step is not None and not flags & (UNCOUNTED | UNDELIVERED | NO_GRAD):
                        step += 1
                self.pending.append(fetch)
                self.flush(self.flush_at)

    def flush(self, now: int) -> int:
        """Writes what is pending and books its totals; returns the number of the last record."""
        self.flush_at = now + MILLISECOND
        with self.lock:
            count = len(self.pending)  # other threads may append meanwhile: theirs stay for the next time
            pending = self.pending[:count]
            del self.pending[:count]
            target, mask = self.map, self.mask
            totals: Optional[Totals] = None
            training = None
            for record in pending:
                kind, flags = record[0], record[1]
                if kind == FETCH:
                    if not flags & UNCOUNTED:
                        if totals is None or totals.loader != record[2]:
                            if totals is not None:
                                totals.store(target)
                            totals = self.totals[record[2]]
                        totals.add(flags, record[3], record[4])
                        if flags & NO_GRAD:
                            self._validate(record)
                        else:
                            training = record
                            if self.validation is not None:
                                self.end_validation()
                elif kind == STEP:
                    self.longs[10] = record[5]
                number = self.head + 1
                seq = number & 0xFFFFFFFF
                at = 65536 + (((number - 1) & mask) << 6)
                target[at : at + 64] = _PACK[kind](seq, *record, seq)
                self.head = number
            if totals is not None:
                totals.store(target)
                self.longs[layout.Q_FETCHES] = self.delivered()
            if training is not None:
                self._progress(training)
            self.longs[layout.Q_HEAD] = self.head
            if now > self.clock_due:
                self.pair_clocks()
            return self.head

    def delivered(self) -> int:
        """Batches handed to training, by all loaders."""
        count = 0
        for totals in self.slots.values():
            count += totals.fetches
        return count

    def totals_of(self, loader: int, builds: bool, length: Optional[int]) -> Totals:
        """The running sums in which a loader's fetches are counted."""
        known = self.totals.get(loader)
        if known is None:
            at = totals_slot(loader)
            known = self.slots.get(at)
            if known is None:
                known = self.slots[at] = Totals(loader, builds, length)
            known.builds = known.builds and builds
            self.totals[loader] = known
        return known

    def _progress(self, fetch: Tuple[Any, ...]) -> None:
        """The header's view of the training loop, from its last fetch."""
        length = self.totals[fetch[2]].length
        longs = self.longs
        longs[layout.Q_LENGTH] = UNKNOWN64 if length is None else length
        if fetch[5] != UNKNOWN32:
            longs[layout.Q_BATCH] = fetch[5] + self.totals[fetch[2]].shift
        if self.by_fetch:
            longs[layout.Q_STEP] = fetch[7] if fetch[1] & UNDELIVERED else fetch[7] + 1

    def _validate(self, fetch: Tuple[Any, ...]) -> None:
        begun = self.validation
        self.validation = (fetch[2], fetch[3], fetch[4]) if begun is None else (begun[0], begun[1], fetch[4])

    def end_validation(self) -> None:
        """A training fetch after fetches without autograd: the validation loop between them is one MARK."""
        if self.validation is None:
            return
        loader, begin, end = self.validation
        self.validation = None
        self._append(layout.pack_mark, layout.MARK, 0, layout.VALIDATION, begin, end, loader, 0)

    def write(self, pack: Callable[..., bytes], kind: int, flags: int, ref: int, *payload: Any) -> int:
        """Appends one record made by a packer of layout.py; returns its number, from 1."""
        with self.lock:
            if self.pending:
                self.flush(self.flush_at)
            return self._append(pack, kind, flags, ref, *payload)

    def _append(self, pack: Callable[..., bytes], kind: int, flags: int, ref: int, *payload: Any) -> int:
        number = self.head + 1
        seq = number & 0xFFFFFFFF
        at = 65536 + (((number - 1) & self.mask) << 6)
        self.map[at : at + 64] = pack(seq, kind, flags, ref, *payload, seq)
        self.head = self.longs[layout.Q_HEAD] = number
        return number

    def record(self, kind: int, flags: int, ref: int, payload: bytes) -> int:
        """Appends one record whose payload (at most 52 bytes) is already packed."""
        return self.write(layout.pack_raw, kind, flags, ref, payload)

    def mark(self, code: int, begin: int, end: int, value: int = 0, detail: int = 0) -> int:
        return self.write(layout.pack_mark, layout.MARK, 0, code, begin, end, value, detail)

    def note(self, note: Mapping[str, Any], spare: int = 0) -> bool:
        """Appends a JSON object to the note area; False (and counted) when it does not fit, or would leave less than
        spare bytes to what is rarer."""
        line = json.dumps(note, separators=(",", ":"), default=str).encode() + b"\n"
        with self.lock:
            end = self.notes_end + len(line)
            if end > layout.HEADER_BYTES - spare:
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
        with self.lock:
            self.let_go(None)
            self.flush(self.flush_at)
            self.end_validation()
            self.ints[layout.I_STATE] = layout.CLOSED


def _create(folder: str, stem: str, size: int) -> Tuple[str, mmap.mmap]:
    """A ring under the first name that is free: a script that replaces itself (execve) remains the same process."""
    for number in range(1, MOST_NAMES):
        name = stem if number == 1 else "%s-%d" % (stem, number)
        path = os.path.join(folder, name + ".dwr")
        try:
            return path, _allocate(path, size)
        except FileExistsError:
            continue
    raise place.Refused("spool %s holds %d rings of this process" % (folder, MOST_NAMES - 1))


def _allocate(path: str, size: int) -> mmap.mmap:
    with descriptors.kept():
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                place.check_file(fd, os.path.dirname(path))
                os.fchmod(fd, 0o600)  # whatever the script's umask takes away
                os.posix_fallocate(fd, 0, size)
                return mmap.mmap(fd, size, **descriptors.UNTRACKED)
            finally:
                os.close(fd)
        except BaseException:
            os.unlink(path)
            raise


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
    except OSError as error:
        own(error)
        return None


def pid_namespace() -> "int | None":
    """Which processes this one's pids mean: the inode of its pid namespace (pid_namespaces(7))."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError as error:
        own(error)
        return None


def totals_slot(loader: int) -> int:
    """Offset of a loader's totals; numbers from 31 on share the last slot."""
    return layout.TOTALS_AT + min(loader, layout.TOTALS_SLOTS - 1) * layout.TOTALS_BYTES


Declaration = Dict[str, Any]
