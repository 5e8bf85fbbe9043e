"""A leg that tries another loader: the same data set and collate_fn, with other arguments or samples kept in memory.

What a block of it takes per step is what the training would take with that loader; a prediction stands beside it. The
training's own loader stays as it is, its workers idle with their queue full, and comes back in the next live block.

Only loaders whose order can be drawn again are tried: a map-style data set, PyTorch's own samplers and batch sampler.
Samples are drawn with a generator of their own, so the script's random state is not touched, and no sampler of the
script is asked for anything. The trial's workers are not observed: they are no part of the loader whose costs are
reported.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import warnings
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from . import control, samplers
from .block import Block, Kit, Served
from .pulls import UNAVAILABLE, Source, Void
from .stream import core

MOST_WORKERS = 1024


class Arguments(NamedTuple):
    """What is tried, as the plan says it in 32 bits."""

    workers: int
    prefetch: int  # batches per worker
    memoised: bool  # every worker builds one batch, and gives that from memory ever after

    @classmethod
    def of(cls, word: int) -> "Arguments":
        return cls(min(word & 0xFFFF, MOST_WORKERS), max(1, word >> 16 & 0xFF), bool(word >> 24 & 1))


class TrialBlock(Block):
    settle_steps = 1

    def __init__(self, planned: control.PlannedBlock, step: int, kit: Kit) -> None:
        super().__init__(planned, step, kit)
        self._arguments = Arguments.of(planned.arguments)
        self._trials: Dict[int, Trial] = {}

    def admit(self, source: Source) -> None:
        self.kit.note_depth(source)
        self.kit.pulls.wait_idle(source)
        if self._trials:
            raise Void(UNAVAILABLE, "training reads from several loaders")
        self._trials[source.loader] = Trial(source, self._arguments)

    def settle_fetches(self) -> int:
        """Two cycles: the first batches are built while nobody consumes, or are the ones that memory is filled with."""
        return 2 * max(1, self._arguments.workers)

    def _workers(self) -> int:
        return self._arguments.workers

    def give(self, source: Source) -> Optional[Served]:
        clock = self.kit.clock
        enter = clock()
        try:
            batch = next(self._trials[source.loader])
        except Exception as error:
            raise Void(UNAVAILABLE, "%s: %s" % (type(error).__name__, error)) from error
        served = Served(batch, enter, clock())
        self.kit.pulls.skip(source)
        return served

    def start(self, steps: int) -> None:
        self.kit.ring.note({"note": "trial", "block": self.planned.number, **self._arguments._asdict()})

    def close(self) -> None:
        for trial in self._trials.values():
            trial.close()
        self._trials = {}


class Trial:
    """An iterator over the training's data set with other arguments."""

    def __init__(self, source: Source, arguments: Arguments) -> None:
        live = source.iterator()
        if live is None or not hasattr(live, "_dataset_kind"):
            raise Void(UNAVAILABLE, "only PyTorch's own loaders can be tried with other arguments")
        batches = _batches(live)
        dataset = live._dataset
        if arguments.memoised:
            dataset = Memo(dataset)
            batches = _repeated(batches, max(1, arguments.workers))
        try:
            with unobserved():
                self._iterator = iter(_loader(live, dataset, _Endless(batches), arguments))
        except Exception as error:
            raise Void(UNAVAILABLE, "%s: %s" % (type(error).__name__, error)) from error

    def __next__(self) -> Any:
        return next(self._iterator)

    def close(self) -> None:
        shutdown: Optional[Callable[[], None]] = getattr(self._iterator, "_shutdown_workers", None)
        if shutdown is not None:
            shutdown()


def _loader(live: Any, dataset: Any, batches: Any, arguments: Arguments) -> Any:
    torch = sys.modules["torch"]
    options: Dict[str, Any] = {}
    if arguments.workers:
        options.update(prefetch_factor=arguments.prefetch, worker_init_fn=getattr(live, "_worker_init_fn", None))
        workers = getattr(live, "_workers", None)
        method = getattr(workers[0], "_start_method", None) if workers else None
        options.update(multiprocessing_context=method, timeout=getattr(live, "_timeout", 0))
    return torch.utils.data.DataLoader(
        dataset, batch_sampler=batches, num_workers=arguments.workers, collate_fn=live._collate_fn,
        pin_memory=bool(live._pin_memory), generator=torch.Generator().manual_seed(0), **options,
    )  # fmt: skip


def _batches(live: Any) -> Iterator[List[int]]:
    """Batches of indexes like the loader's own: of its size, in order or shuffled as its sampler does."""
    if not live._auto_collation or live._dataset_kind != 0:  # _DatasetKind.Map
        raise Void(UNAVAILABLE, "the order of a stream cannot be drawn again")
    sampled = live._index_sampler
    inner = samplers.attributes(sampled)
    size: Any = inner.get("batch_size")
    sampler: Any = inner.get("sampler")
    kinds = sys.modules["torch"].utils.data
    if type(sampled) is not kinds.BatchSampler or type(size) is not int:
        raise Void(UNAVAILABLE, "the loader has a batch sampler of its own")
    if type(sampler) is kinds.SequentialSampler:
        return _cut(_endlessly(range(len(live._dataset)), shuffled=False), size)
    if type(sampler) is kinds.RandomSampler:
        return _cut(_endlessly(range(len(live._dataset)), shuffled=True), size)
    if type(sampler) is kinds.SubsetRandomSampler:
        return _cut(_endlessly(sampler.indices, shuffled=True), size)
    if type(sampler) is kinds.DistributedSampler:
        mine = range(sampler.rank, len(live._dataset), sampler.num_replicas)
        return _cut(_endlessly(mine, shuffled=bool(sampler.shuffle)), size)
    raise Void(UNAVAILABLE, "the loader has a sampler of its own, %s" % type(sampler).__name__)


def _endlessly(indexes: Sequence[int], shuffled: bool) -> Iterator[int]:
    """Epoch after epoch; in order from somewhere in the middle, which no earlier block has just read."""
    if not len(indexes):
        raise Void(UNAVAILABLE, "the data set is empty")
    chance = random.Random()
    first = 0 if shuffled else chance.randrange(len(indexes))
    while True:
        order = list(indexes) if shuffled else indexes
        if shuffled:
            chance.shuffle(order)  # type: ignore[arg-type]
        for at in range(first, len(order)):
            yield order[at]
        first = 0


def _cut(indexes: Iterator[int], size: int) -> Iterator[List[int]]:
    while True:
        yield [next(indexes) for _ in range(size)]


def _repeated(batches: Iterator[List[int]], workers: int) -> Iterator[List[int]]:
    """One batch for each worker, over and over: batch b goes to worker b mod W."""
    few = [next(batches) for _ in range(workers)]
    while True:
        yield from few


class _Endless:
    """A batch sampler over batches that are drawn already."""

    def __init__(self, batches: Iterator[List[int]]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[List[int]]:
        return self._batches


class Memo:
    """A data set whose samples are built once in each worker: what preparing them once would leave, at best."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._kept: Dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._kept:
            self._kept[index] = self._dataset[index]
        return self._kept[index]

    def __getattr__(self, name: str) -> Any:
        if name in ("_dataset", "_kept"):  # being unpickled
            raise AttributeError(name)
        if name == "__getitems__":
            return _whole_batches(self, self._dataset.__getitems__)
        return getattr(self._dataset, name)


def _whole_batches(memo: Memo, build: Callable[[List[Any]], List[Any]]) -> Callable[[List[Any]], List[Any]]:
    """The newer way of a data set to give a batch at once (PyTorch 2)."""

    def __getitems__(indexes: List[Any]) -> List[Any]:
        key = tuple(indexes)
        if key not in memo._kept:
            memo._kept[key] = build(indexes)
        return list(memo._kept[key])

    return __getitems__


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """Loaders made in here are nobody's: they have no track, and their workers no ring, however they are started."""
    off, told = core.off, os.environ.get("DATAWAIT_HOOK")
    try:
        core.off = True
        os.environ["DATAWAIT_HOOK"] = "off"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's advice on workers, which is for the script's own loaders
            yield
    finally:
        core.off = off
        if told is None:
            os.environ.pop("DATAWAIT_HOOK", None)
        else:
            os.environ["DATAWAIT_HOOK"] = told
