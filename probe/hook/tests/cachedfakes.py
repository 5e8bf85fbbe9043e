"""A training job without time: a clock that only moves when told, PyTorch's queue as arithmetic, a ring as lists."""

from __future__ import annotations

import itertools
import os
import struct
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from datawait import layout
from datawait.cachedtest import CachedTest

MS = 1_000_000
NEVER = layout.UNKNOWN64
LIVE, HOST, BUSY, DEVICE, REREAD = range(5)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000_000

    def __call__(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)


class FakeRing:
    def __init__(self) -> None:
        self.records: List[Tuple[Any, ...]] = []
        self.notes: List[Dict[str, Any]] = []
        self.longs = [0] * 8192
        self.ints = [0] * 16384

    def write(self, pack: Callable[..., bytes], kind: int, flags: int, ref: int, *payload: Any) -> int:
        assert len(pack(1, kind, flags, ref, *payload, 1)) == 64
        self.records.append((kind, flags, ref, payload))
        return len(self.records)

    def mark(self, code: int, begin: int, end: int, value: int = 0, detail: int = 0) -> int:
        return self.write(layout.pack_mark, layout.MARK, 0, code, begin, end, value, detail)

    def flush(self, now: int = 0) -> int:
        return len(self.records)

    def note(self, note: Any) -> bool:
        self.notes.append(note)
        return True

    def blocks(self) -> List["Written"]:
        return [Written(*r) for r in self.records if r[0] == layout.BLOCK]

    def marks(self) -> List[int]:
        return [r[2] for r in self.records if r[0] == layout.MARK]

    def solos(self) -> List[int]:
        return [r[3][1] for r in self.records if r[0] == layout.SOLO]


class Written:
    """A BLOCK record."""

    def __init__(self, kind: int, flags: int, leg: int, payload: Sequence[int]) -> None:
        self.void, self.device_timed, self.leg = bool(flags & 1), bool(flags & 2), leg
        (self.begin, self.end, self.block, self.first, self.steps, self.fetches, self.wait, self.reason,
         self.ready) = payload  # fmt: skip

    @property
    def step(self) -> float:
        """Milliseconds per step."""
        return (self.end - self.begin) / self.steps / MS

    def __repr__(self) -> str:
        return "Written(%s)" % ", ".join("%s=%r" % item for item in vars(self).items())


class Loader:
    """PyTorch's loader: W·P batches requested, in turn, one more for each taken; delivered in order."""

    def __init__(
        self,
        clock: Clock,
        workers: int,
        prefetch: int,
        build: Callable[[int], int],
        length: int = 10_000,
        make: Callable[[int], Any] = lambda index: {"index": index},
    ) -> None:
        self.clock, self.workers, self.prefetch, self.build, self.length = clock, workers, prefetch, build, length
        self.make = make
        self.sent = self.received = 0
        self.free = [clock.now] * workers
        self.ready_at: Dict[int, int] = {}
        for _ in range(workers * prefetch):
            self._send()

    def _send(self) -> None:
        if self.sent >= self.length:
            return
        worker = self.sent % self.workers
        self.free[worker] = max(self.free[worker], self.clock.now) + self.build(self.sent)
        self.ready_at[self.sent] = self.free[worker]
        self.sent += 1

    def ready(self) -> int:
        return sum(at <= self.clock.now for at in self.ready_at.values())

    def outstanding(self) -> int:
        return len(self.ready_at)

    def next(self) -> Any:
        index = self.received
        if index >= self.length:
            raise StopIteration
        if self.workers:
            self.clock.now = max(self.clock.now, self.ready_at.pop(index))
            self._send()
        else:
            self.clock.now += self.build(index)
        self.received += 1
        return self.make(index)


class Source:
    """One iterator as the fetch core shows it to the test."""

    loader = 0
    pin_memory = False

    def __init__(self, loader: Loader, length: Optional[int] = None, epoch: int = 0) -> None:
        self.it = loader
        self.workers, self.prefetch = loader.workers, loader.prefetch
        self.length, self.epoch = length, epoch
        self.batch_index = 0  # slots used
        self.fetches: List[Tuple[int, int, int, int]] = []  # enter, exit, flags, block
        self.test: Any = None
        self.device = True
        self.fail: Optional[BaseException] = None

    def live_next(self, flags: int) -> Any:
        if self.fail is not None:
            raise self.fail
        enter = self.it.clock.now
        batch = self.it.next()
        self.fetches.append((enter, self.it.clock.now, flags, self.test.block))
        if not flags & layout.DISCARDED:
            self.batch_index += 1
        return batch

    def record(self, enter: int, leave: int, flags: int) -> None:
        self.fetches.append((enter, leave, flags, self.test.block))

    def skip_slot(self) -> None:
        if self.length is not None and self.batch_index >= self.length:
            raise StopIteration
        self.batch_index += 1

    def ready(self) -> Optional[int]:
        return self.it.ready()

    def outstanding(self) -> Optional[int]:
        return self.it.outstanding()

    def synchronize(self) -> bool:
        return self.device

    def to_device(self, batch: Any) -> Any:
        if not self.device:
            raise RuntimeError("no device to hold the batch")
        return batch

    def last_sent(self) -> Optional[int]:
        return self.it.sent - 1

    def count(self, flag: int) -> int:
        return sum(bool(flags & flag) for _, _, flags, _ in self.fetches)


class Page:
    """The agent's side of the control page."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "control")
        self.generation = 0
        self.write()

    def write(
        self,
        mode: int = 0,
        blocks: Sequence[Tuple[int, ...]] = (),
        park: int = NEVER,
        cap: int = 1 << 30,
        agent: int = 0,
        magic: bytes = b"DWCTRL1\n",
        held: bool = False,
    ) -> None:
        """blocks: (leg, first, end[, flags]), numbered from 1."""
        self.generation += 2
        plan = b"".join(
            struct.pack("<IIQQII", number, leg, first, end, *(tuple(flags) + (0, 0))[:2])
            for number, (leg, first, end, *flags) in enumerate(blocks, 1)
        )
        head = struct.pack("<8sIIIIQQI", magic, self.generation, mode, len(blocks), agent, cap, park, held)
        self.raw((head.ljust(64, b"\0") + plan).ljust(4096, b"\0"))

    def raw(self, page: bytes) -> None:
        """In place, as a seqlock is written."""
        with open(self.path, "r+b" if os.path.exists(self.path) else "w+b") as file:
            file.write(page)


class Job:
    """A training loop: ``accumulate`` fetches, compute, one optimizer step."""

    def __init__(self, folder: Any, compute: int = 20 * MS, accumulate: int = 1) -> None:
        self.clock = Clock()
        self.ring = FakeRing()
        self.page = Page(str(folder))
        self.errors: List[Tuple[str, str]] = []
        self.test = CachedTest(self.ring, str(folder), self.clock, self.clock.sleep, self.complain)
        self.compute, self.accumulate = compute, accumulate
        self.step = 0
        self.seen: List[Any] = []  # what training got, in order
        self.before_step: Callable[[], None] = lambda: None

    def complain(self, reason: int, where: str, error: BaseException) -> None:
        self.errors.append((where, "%s: %s" % (type(error).__name__, error)))

    def loader(self, workers: int = 0, prefetch: int = 2, build: Any = 5 * MS, **kwargs: Any) -> Loader:
        return Loader(self.clock, workers, prefetch, build if callable(build) else lambda _: build, **kwargs)

    def train(self, source: Source, steps: int = 10_000) -> int:
        """Runs until the epoch ends or so many steps are made; returns the batches training got."""
        source.test = self.test
        got = 0
        for _ in range(steps):
            routed = self.test.poll(self.step)
            for _ in range(self.accumulate):
                try:
                    batch = self.test.serve(source) if routed else source.live_next(0)
                except StopIteration:
                    return got
                got += 1
                self.seen.append(batch)
                self.before_step()
            self.clock.now += self.compute
            self.step += 1
        return got


def cycle(values: Sequence[int]) -> Callable[[int], int]:
    repeated = list(itertools.islice(itertools.cycle(values), 100_000))
    return lambda index: repeated[index]
