"""The control page (SPEC §5): what the agent asks of the cached-data test, read at step boundaries.

The page is another process's memory and may hold anything. Reading never raises: a page that is being written is
read again at the next step, a page that makes no sense is refused with a sentence and changes nothing.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from array import array
from struct import Struct
from typing import NamedTuple, Optional, Sequence, Tuple, Union

from . import descriptors, layout
from .foreign import own, without_frames

NAME = "control"
MAGIC = b"DWCTRL1\n"
PAGE_BYTES = 4096
PLAN_AT = 64
MOST_BLOCKS = 126
_HEAD = Struct("<8sIIIIQQI")
_BLOCK = Struct("<IIQQII")

OBSERVE, TEST, PARK = 0, 1, 2
LIVE, HOST_CACHED, HOST_CACHED_BUSY, DEVICE_CACHED, REREAD, TRIAL = 0, 1, 2, 3, 4, 5
LEGS = ("live", "host-cached", "host-cached-busy", "device-cached", "reread", "trial")
SOLO_WANTED = 1
HELD = 1

LOOK_EVERY = 250_000_000  # ns
I_GENERATION = 2  # index of the generation in the page seen as u32
NEVER = layout.UNKNOWN64


class PlannedBlock(NamedTuple):
    number: int
    leg: int
    first: int  # step at which it begins (steps finished, as in the ring's header)
    end: int  # exclusive
    flags: int
    arguments: int = 0  # of a trial


class Plan(NamedTuple):
    mode: int
    agent: int  # pid of the agent as it sees itself
    cap: int  # bytes
    park: int  # step, NEVER when not planned
    blocks: Tuple[PlannedBlock, ...]
    held: bool = False  # the agent holds a lock on the page while it lives


class BadPage(ValueError):
    """The page makes no sense; the text says where."""


def parse(page: bytes) -> Plan:
    """Reads a page whose generation was even and did not move."""
    if len(page) < PAGE_BYTES:
        raise BadPage("%d bytes long" % len(page))
    magic, _, mode, count, agent, cap, park, marks = _HEAD.unpack_from(page)
    if magic != MAGIC:
        raise BadPage("starts with %r" % magic)
    if mode > PARK:
        raise BadPage("mode %d" % mode)
    if count > MOST_BLOCKS:
        raise BadPage("%d blocks" % count)
    blocks = []
    last = PlannedBlock(0, 0, 0, 0, 0)
    for index in range(count):
        number, leg, first, end, flags, arguments = _BLOCK.unpack_from(page, PLAN_AT + index * _BLOCK.size)
        block = PlannedBlock(number, leg, first, end, flags, arguments)
        if number <= last.number or first < last.end or end <= first:
            raise BadPage("block %d (steps %d to %d) follows block %d" % (number, first, end, last.number))
        blocks.append(block)
        last = block
    return Plan(mode, agent, cap, park, tuple(blocks), bool(marks & HELD))


class ControlPage:
    """The mapped page. ``words[I_GENERATION]`` is all that an idle step reads of it."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, NAME)
        self.words: Union[Sequence[int], memoryview] = array("I", [0, 0, 0])  # until the file is there
        self._map: Optional[mmap.mmap] = None
        self._look_at = 0
        self.trouble: Optional[Exception] = None  # why the page that is there cannot be had

    @property
    def mapped(self) -> bool:
        return self._map is not None

    def look(self, now: int) -> bool:
        """Maps the page if the agent has made it by now; looks four times a second."""
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_EVERY
        return self._attach()

    def _attach(self) -> bool:
        try:
            with descriptors.kept():
                self._map = self._mapped()
        except (OSError, ValueError) as error:
            own(error)
            self.trouble = None if isinstance(error, FileNotFoundError) else without_frames(error)
        if self._map is None:
            return False
        self.words = memoryview(self._map).cast("I")
        return True

    def _mapped(self) -> Optional[mmap.mmap]:
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if os.fstat(fd).st_size < PAGE_BYTES:  # reading past the end of a mapped file is SIGBUS
                return None
            return mmap.mmap(fd, PAGE_BYTES, prot=mmap.PROT_READ, **descriptors.UNTRACKED)
        finally:
            os.close(fd)

    def read(self) -> Optional[Tuple[int, Plan]]:
        """The generation and its plan; None while the agent is writing. Raises BadPage."""
        if self._map is None:
            return None
        before = self.words[I_GENERATION]
        page = self._map[:PAGE_BYTES]
        if before & 1 or self.words[I_GENERATION] != before:
            return None
        return before, parse(page)


class Agent:
    """Whether the process that is to end this run still lives: by the lock it holds on its page, which goes with it
    however it ends and is seen from every pid namespace; by its pid where it holds none."""

    def __init__(self, pid: int, page: Optional[str] = None) -> None:
        self.pid = pid
        self.page = page
        self._born = _born(pid)  # None: not to be seen from here (another pid namespace), so nothing is concluded

    def gone(self) -> bool:
        held = None if self.page is None else _held(self.page)
        if held is not None:
            return not held
        return self._born is not None and _born(self.pid) != self._born


def _held(path: str) -> Optional[bool]:
    """Whether somebody locks the page; None where that cannot be told. The agent removes its folder at its end."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError as error:
        own(error)
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError as error:
        own(error)
        return None
    finally:
        os.close(fd)


def _born(pid: int) -> Optional[bytes]:
    """Start time of a process in ticks since boot, which with its pid names it for good; None for none or a zombie."""
    if pid <= 0:
        return None
    try:
        with open("/proc/%d/stat" % pid, "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError as error:
        own(error)
        return None
    return fields[19] if len(fields) > 19 and fields[0] != b"Z" else None
