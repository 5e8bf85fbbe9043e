"""One block of the cached-data test while it runs: it settles, counts whole steps, and is written as one BLOCK.

A block lives between step boundaries. Its counted part starts when the loader is in the state the leg calls for, and
ends at the planned step; the device is synchronised at both ends and never in between, because launches running ahead
of a host clock make a 3.1-fold ceiling read as 31.

Where the replayed batches come from. Copying what a live block serves gives both legs the same batches, which
cancels the effect of sequence lengths. But the copy runs inside the live steps: where it costs more than 0.5 % of
them it would make the live leg slow and so invent a gain. Then (large images, mostly, which all cost the same) the
pool is filled from the loader at the start of the cached block instead, where no time is counted.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from . import control, layout
from .blockrecords import Counted
from .layout import UNKNOWN32
from .pulls import (
    EPOCH_ENDED,
    NO_BATCH,
    OTHER_LOOP,
    SAVED,
    SECOND,
    TOO_FEW_STEPS,
    TOO_LARGE,
    Pulls,
    Source,
    Void,
    workers_of,
)
from .replay import ReplayPool
from .saving import saves

LIVE: Any = object()  # what serve() answers when the batch is to come from the loader itself

LEAST_STEPS = 10  # counted steps below which a block says nothing
SETTLE_STEPS = 2  # served before a cached block counts (SPEC §5)
LEAST_POOL = 10  # batches replayed: fewer would be one shape, one length, one cuDNN choice
POOL_PATIENCE = 30 * SECOND
WARM_UP = 5_000_000  # ns; a copy that took less is tried twice
COPY_SHARE = 200  # copying may take a 200th of a live step


class Served(NamedTuple):
    """A batch from memory, and when it was asked for and there."""

    batch: Any
    enter: int
    leave: int


class Kit:
    """What blocks share: the ring, the clock, the loaders' pools, and how deep their queues were."""

    def __init__(self, ring: Any, clock: Callable[[], int], sleep: Callable[[float], None]) -> None:
        self.ring = ring
        self.clock = clock
        self.pulls = Pulls(clock, sleep)
        self.pools: Dict[int, ReplayPool] = {}
        self.depths: Dict[Tuple[int, int], int] = {}  # (loader, epoch) -> ready batches before the queue filled up
        self.cap = 0

    def pool(self, source: Source) -> ReplayPool:
        return self.pools.setdefault(source.loader, ReplayPool())

    def room(self) -> int:
        return self.cap - sum(pool.nbytes for pool in self.pools.values())

    def note_depth(self, source: Source) -> None:
        """Remembers the queue's depth in live training, until a live block has brought it back there."""
        ready = source.ready()
        if ready is not None:
            self.depths.setdefault((source.loader, source.epoch), ready)

    def validation_fetches(self) -> int:
        """Fetches without autograd, all loaders: their totals in the ring's header."""
        self.ring.flush()  # records of a fast loop are put off; the next is not put off for this one's sake
        at, words = layout.TOTALS_AT // 8, layout.TOTALS_BYTES // 8
        return sum(self.ring.longs[at + slot * words + 3] for slot in range(layout.TOTALS_SLOTS))


class Block:
    """What all legs share; a leg decides how to admit an iterator, what to give, and when it is settled."""

    settle_steps = SETTLE_STEPS

    def __init__(self, planned: control.PlannedBlock, step: int, kit: Kit) -> None:
        self.planned = planned
        self.kit = kit
        self.ready = UNKNOWN32  # queue depth before the block
        self.began = self.opened = kit.clock()  # opened: once the loaders were in the state wanted
        self.first = step
        self.counting = False
        self.fetches = 0  # since the block began or, once counting, in the counted part
        self.wait = 0
        self._sources: Dict[int, Source] = {}
        self._epochs: Dict[int, int] = {}
        self._began_at = step
        self._begin = 0
        self._synchronized = False
        self._validation = 0
        self._saves = saves.seen()

    # What a leg decides.

    def admit(self, source: Source) -> None:
        """Brings an iterator's loader into the state this leg wants, before any step of it counts."""

    def give(self, source: Source) -> Optional[Served]:
        """The batch for this fetch, its slot of the epoch used up as the last thing done; None: the loader's own."""
        return None

    def took(self, source: Source, batch: Any, elapsed: int) -> None:
        """A live batch was handed to training."""

    def start(self, steps: int) -> None:
        """The counted part begins, after steps uncounted ones."""

    def close(self) -> None:
        """The block is over, whatever became of it."""

    def settle_fetches(self) -> int:
        """Fetches, of all loaders, before the block counts."""
        return 0

    # What the test calls.

    def serve(self, source: Source) -> Optional[Served]:
        known = self._sources.get(source.loader)
        if known is None:
            self._meet(source)
        elif known is not source or self._epochs[source.loader] != source.epoch:
            raise Void(EPOCH_ENDED)  # persistent workers: the same iterator, reset
        return self.give(source)

    def _meet(self, source: Source) -> None:
        if self.counting:
            raise Void(OTHER_LOOP, "loader %d joined in" % source.loader)
        if not self._sources:
            ready = source.ready()
            self.ready = UNKNOWN32 if ready is None else ready
        self._sources[source.loader] = source
        self._epochs[source.loader] = source.epoch
        self.admit(source)
        self.opened = self.kit.clock()

    def boundary(self, step: int, source: Source) -> None:
        """Begins to count as soon as the block is settled and whole cycles of the workers are left."""
        if self.counting:
            return
        left = self.planned.end - step
        if left < LEAST_STEPS:
            raise Void(TOO_FEW_STEPS)
        if step - self._began_at < self.settle_steps or self.fetches < self.settle_fetches():
            return
        whole = left - left % self._cycle(step)
        if left != whole and whole >= LEAST_STEPS:
            return
        self.start(step - self._began_at)
        self._validation = self.kit.validation_fetches()
        self._saves = saves.seen()
        self._synchronized = source.synchronize()
        self.counting, self.first, self.fetches, self.wait = True, step, 0, 0
        self._begin = self.kit.clock()

    def _cycle(self, step: int) -> int:
        """Steps after which every worker has delivered equally often."""
        workers = self._workers()
        per_step = max(1, round(self.fetches / len(self._sources) / max(1, step - self._began_at)))
        return workers // math.gcd(workers, per_step) if workers else 1

    def _workers(self) -> int:
        return max((workers_of(source) for source in self._sources.values()), default=0)

    def booked(self, elapsed: int) -> None:
        self.fetches += 1
        self.wait += elapsed

    def end(self, step: int, source: Source) -> Counted:
        """Closes the counted part at this boundary."""
        if not self.counting or step - self.first < LEAST_STEPS:
            raise Void(TOO_FEW_STEPS)
        timed = source.synchronize() and self._synchronized
        end = self.kit.clock()
        if self.kit.validation_fetches() != self._validation:
            raise Void(OTHER_LOOP, "validation ran inside the block")
        if not saves.quiet(self._saves):
            raise Void(SAVED)
        return Counted(self._begin, end, self.first, step - self.first, self.fetches, self.wait, timed)


class LiveBlock(Block):
    """Training as it is. Undoes what the cached block before it did to the queue, then passes one cycle of W."""

    settle_steps = 1

    def __init__(self, planned: control.PlannedBlock, step: int, kit: Kit) -> None:
        super().__init__(planned, step, kit)
        self._copies = True
        self._copy_ns = 0

    def settle_fetches(self) -> int:
        return self._workers() * len(self._sources)

    def admit(self, source: Source) -> None:
        depth = self.kit.depths.pop((source.loader, source.epoch), None)
        if depth is not None:
            self.kit.pulls.drain(source, depth)
        self.kit.pool(source).clear()

    def took(self, source: Source, batch: Any, elapsed: int) -> None:
        self.booked(elapsed)
        pool = self.kit.pool(source)
        if self.counting:
            if self._copies:
                self._copies = pool.keep(batch, self.kit.room())
        elif not pool:
            self._copy_ns += self._price(pool, batch)

    def _price(self, pool: ReplayPool, batch: Any) -> int:
        """What copying costs, from one copy in the uncounted part; the first of all is slow for other reasons."""
        clock = self.kit.clock
        begin = clock()
        pool.keep(batch, self.kit.room())
        cost = clock() - begin
        if pool and cost < WARM_UP:
            begin = clock()
            ReplayPool().keep(batch, self.kit.room())
            cost = min(cost, clock() - begin)
        return cost

    def start(self, steps: int) -> None:
        training = self.kit.clock() - self.opened - self._copy_ns
        copying = self._copy_ns * self.fetches / len(self._sources)  # had every batch been copied
        self._copies = copying * COPY_SHARE <= training
        if self._copies:
            for source in self._sources.values():
                self.kit.pool(source).clear()  # the counted batches, and only they

    def end(self, step: int, source: Source) -> Counted:
        counted = super().end(step, source)
        self.kit.pulls.step_ns = (counted.end - counted.begin) // counted.steps
        return counted


class CachedBlock(Block):
    """Batches from memory, workers idle."""

    def admit(self, source: Source) -> None:
        self.kit.note_depth(source)
        self.fill(source)
        self.quieten(source)
        self.kit.pool(source).rewind()

    def quieten(self, source: Source) -> None:
        pulls = self.kit.pulls
        pulls.wait_idle(source)
        if self.planned.flags & control.SOLO_WANTED:
            pulls.solo_builds(source, self._write_solo)

    def fill(self, source: Source) -> None:
        """Tops the pool up from the loader where the live block could not copy enough; pins as the loader does."""
        pool, kit = self.kit.pool(source), self.kit
        deadline = kit.clock() + POOL_PATIENCE
        while len(pool) < LEAST_POOL and kit.clock() < deadline:
            if not pool.keep(kit.pulls.pull(source), kit.room()):
                break
        if not pool:
            raise Void(TOO_LARGE)
        if source.pin_memory:
            pool.pin()

    def pool(self, source: Source) -> ReplayPool:
        return self.kit.pool(source)

    def give(self, source: Source) -> Optional[Served]:
        clock = self.kit.clock
        enter = clock()
        try:
            batch = self.pool(source).serve()
        except LookupError:
            raise Void(NO_BATCH) from None
        served = Served(batch, enter, clock())
        self.kit.pulls.skip(source)
        return served

    def start(self, steps: int) -> None:
        for source in self._sources.values():
            self.pool(source).start()

    def _write_solo(self, loader: int, t: int, batch: int, epoch: int) -> None:
        self.kit.ring.write(layout.pack_solo, layout.SOLO, 0, loader, t, batch, epoch)


class BusyBlock(CachedBlock):
    """Batches from memory while the workers go on: as many are taken out and thrown away as steps are made."""

    def settle_fetches(self) -> int:
        return self._workers() * len(self._sources)

    def quieten(self, source: Source) -> None:
        """The opposite: workers are brought back to work as a live block would find them."""
        self.kit.pulls.drain(source, self.kit.depths.get((source.loader, source.epoch), 0))

    def give(self, source: Source) -> Optional[Served]:
        if source.ready():  # before the cached batch takes its slot: this may find that the epoch is over
            self.kit.pulls.pull(source)
        return super().give(source)
