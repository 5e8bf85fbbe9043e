"""``watch(iterable)``: the same records for loaders that are not PyTorch's. Needs no PyTorch."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from . import fetch as fetching
from . import layout, loaders
from .builds import inside
from .fetch import observing
from .foreign import own
from .layout import UNKNOWN32
from .ring import Ring
from .stacklevel import transparent
from .stream import IN_WATCH, complain, core, failed, now, ring_for, trains
from .track import Track


def watch(
    iterable: Any,
    *,
    workers: Optional[int],
    prefetch: Optional[int],
    length: Optional[int],
    ready: Optional[Callable[[], int]],
    sent: Optional[Callable[[], int]],
    name: Optional[str],
) -> Any:
    from .arming import install

    try:
        if not install(explicit=False):
            return iterable
        if "torch" in sys.modules:
            fetching.use_torch()
        if not inside():
            trains()
        return Watched(iterable, workers, prefetch, length, ready, sent, name)
    except Exception as error:
        failed(IN_WATCH, "watch", error)
        return iterable


class Watched:
    """Looks like the iterable it wraps; its iterators are observed."""

    def __init__(
        self,
        iterable: Any,
        workers: Optional[int],
        prefetch: Optional[int],
        length: Optional[int],
        ready: Optional[Callable[[], int]],
        sent: Optional[Callable[[], int]],
        name: Optional[str],
    ) -> None:
        self._iterable = iterable
        if length is None:
            length = _length(iterable)
        self._shape = (workers, prefetch, length)
        self._ready = ready
        self._sent = sent
        known = loaders.find(iterable)
        if known is None:
            known = loaders.register(iterable, _describe(iterable, workers, prefetch, length, name))
        self._loader = known
        if hasattr(iterable, "__next__") and iter(iterable) is iterable:
            self.__class__ = WatchedIteratorToo

    @transparent
    def __iter__(self) -> Iterator[Any]:
        begin = now(IN_WATCH, "watched iterator")
        inner = iter(self._iterable)
        try:
            if core.off:
                return inner
            return WatchedIterator(inner, self, begin)
        except Exception as error:
            failed(IN_WATCH, "watched iterator", error)
            return inner

    def __len__(self) -> int:
        return len(self._iterable)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_iterable":
            raise AttributeError(name)
        return getattr(self._iterable, name)


class WatchedIteratorToo(Watched):
    """A watched iterator (a generator, say) on which the script may call next() itself."""

    _own: Any = None

    def __iter__(self) -> Iterator[Any]:
        if self._own is None:
            self._own = super().__iter__()
        return self  # type: ignore[return-value]

    @transparent
    def __next__(self) -> Any:
        if self._own is None:
            self._own = super().__iter__()
        return next(self._own)


class WatchedIterator:
    """The iterator that the training loop pulls on."""

    def __init__(self, inner: Iterator[Any], watched: Watched, begin: int) -> None:
        self._inner = inner
        self._datawait = WatchTrack(watched, begin)

    def __iter__(self) -> "WatchedIterator":
        return self

    __next__ = transparent(observing(transparent(lambda self: next(self._inner))))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)


class WatchTrack(Track):
    """An iterator of a watched loader."""

    __slots__ = ("begin", "end", "workers", "prefetch", "asked", "sent", "pin_memory")

    def __init__(self, watched: Watched, begin: int) -> None:
        super().__init__(watched._loader)
        workers, prefetch, length = watched._shape
        self.workers = UNKNOWN32 if workers is None else workers
        self.prefetch = UNKNOWN32 if prefetch is None else prefetch
        self.length = length
        self.builds = workers == 0
        self.pin_memory = False
        self.asked = watched._ready
        self.sent = watched._sent
        if self.asked is not None:
            self.ready = self._ready_now
        self.begin, self.end = begin, core.clock()
        ring = ring_for("main")
        if ring is not None:
            self.join(ring)

    def _ready_now(self, _: Any) -> int:
        try:
            return int(self.asked())  # type: ignore[misc]
        except Exception as error:
            complain(IN_WATCH, "ready()", error)
            self.ready = None
            return UNKNOWN32

    def write_iterator(self, ring: Ring) -> None:
        ring.write(
            layout.pack_iterator, layout.ITERATOR, 0, self.loader.number, self.begin, self.end, self.epoch,
            self.workers, UNKNOWN32 if self.length is None else self.length, self.prefetch,
        )  # fmt: skip


def _length(iterable: Any) -> Optional[int]:
    """Batches of an epoch, where the iterable knows: without it the cached-data test cannot keep an epoch's length."""
    try:
        return len(iterable)
    except Exception as error:
        own(error)
        return None


def _describe(
    iterable: Any, workers: Optional[int], prefetch: Optional[int], length: Optional[int], name: Optional[str]
) -> Dict[str, Any]:
    return {
        "kind": "watch",
        "dataset": "%s.%s" % (type(iterable).__module__, type(iterable).__qualname__),
        "sampler": None,
        "arguments": {
            "num_workers": workers, "prefetch_factor": prefetch, "batch_size": None, "shuffle": None,
            "pin_memory": None, "persistent_workers": None, "drop_last": None, "in_order": None,
            "multiprocessing_context": None,
        },
        "length": length,
        "dataset_length": None,
        "iterable": True,
        "name": name if name is not None else _call_site(),
    }  # fmt: skip


def _call_site() -> Optional[str]:
    """file:line of the call to watch(): generators made anew each epoch at one place are one loader."""
    frame: Any = sys._getframe(1)
    package: Tuple[str, ...] = (__file__.rpartition("/")[0],)
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
    if frame is None:
        return None
    return "%s:%d" % (frame.f_code.co_filename.rpartition("/")[2], frame.f_lineno)
