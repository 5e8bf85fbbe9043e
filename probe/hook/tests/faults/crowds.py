"""Surroundings in which there is much of something: loaders, threads, workers, fetches, forks. See surroundings.py."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from typing import Any, List

from trainings import Numbers, Training, child, stand_in, surrounding

MANY = 500 if os.environ.get("DATAWAIT_FAULTS") == "all" else 32


def told_once(items: List[Any]) -> Any:
    """Batches that cost nothing."""
    return items


@surrounding
def ten_thousand_loaders(folder: str) -> Any:
    """All alive at once; the last one is observed like the first."""
    train = Training()
    data = [1, 2]
    loaders = []
    got = 0
    for _ in range(10_000):
        loader = train.torch.utils.data.DataLoader(data, batch_size=2, collate_fn=told_once)
        loaders.append(loader)
        got += sum(map(sum, loader))
    train.epoch(train.loader())
    return got, train.end()


@surrounding
def sixty_four_threads(folder: str) -> Any:
    """Each fetches from a loader of its own, while the main thread trains."""
    train = Training()
    done: List[bool] = []

    def fetch() -> None:
        done.append([i.tolist() for _, i in train.loader(40)] == [list(range(n, n + 4)) for n in range(0, 40, 4)])

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=fetch) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(switch)
    train.torch.manual_seed(7)  # in whatever order they drew
    train.epoch(train.loader())
    return done.count(True), train.end()


@surrounding
def many_short_lived_workers(folder: str) -> Any:
    """With no agent to remove the rings of those that ended, the spool fills up to its share and no further."""
    stand_in("datawait.place", "MOST_BYTES", 3 << 20)
    train = Training()

    def builds() -> None:
        assert [i.tolist() for _, i in train.loader(8)] == [[0, 1, 2, 3], [4, 5, 6, 7]]

    statuses = [child(builds) for _ in range(MANY)]
    train.epoch(train.loader())
    return set(statuses) == {0}, train.end()


@surrounding
def what_the_script_drops_is_gone(folder: str) -> Any:
    """Loader, data set, iterator and batch live no longer for being watched."""
    train = Training()
    alive = []
    for workers in (0, 1):
        dataset = Numbers(8)
        loader = train.loader(dataset=dataset, workers=workers)
        it = iter(loader)
        batch = next(it)[0]
        references = [weakref.ref(thing) for thing in (dataset, loader, it, batch)]
        del dataset, loader, it, batch
        alive.append([reference() is not None for reference in references])
        gc.collect()
        alive.append([reference() is not None for reference in references])
    return alive


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@surrounding
def a_hundred_thousand_fetches(folder: str) -> Any:
    """Memory does not grow with them. The first touch every page of the ring."""
    stand_in("datawait.layout", "MAIN_CAPACITY", 16384)
    train = Training()

    loader = train.torch.utils.data.DataLoader(range(10_000), batch_size=None, sampler=range(10_000))
    for _ in range(2):
        for _i in loader:
            pass
    gc.collect()
    before = resident()
    for _ in range(10):
        for _i in loader:
            pass
    gc.collect()
    return resident() - before < 1 << 20


@surrounding
def forks_in_mid_record(folder: str) -> Any:
    """A child is made while a record is being written, and trains on by itself."""
    train = Training()

    def trains() -> None:
        inner = Training()
        inner.epoch(inner.loader(16))
        assert len(inner.diary) == 8

    ring = sys.modules["datawait.ring"].Ring  # type: ignore[attr-defined]
    tell = ring._tell
    statuses: List[int] = []

    def told(self: Any, training: Any) -> None:
        ring._tell = tell
        assert self.writing
        statuses.append(child(trains))
        tell(self, training)

    for count in range(1, 4):
        ring._tell = told
        train.epoch(train.loader(12))
        if len(statuses) < count and "DATAWAIT_SPOOL" not in os.environ:  # nothing is recorded
            statuses.append(child(trains))
    ring._tell = tell
    return statuses, train.end()
