"""What the cached-data test sees of one iterator, and how it takes over a fetch (see cachedtest.py)."""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any, Callable, Optional

from . import fetch as fetching
from .layout import CACHED, DISCARDED, END, UNKNOWN32
from .ring import Ring
from .stream import IN_TEST, complain, core
from .track import Track


def begin_test(ring: Ring) -> bool:
    """Makes the cached-data test of this process; False where it is not part of the package."""
    try:
        from .cachedtest import CachedTest

        core.test = CachedTest(ring, os.path.dirname(ring.path))  # the control page lies beside the rings
        return True
    except Exception as error:
        complain(IN_TEST, "starting the cached-data test", error)
        return False


def source_of(track: Track, call: Callable[[Any], Any], it: Any) -> "Source":
    """The Source of an iterator, one per iterator."""
    source = track.source
    if source is None:
        kind = TorchSource if hasattr(it, "_num_yielded") else Source
        source = track.source = kind(track, call, it)
    return source


class Source:
    """An iterator as the cached-data test uses it. Holds it weakly: dropping an iterator stops its workers."""

    def __init__(self, track: Track, call: Callable[[Any], Any], it: Any) -> None:
        self.track = track
        self.call = call
        self._epoch = track.epoch
        self._shift = 0  # slots used without the loader, less batches it gave that used none
        try:
            self._it: Callable[[], Any] = weakref.ref(it)
        except TypeError:  # a generator or list iterator owns no workers
            self._it = lambda: it

    @property
    def loader(self) -> int:
        return self.track.loader.number

    @property
    def workers(self) -> int:
        """Workers of the loader; 0 when it has none, UNKNOWN32 when it did not say."""
        return int(getattr(self.track, "workers", UNKNOWN32))

    @property
    def prefetch(self) -> Optional[int]:
        prefetch = getattr(self.track, "prefetch", UNKNOWN32)
        return None if prefetch == UNKNOWN32 else int(prefetch)

    @property
    def length(self) -> Optional[int]:
        return self.track.length

    @property
    def batch_index(self) -> int:
        """Slots of the epoch used so far: batches training got, from the loader or not."""
        return self.track.batch + self._shift_by(0)

    def _shift_by(self, slots: int) -> int:
        if self._epoch != self.track.epoch:  # persistent workers: the same iterator, reset
            self._epoch, self._shift = self.track.epoch, 0
        self._shift += slots
        self.track.loader.totals.shift = self._shift
        return self._shift

    @property
    def epoch(self) -> int:
        return self.track.epoch

    @property
    def pin_memory(self) -> bool:
        return bool(getattr(self.track, "pin_memory", False))

    def iterator(self) -> Any:
        """The script's iterator itself; None if it is gone."""
        return self._it()

    def live_next(self, flags: int = 0) -> Any:
        """One real next on the loader, recorded with these further flags. A discarded batch uses no slot."""
        shift = -1 if flags & DISCARDED else 0
        self._shift_by(shift)  # before it: once the loader has given a batch, nothing of ours may fail
        try:
            return fetching.fetch(self.track, self.call, self._it(), flags, True)
        except BaseException:
            self._shift_by(-shift)
            raise

    def record(self, enter: int, leave: int, flags: int = CACHED, ready: int = UNKNOWN32) -> int:
        """Records a FETCH that did not touch the loader: the batch of the slot skipped last, or the epoch's end."""
        index = self.batch_index if flags & END else self.batch_index - 1
        return fetching.record(self.track, flags, enter, leave, index, ready)

    def skip_slot(self) -> None:
        """Uses up one slot of the epoch as if the loader had yielded; StopIteration when none is left."""
        if self.track.length is not None and self.batch_index >= self.track.length:
            raise StopIteration
        self._shift_by(1)

    def ready(self) -> Optional[int]:
        """Batches built and waiting, None if unknown."""
        if self.track.ready is None:
            return None
        ready = self.track.ready(self._it())
        return None if ready == UNKNOWN32 else ready

    def outstanding(self) -> Optional[int]:
        """Batches asked for and not handed out, None if unknown."""
        sent = self.last_sent()
        return None if sent is None else sent + 1 - self.track.batch

    def last_sent(self) -> Optional[int]:
        """Index of the batch asked for last, None if unknown."""
        sent = getattr(self.track, "sent", None)  # what watch() was told
        return None if sent is None else int(sent())

    def device(self) -> Any:
        """The training device: a torch.device, an emulated Gpu, or None."""
        if _emulated() is not None:
            return _emulated()
        clock = core.device
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return None
        index = clock.device if clock is not None else torch.cuda.current_device()
        return torch.device("cuda", index)

    def synchronize(self) -> bool:
        """Waits for the device; False when there is none."""
        gpu, device = _emulated(), None
        if gpu is not None:
            gpu.synchronize()
        else:
            device = self.device()
            if device is None:
                return False
            sys.modules["torch"].cuda.synchronize(device)
        if core.device is not None and core.ring is not None:
            core.device.read_all(core.ring)
        return True

    def to_device(self, batch: Any) -> Any:
        """The batch with its tensors on the training device, in fresh containers; raises when there is none."""
        device = self.device()
        if device is None:
            raise RuntimeError("no device to hold the batch")
        if _emulated() is not None:
            return batch
        return _moved(batch, device)


class TorchSource(Source):
    """An iterator of a DataLoader."""

    def outstanding(self) -> Optional[int]:
        """``_tasks_outstanding`` leaves out what has arrived before its turn; ready() does not."""
        tasks = getattr(self._it(), "_task_info", None)
        return None if tasks is None else len(tasks)

    def last_sent(self) -> Optional[int]:
        sent = getattr(self._it(), "_send_idx", None)
        return None if sent is None else int(sent) - 1


def _emulated() -> Any:
    module = sys.modules.get("datawait.emulated")
    return module.current() if module is not None else None


def _moved(item: Any, device: Any) -> Any:
    if isinstance(item, sys.modules["torch"].Tensor):
        return item.to(device, non_blocking=True)
    if isinstance(item, dict):
        return type(item)({key: _moved(value, device) for key, value in item.items()})
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*(_moved(part, device) for part in item))
    if isinstance(item, (list, tuple)):
        return type(item)(_moved(part, device) for part in item)
    return item
