"""The ring one process writes its records into (SPEC §4).

The whole file is allocated before it is mapped: writing to a hole of a sparse map on a full tmpfs is SIGBUS, which
nothing in Python can catch. Records that wait are one slice assignment, then the head moves; what a reader sees of a
record under the pen has two different numbers. Nobody but the process that made a ring writes to it.

Records of the hot path are put off: packing one in the middle of a training loop, all caches cold, takes three times
as long as packing twenty in a row. They wait in ``pending`` until one comes a millisecond after the last were written,
so a loop of slower steps writes each record at once, and a process that is killed loses at most that millisecond.
Whoever writes anything else writes what is pending first.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import descriptors, layout, place
from .identity import start_ticks
from .layout import BATCH, COST, EXPOSED, FETCH, IO, NO_GRAD, OFF_THREAD, READ, STEP, UNCOUNTED, UNKNOWN32, UNKNOWN64
from .totals import UNDELIVERED, Totals, totals_slot

MINUTE = 60_000_000_000
MILLISECOND = 1_000_000
MOST_PENDING = 64
NOTES_SPARED = 8192  # bytes of the note area that loaders leave free: a job may make thousands
MOST_HELD = 256
MOST_WAITING = 65536  # records a signal handler may leave that came while others were written
MOST_NAMES = 1000  # programs that one process may be in turn

PLAIN = 0  # a pending FETCH without flags: (PLAIN, epoch, enter, leave, batch, step, waiting)
NUMBERED = -2  # pending and its number wanted: (NUMBERED, what takes it as [0], the record)
PACKED = -1  # pending although no kind of _PACK: (PACKED, packer, kind, flags, ref, *payload)

_PACK = {
    FETCH: layout.pack_fetch,
    STEP: layout.pack_step,
    BATCH: layout.pack_batch,
    COST: layout.pack_cost,
    IO: layout.pack_io,
    READ: layout.pack_read,
    EXPOSED: layout.pack_exposed,
    PACKED: lambda seq, _, pack, *record: pack(seq, *record),
}


class Epoch:
    """What the plain fetches of one iterator have in common until it is reset. Lives on in ``pending`` when the
    iterator is gone, so it holds nothing of the script's."""

    __slots__ = ("head", "number", "totals")

    def __init__(self, loader: int, number: int, totals: Totals) -> None:
        self.head = layout.pack_plain_head(FETCH, 0, loader)
        self.number = number
        self.totals = totals


class Ring:
    """An open ring. ``put_off`` and ``write`` are the ways in; header fields are set through ``longs`` and ``ints``."""

    __slots__ = (
        "path", "capacity", "mask", "map", "longs", "ints", "head", "lock", "pending", "flush_at", "totals", "slots",
        "by_fetch", "validation", "notes_end", "clock_due", "pid", "held", "tail", "light", "fetches", "writing",
    )  # fmt: skip

    def __init__(self, folder: str, records: int, declaration: Mapping[str, Any]) -> None:
        folder = place.for_rings(folder)
        self.pid = os.getpid()
        self.capacity = place.capacity(folder, records)
        self.mask = self.capacity - 1
        stem = "ring-%d-%d" % (self.pid, start_ticks())
        self.path = ""
        try:
            self.path, self.map = _create(folder, stem, place.ring_bytes(self.capacity))
            self._begin(declaration)
        except BaseException:
            if self.path:
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
        self.writing = False  # a flush is under way
        self.held: Optional[List[Tuple[Any, ...]]] = []  # fetches of threads of which one may turn out to train
        self.totals: Dict[int, Totals] = {}  # by loader number
        self.slots: Dict[int, Totals] = {}  # the same by where they are stored
        self.fetches = 0  # delivered to training, by all loaders
        self.light = 0  # ns the hook takes of a plain fetch, without flush, as last timed; 0 = not yet
        self.by_fetch = True  # steps are counted in fetches
        self.validation: Optional[Tuple[int, int, int]] = None  # loader, begin and end of a validation loop so far
        self.notes_end = layout.NOTES_AT
        self.trains_on(threading.get_native_id())
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

    def trains_on(self, thread: Optional[int]) -> None:
        """Plain fetches from here on are those of this thread."""
        if self.pending:
            self.flush()
        self.tail = layout.pack_plain_tail(thread or 0, UNKNOWN64)

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
            self.flush()
            for fetch in held:
                if fetch[8] == trains and fetch[3] >= self.totals[fetch[2]].last_end:
                    flags = fetch[1] & ~OFF_THREAD
                    fetch = (FETCH, flags, *fetch[2:7], fetch[7] if step is None else step, *fetch[8:])
                    if step is not None and not flags & (UNCOUNTED | UNDELIVERED | NO_GRAD):
                        step += 1
                self.pending.append(fetch)
                self.flush()

    def flush(self, now: int = 0) -> int:
        """Writes what is pending and books its totals; returns the number of the last record, 0 if it is not written.

        now, where it is known, begins the next millisecond in which records are put off. Records come first, and the
        sums of what they say right behind the head: between the two a process that is killed leaves them at odds.
        Not in a signal handler that comes while this thread is in here: what that says waits for the next time.
        """
        if now:
            self.flush_at = now + MILLISECOND
        with self.lock:
            if self.writing and _is_flushing():
                if len(self.pending) > MOST_WAITING:
                    raise OverflowError("%d records while others are written" % MOST_WAITING)
                return 0
            try:
                self.writing = True
                count = len(self.pending)  # other threads may append meanwhile: theirs stay for the next time
                pending = self.pending[:count]
                del self.pending[:count]
                target, number, tail = self.map, self.head, self.tail
                pack_plain = layout.pack_plain
                packed: List[bytes] = []
                put = packed.append
                training: Optional[Tuple[Any, ...]] = None  # the last fetch of the training loop
                counted: Dict[int, Totals] = {}  # whose sums have changed, by slot
                steps = -1  # made by the optimizer
                run: Optional[Epoch] = None  # that of the plain fetches in a row …
                head, epochs = b"", 0
                fetches = begin = end = wait = 0  # … and their sums
                for record in pending:
                    kind = record[0]
                    number += 1
                    if kind == PLAIN:
                        _, epoch, enter, leave, batch, step, waiting = training = record
                        if epoch is not run or enter < end:  # before the last left: another thread trains now
                            if run is not None:
                                self._ran(run, fetches, begin, wait, end)
                            run, begin, head, epochs = epoch, enter, epoch.head, epoch.number
                            counted[epoch.totals.at] = epoch.totals
                            fetches = wait = 0
                            if self.validation is not None:
                                packed.append(self._validated(number))
                                number += 1
                        end = leave
                        fetches += 1
                        wait += leave - enter
                        seq = number & 0xFFFFFFFF
                        put(pack_plain(seq, head, enter, leave, batch, epochs, step, tail, waiting, seq))
                        continue
                    wanted = None
                    if kind == NUMBERED:
                        _, wanted, record = record
                        kind = record[0]
                    if kind == FETCH:
                        if run is not None:
                            self._ran(run, fetches, begin, wait, end)
                            run = None
                        if not record[1] & UNCOUNTED:
                            totals = self.totals[record[2]]
                            counted[totals.at] = totals
                            self.fetches += totals.add(record[1], record[3], record[4])
                            if record[1] & NO_GRAD:
                                self._validate(record)
                            else:
                                training = record
                                if self.validation is not None:
                                    packed.append(self._validated(number))
                                    number += 1
                    elif kind == STEP:
                        steps = record[5]
                    seq = number & 0xFFFFFFFF
                    if wanted is not None:
                        wanted[0] = seq
                    packed.append(_PACK[kind](seq, *record, seq))
                if run is not None:
                    self._ran(run, fetches, begin, wait, end)
                at = self.head & self.mask
                if at + len(packed) <= self.capacity:
                    at = 65536 + (at << 6)
                    target[at : at + (len(packed) << 6)] = b"".join(packed)
                else:
                    self._wrap(at, packed)
                self.head = self.longs[layout.Q_HEAD] = number
                for totals in counted.values():
                    totals.store(self.longs)
                if steps >= 0:
                    self.longs[layout.Q_STEP] = steps
                self._tell(training)
                if now > self.clock_due:
                    self.pair_clocks()
                return number
            finally:
                self.writing = False

    def totals_of(self, loader: int, builds: bool, length: Optional[int]) -> Totals:
        """The running sums in which a loader's fetches are counted."""
        known = self.totals.get(loader)
        if known is None:
            at = totals_slot(loader)
            known = self.slots.get(at)
            if known is None:
                known = self.slots[at] = Totals(loader, builds, length)
                known.built = self.longs[at + 5]
            known.builds = known.builds and builds
            self.totals[loader] = known
        return known

    def built(self, loader: int) -> None:
        """Counts a batch that ``building()`` saw; where the fetches build, they are the count."""
        at = totals_slot(loader)
        with self.lock:
            totals = self.slots.get(at)
            if totals is None:
                self.longs[at + 5] += 1
            elif not totals.builds:
                totals.built += 1
                self.longs[at + 5] = totals.built

    def _wrap(self, at: int, packed: List[bytes]) -> None:
        """Records that go over the end of the ring: the rest into its first slots."""
        room = self.capacity - at
        at = layout.HEADER_BYTES + (at << 6)
        self.map[at : at + (room << 6)] = b"".join(packed[:room])
        at = layout.HEADER_BYTES
        self.map[at : at + (len(packed) - room << 6)] = b"".join(packed[room:])

    def _ran(self, epoch: Epoch, fetches: int, begin: int, wait: int, end: int) -> None:
        """Books plain fetches of one iterator in a row."""
        totals = epoch.totals
        totals.add_run(fetches, begin, wait, end)
        self.fetches += fetches
        if self.light:
            self.took(fetches * self.light, fetches)

    def took(self, ns: int, fetches: int) -> None:
        """What the hook itself took, and of how many fetches."""
        self.longs[layout.Q_OWN_NS] += ns
        self.longs[layout.Q_OWN_FETCHES] += fetches

    def _tell(self, fetch: Optional[Tuple[Any, ...]]) -> None:
        """The header's view of the ring, and of the training loop from its last fetch."""
        longs = self.longs
        longs[13] = self.fetches
        if fetch is None:
            return
        if fetch[0] == PLAIN:
            totals, batch, step = fetch[1].totals, fetch[4], fetch[5] + 1
        else:
            totals, batch, step = self.totals[fetch[2]], fetch[5], fetch[7] + (not fetch[1] & UNDELIVERED)
        longs[14] = UNKNOWN64 if totals.length is None else totals.length
        if batch != UNKNOWN32:
            longs[15] = batch + totals.shift
        if self.by_fetch:
            longs[10] = step

    def _validate(self, fetch: Tuple[Any, ...]) -> None:
        begun = self.validation
        self.validation = (fetch[2], fetch[3], fetch[4]) if begun is None else (begun[0], begun[1], fetch[4])

    def _validated(self, number: int) -> bytes:
        """A training fetch after fetches without autograd: the validation loop between them is one MARK."""
        assert self.validation is not None
        loader, begin, end = self.validation
        self.validation = None
        seq = number & 0xFFFFFFFF
        return layout.pack_mark(seq, layout.MARK, 0, layout.VALIDATION, begin, end, loader, 0, seq)

    def end_validation(self) -> None:
        if self.validation is not None:
            loader, begin, end = self.validation
            self.validation = None
            self._append(layout.pack_mark, layout.MARK, 0, layout.VALIDATION, begin, end, loader, 0)

    def write(self, pack: Callable[..., bytes], kind: int, flags: int, ref: int, *payload: Any) -> int:
        """Appends one record made by a packer of layout.py; returns its number, from 1 (0: see flush)."""
        with self.lock:
            if self.pending:
                self.flush()
            return self._append(pack, kind, flags, ref, *payload)

    def _append(self, pack: Callable[..., bytes], kind: int, flags: int, ref: int, *payload: Any) -> int:
        if self.writing and _is_flushing():  # a signal handler while this thread is in flush
            self.pending.append((PACKED, pack, kind, flags, ref, *payload))
            return 0
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
            self.flush()
            self.end_validation()
            self.ints[layout.I_STATE] = layout.CLOSED


def _is_flushing() -> bool:
    """Whether the caller was called from within flush. What a signal handler raised as flush was left may be why it
    only looks like that."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code is Ring.flush.__code__:
            return True
        frame = frame.f_back
    return False


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
    made = False
    try:
        with descriptors.kept():
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                made = True
                place.check_file(fd, os.path.dirname(path))
                os.fchmod(fd, 0o600)  # whatever the script's umask takes away
                os.posix_fallocate(fd, 0, size)
                return mmap.mmap(fd, size, **descriptors.UNTRACKED)
            finally:
                os.close(fd)
    except BaseException:
        if made:
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
