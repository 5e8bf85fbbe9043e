"""Where the building of batches spends its time: a thread of the worker looks at its stack about twenty times a second.

Nothing of Python's can look without the interpreter's lock, and a thread that waits for it gets it where the other lets
go: at its next read, compression or sleep. Looks that are merely taken "now" therefore see what releases the lock, and
next to nothing of what runs between (of 3 ms of Python before 3 ms of zlib they saw 0.4 % where 38 % was true). Only
after the switch interval, 5 ms, does the running thread let go where it is. So the looks are planned: shortly before
one is due the thread shortens that interval for this process to a tenth of a millisecond, and puts it back right after.
What it then sees is where the builder is when the look is due, whatever that does with the lock.

Looks are 25 to 75 ms apart, by a generator of their own, so no rhythm of the job can hide from them, and further where
a look is so dear (a virtual machine, a crowded one) that they would take more than a 300th of a core: each counts as
the time it stands for. Whether the builder runs or waits is its state in /proc, read after the lock was let go (twice,
where it seems to wait): if it only waited for that, it is runnable by then.

The thread begins after the first batch, when PyTorch has made a further thread itself (the result queue's); it takes no
signals, never keeps a process alive, and ends with the worker's loop. Any error ends the sampling and nothing else.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from typing import Callable, Optional

from . import descriptors, layout
from .calls import Calls
from .foreign import own
from .layout import UNKNOWN16
from .ring import Ring
from .stream import IN_STACKS, complain, core
from .transforms import timings

SECOND = 1_000_000_000
PERIOD = SECOND // 20  # between two looks, on average; longer where that would take more of a core than …
SHARE = 300  # … one part in so many
ENOUGH = 10  # looks tell what one takes; after them that is thought over whenever sums are written
AHEAD = 6_000_000  # of a look that is due: more than a switch interval, in which the lock is had at the latest
BRIEF = 0.0001  # the switch interval meanwhile, in seconds
MINUTE = 60 * SECOND
SELDOM = 10 * SECOND  # sums are written a second apart at first, later up to this
SYNCHRONOUS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}  # of the thread that they come from

_usual: Optional[float] = None  # the script's switch interval, while ours is in force


def wanted(role: str) -> bool:
    """Whether processes of this role are sampled: workers unless told not to, those that train only when told to."""
    said = os.environ.get("DATAWAIT_STACKS")
    return said == "all" or (role == "worker" and said != "off")


class Sampler:
    """Looks at one thread and adds up. ``loader`` tells what that thread builds for now, None while it does not."""

    def __init__(self, ring: Ring, loader: Callable[[], Optional[int]]) -> None:
        self.ring = ring
        self.loader = loader
        self.thread = threading.get_ident()
        self.calls = Calls()
        self.state = State(threading.get_native_id())
        self.seed = int.from_bytes(os.urandom(8), "little")
        self.ends = _thread.allocate_lock()  # held until the sampling is to end: waiting for it is the sleep
        self.ends.acquire()
        self.writes = _thread.allocate_lock()  # whoever counts or writes
        self.over = False
        self.looks = self.samples = 0
        self.due = 0
        self.period = PERIOD  # now: the time that a look stands for
        self.paced = 0, 0  # looks and cost when that was last thought over
        self.told_at = 0
        self.cost: Callable[[], int] = time.thread_time_ns
        self.began = self.written = core.clock()

    def start(self) -> None:
        _thread.start_new_thread(self.run, ())

    def run(self) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.valid_signals()) - SYNCHRONOUS)
            self.due = core.clock() + self.pause()
            while not core.off:
                if self.sleep(self.due - AHEAD) or self.look():
                    return
                self.write_when_due()
        except Exception as error:
            self.fail(error)

    def pause(self) -> int:
        """Half to one and a half periods, by a generator that is no one else's (Knuth's MMIX)."""
        self.seed = (self.seed * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return self.period // 2 + ((self.seed >> 32) * self.period >> 32)

    def sleep(self, until: int) -> bool:
        """Waits; True if the sampling is to end."""
        left = until - core.clock()
        if left <= 0:
            return self.over
        return self.ends.acquire(True, left * 1e-9)

    def look(self) -> bool:
        """Where the thread is when the look is due; True if the sampling is to end."""
        shorten()
        try:
            due, now = self.due, core.clock()
            if now >= due:  # had the lock too late, and where the builder let go of it: the look is planned anew
                due = now + self.pause()
            if self.sleep(due):
                return True
            loader = self.loader()
            path = None if loader is None else self.calls.path(sys._current_frames().get(self.thread))
        finally:
            restore()
        stands_for = self.catch_up()
        with self.writes:
            self.looks += 1
            if path is not None and not self.over:
                self.samples += 1
                self.calls.add(loader, path, self.state.runs(), stands_for)
        return self.over

    def catch_up(self) -> int:
        """Plans the next look, and returns the time that this one stands for: one period, and more where others fell
        due before it could be had. What makes a look late (a builder that keeps the lock, or loses its core while it
        has it) would else be seen too seldom."""
        now, periods = core.clock(), 1
        if now - self.due > MINUTE:  # the process was stopped
            self.due = now
        self.due += self.pause()
        while self.due <= now:
            self.due += self.pause()
            periods += 1
        return periods * self.period

    def write_when_due(self) -> None:
        now = core.clock()
        due = now - self.written >= max(SECOND, min(SELDOM, (now - self.began) // 10))
        if not due and (self.looks < ENOUGH or self.paced[0]):
            return
        cost = self.cost()
        self.told_at = now
        self.pace(cost)
        if not due:
            return
        timings.patch()  # what was imported since
        with self.writes:
            if not self.over:
                self.write(now, cost)

    def pace(self, cost: int) -> None:
        """As seldom as what the looks since the last time took asks for."""
        looks, took = self.looks - self.paced[0], cost - self.paced[1]
        self.paced = self.looks, cost
        if looks:
            self.period = min(max(PERIOD, took * SHARE // looks), SECOND)

    def write(self, now: int, cost: int) -> None:
        """The sums that have changed since they were written last."""
        self.written = now
        ring, calls = self.ring, self.calls
        calls.tell(ring)
        for (loader, call), sums in calls.changed():
            ring.write(layout.pack_stack, layout.STACK, 0, loader, now, *sums[:3], call, sums[3])
        timings.write(ring, now)
        ring.write(layout.pack_sampler, layout.SAMPLER, 0, UNKNOWN16, now, self.looks, self.samples, calls.outside,
                   cost, now - self.began)  # fmt: skip

    def stop(self) -> None:
        """Ends the thread, which may be asleep, and writes what it has seen. Called by the thread that it looks at."""
        if self.writes.acquire(True, 0.1):
            try:
                ended, self.over = self.over, True
                if not ended:
                    self.ends.release()
                    self.write(core.clock(), layout.UNKNOWN64)
            finally:
                self.writes.release()

    def fail(self, error: BaseException) -> None:
        try:
            self.over = True
            complain(IN_STACKS, "stack sampling", error)
        except Exception:
            pass  # a thread of nobody's: there is no one to tell


class State:
    """Whether a thread of this process runs (or could) or waits, by the kernel's word."""

    def __init__(self, thread: int) -> None:
        self.head = b"%d (" % thread
        self.fd: Optional[int] = None
        try:
            with descriptors.kept():
                self.fd = os.open("/proc/self/task/%d/stat" % thread, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            own(error)

    def runs(self) -> Optional[bool]:
        """True: on a core, or ready for one. None: not known. Asked again before it counts as waiting: what it waited
        for may have been the interpreter's lock, which the first asking lets go of."""
        runs = self.read()
        return self.read() if runs is False else runs

    def read(self) -> Optional[bool]:
        if self.fd is None:
            return None
        try:
            text = os.pread(self.fd, 64, 0)  # number, name of at most 15 bytes, state
        except OSError as error:
            own(error)
            text = b""
        end = text.rfind(b") ") + 2  # of the name
        state = text[end : end + 1]
        if end < 2 or not state or not text.startswith(self.head):  # the script closed files that are not its own
            self.fd = None
            return None
        return state == b"R"


def shorten() -> None:
    global _usual
    usual = sys.getswitchinterval()
    if usual > BRIEF:
        _usual = usual
        sys.setswitchinterval(BRIEF)


def restore() -> None:
    global _usual
    usual, _usual = _usual, None
    if usual is not None and abs(sys.getswitchinterval() - BRIEF) < BRIEF / 10:  # not if the script set one meanwhile
        sys.setswitchinterval(usual)


def start(ring: Ring, loader: Callable[[], Optional[int]]) -> "Optional[Sampler]":
    """Begins to look at the calling thread; None where that fails."""
    try:
        sampler = Sampler(ring, loader)
        sampler.start()
        return sampler
    except Exception as error:
        complain(IN_STACKS, "starting to sample stacks", error)
        return None


def _in_forked_child() -> None:
    try:
        restore()  # the thread that would have done it is not here
        timings.on = False
    except Exception as error:
        complain(IN_STACKS, "after a fork", error)


os.register_at_fork(after_in_child=_in_forked_child)
