"""Batches the cached-data test takes out of a loader without handing them to training, and waiting for its workers.

PyTorch keeps W·P batches requested at all times and requests one more for each one taken. So a loader that nobody
asks fills up and its workers fall idle; the first steps after that find a full queue and show no wait at all. A fixed
number of discarded steps does not undo this (W 8, P 2, build 180 ms, compute 20 ms: true gain 11 %, seen 0); taking
ready batches out until the queue is as deep as it was before does.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Protocol

from . import layout

SECOND = 1_000_000_000
SOLO_BUILDS = 4
SHORTEST_IDLE_WAIT = 10 * SECOND
LONGEST_IDLE_WAIT = 120 * SECOND

# Reasons of a void block (SPEC §2, BLOCK)
EPOCH_ENDED, TOO_FEW_STEPS, TOO_LARGE, UNAVAILABLE, ENDED_EARLY, NEVER_IDLE, NO_BATCH, OTHER_LOOP, SAVED = range(1, 10)


class Source(Protocol):
    """One iterator of a training loader, as the fetch core hands it to the test."""

    loader: int
    workers: int
    prefetch: Optional[int]
    length: Optional[int]
    batch_index: int
    epoch: int
    pin_memory: bool

    def iterator(self) -> Any: ...
    def live_next(self, flags: int) -> Any: ...
    def record(self, enter: int, exit: int, flags: int) -> None: ...
    def skip_slot(self) -> None: ...
    def ready(self) -> Optional[int]: ...
    def outstanding(self) -> Optional[int]: ...
    def synchronize(self) -> bool: ...
    def to_device(self, batch: Any) -> Any: ...
    def last_sent(self) -> Optional[int]: ...


class Void(Exception):
    """The running block cannot be used."""

    def __init__(self, reason: int, why: Optional[str] = None) -> None:
        super().__init__(reason, why)
        self.reason = reason
        self.why = why


class LoaderRaised(Exception):
    """The script's own loader raised while the test took a batch: the script is to see that error."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def workers_of(source: Source) -> int:
    """Workers of a loader, 0 where their number is unknown."""
    return 0 if source.workers == layout.UNKNOWN32 else source.workers


class Taken:
    """What the test did to one epoch of one loader."""

    __slots__ = ("epoch", "pulled", "skipped")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.pulled = 0  # batches taken out that no step got, and not made up for yet
        self.skipped = 0  # slots used without the loader


class Pulls:
    """Takes batches out of loaders, and keeps count of them so that an epoch keeps its length."""

    def __init__(self, clock: Callable[[], int], sleep: Callable[[float], None]) -> None:
        self._clock = clock
        self._sleep = sleep
        self._taken: Dict[int, Taken] = {}
        self.step_ns = 0  # mean step of the last live block, 0 before there was one

    def taken(self, source: Source) -> Taken:
        taken = self._taken.get(source.loader)
        if taken is None or taken.epoch != source.epoch:
            taken = self._taken[source.loader] = Taken(source.epoch)
        return taken

    def pull(self, source: Source) -> Any:
        """One real batch that no step will train on."""
        taken = self.taken(source)
        try:
            batch = source.live_next(layout.DISCARDED)
        except StopIteration:
            raise Void(EPOCH_ENDED) from None
        except Exception as error:
            raise LoaderRaised(error) from error
        taken.pulled += 1
        return batch

    def skip(self, source: Source) -> None:
        """Uses up one slot of the epoch without the loader. Raises StopIteration when there is none left."""
        taken = self.taken(source)
        source.skip_slot()
        taken.skipped += 1

    def over(self, source: Source) -> bool:
        """Whether the epoch has had all its batches though the loader, which was spared some, has more."""
        full = source.length is not None and source.batch_index >= source.length
        return full and self.taken(source).skipped > 0

    def lacks(self, source: Source) -> bool:
        """Whether the loader is at its end and the epoch is not. Ranks take out different numbers of batches, and
        one whose epoch ended before the others' would leave them waiting in a collective. Where the length is
        unknown as many are made up for as were taken, which is the same total on every rank."""
        if self.taken(source).pulled <= 0:
            return False
        return source.length is None or source.batch_index < source.length

    def make_up(self, source: Source) -> None:
        taken = self.taken(source)
        self.skip(source)
        taken.pulled -= 1

    def drain(self, source: Source, depth: int) -> None:
        """Throws away batches that lie ready beyond depth. Bounded: a fast loader refills while it is drained."""
        most = workers_of(source) * (source.prefetch or 2) or source.ready() or 0
        for _ in range(most):
            if (source.ready() or 0) <= depth:
                return
            self.pull(source)

    def wait_idle(self, source: Source) -> None:
        """Waits until all requested batches are built, so that no worker competes with the training steps."""
        if source.workers == 0:
            return
        deadline = self._clock() + self._patience(source)
        seen, since = -1, self._clock()
        while True:
            now, ready, outstanding = self._clock(), source.ready(), source.outstanding()
            if ready is None:
                raise Void(NEVER_IDLE, "queue depth unknown")
            if ready != seen:
                seen, since = ready, now
            if ready >= outstanding if outstanding is not None else now - since >= self._stillness(source):
                return
            if now > deadline:
                raise Void(NEVER_IDLE, "%d of %s batches built" % (ready, outstanding))
            self._sleep(0.001)

    def _stillness(self, source: Source) -> int:
        """A loader that does not tell what it was asked for is idle when its queue has not grown for three builds."""
        return max(SECOND // 5, 3 * self.step_ns * workers_of(source))

    def _patience(self, source: Source) -> int:
        """An empty queue is full again after P builds; where loading is the limit a build takes W steps."""
        refill = self.step_ns * workers_of(source) * (source.prefetch or 2)
        return min(LONGEST_IDLE_WAIT, max(SHORTEST_IDLE_WAIT, 2 * refill))

    def solo_builds(self, source: Source, write: Callable[[int, int, int, int], None]) -> None:
        """Asks the full, idle loader for one batch at a time: what a build takes when no other worker runs."""
        for _ in range(SOLO_BUILDS if workers_of(source) else 0):
            before = source.last_sent()
            self.pull(source)
            asked = source.last_sent()
            if asked is None or asked == before:  # the epoch has nothing more to request
                return
            write(source.loader, self._clock(), asked, source.epoch)
            self.wait_idle(source)
