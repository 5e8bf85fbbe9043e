"""The worker side of PyTorch's loaders: wraps ``_worker_loop`` and looks over its two queues.

The loop itself is PyTorch's, called with a proxy for the index queue (a batch is asked for) and one for the result
queue (it is complete). Control messages pass through. The wrapper is pickled by name where the child can find it
and otherwise brings the hook along, so spawn and forkserver children observe as forked ones do.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import meter, stacks
from .calls import LOOPS
from .foreign import own
from .layout import BATCH, RAISED, UNKNOWN16, UNKNOWN32
from .meter import REST, TRIVIAL, Meter
from .reads import Reading, put
from .ring import Ring
from .stacklevel import transparent
from .stream import IN_ITERATOR, IN_WORKER, complain, configure, core, failed, finish, now, ring_for
from .totals import totals_slot
from .transforms import timings

NAME = "_worker_loop"
CONTROL = "torch.utils.data._utils.worker"  # where PyTorch's messages between worker and iterator are at home
ERRORS = "torch._utils"  # and where ExceptionWrapper is
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def patch(module: Any) -> None:
    """Replaces the module's ``_worker_loop``, which iterators look up when they start a worker."""
    original = getattr(module, NAME, None)
    if original is None:
        complain(IN_WORKER, "patching " + module.__name__, AttributeError("no %s: workers are unseen" % NAME))
    elif not isinstance(original, WorkerLoop):
        setattr(module, NAME, WorkerLoop(original, module.__name__))


class WorkerLoop:
    """Runs PyTorch's worker loop with its queues looked over."""

    def __init__(self, original: Callable[..., None], module: str) -> None:
        functools.update_wrapper(self, original)
        self.__module__ = module  # where the name NAME leads to this object: pickle looks there
        self.original = original
        self.module = module

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        watched: Optional[Tuple[Tuple[Any, ...], Dict[str, Any]]] = None
        try:
            watched = self.watch(args, kwargs)
        except Exception as error:
            failed(IN_WORKER, "worker start", error)
        try:
            if watched is None:
                self.original(*args, **kwargs)
            else:
                self.original(*watched[0], **watched[1])
        finally:
            _end()

    def watch(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Tuple[Tuple[Any, ...], Dict[str, Any]]]:
        """The same arguments with proxies in them; None when the hook is off."""
        if core.off:
            return None
        bound = inspect.signature(self.original).bind(*args, **kwargs)
        values = bound.arguments
        if "index_queue" not in values or "data_queue" not in values:
            raise TypeError("a worker loop with other arguments than are known")
        core.role = "worker"
        ring = ring_for("worker")
        if ring is None:
            return None
        meter.audit()
        observed = Batches(ring, values.get("worker_id"), self.module.startswith("torchdata"))
        observed.batched = bool(values.get("auto_collation", True))
        if callable(values.get("collate_fn")):
            values["collate_fn"] = TimedCollate(values["collate_fn"], observed)
            observed.collates = True
        observed.sampled = stacks.wanted("worker")
        if observed.sampled:
            timings.begin(observed.builds_for)
        values["index_queue"] = IndexQueue(values["index_queue"], observed)
        values["data_queue"] = DataQueue(values["data_queue"], observed)
        return bound.args, bound.kwargs

    def __reduce__(self) -> Any:
        # The child of a spawn knows nothing of us unless sitecustomize ran there: then it has to be told.
        try:
            if core.folder is not None and any(map(_is_root, sys.path)):
                return _in_child, (core.folder, self.module)
        except Exception as error:
            failed(IN_ITERATOR, "telling a spawned worker", error)
        return NAME  # pickled by reference: the child's own, observed or not


LOOPS.append(WorkerLoop.__call__.__code__)


def _is_root(entry: str) -> bool:
    """Whether an entry of sys.path is where this package lies."""
    try:
        return os.path.abspath(entry) == ROOT
    except OSError as error:  # a relative one, and the working folder is gone
        own(error)
        return False


def _in_child(folder: str, module: str) -> Any:
    """Unpickles to the worker loop of this process, with the hook installed if it may be."""
    import importlib

    loop = importlib.import_module(module)
    try:
        if os.environ.get("DATAWAIT_HOOK") != "off":
            if core.folder is None:
                configure(folder)
            from .arming import arm

            arm()
            patch(loop)
    except Exception as error:
        failed(IN_WORKER, "spawned worker", error)
    return getattr(loop, NAME)


def _end() -> None:
    try:
        finish(os.getpid())
    except Exception:
        pass  # whatever ended the worker is for its parent to see


class Batches:
    """What one worker builds, batch by batch, from the moment its index arrives."""

    __slots__ = ("ring", "worker", "meter", "collates", "received", "begin", "index", "samples", "batched",
                 "measured", "reads", "resumes", "built", "first", "end", "stateful",
                 "sampled")  # fmt: skip

    def __init__(self, ring: Ring, worker: Any, stateful: bool) -> None:
        self.ring = ring
        self.stateful = stateful  # torchdata: indexes come as (index, snapshot), batches as (data, worker, state)
        self.worker = worker if isinstance(worker, int) else UNKNOWN32
        self.meter = Meter(core.cpu_clock)
        self.collates = False
        self.received = self.begin = self.end = 0
        self.index: Optional[int] = None
        self.samples = UNKNOWN32
        self.batched = True  # what is asked for are the samples of a batch, not one that stands for itself
        self.measured: Optional[Tuple[Any, ...]] = None
        self.reads: Optional[List[Reading]] = None  # sampled while it was built
        self.resumes = 0
        self.built = 0
        self.first = 0
        self.sampled = False  # stacks are looked at, from the second batch on

    def asked(self, message: Any) -> None:
        """A message came out of the index queue."""
        received = core.clock()
        self.index = None
        if type(message) is not tuple or len(message) != 2 or not isinstance(message[0], int):
            return  # None (stop) or _ResumeIteration
        self.index = message[0]
        index = message[1][0] if self.stateful else message[1]
        self.samples = _length(index) if self.batched else 1
        self.received = received
        counters = self.meter
        counters.open = False
        if received >= counters.due:
            counters.begin(received)
        if meter.reads is not None:
            meter.reads.begin()
        self.begin = core.clock()

    def builds_for(self) -> Optional[int]:
        """What a sample of this moment belongs to: the worker's loader, which its parent knows, or no batch."""
        return None if self.index is None else UNKNOWN16

    def complete(self, message: Any) -> bool:
        """A message is about to go into the result queue; True if it is the batch asked for last."""
        end = core.clock()
        if type(message) is not tuple or len(message) != 2:
            return False
        if not isinstance(message[0], int):
            if type(message[0]).__module__ == CONTROL:  # _ResumeIteration: a persistent worker begins a new epoch
                self.resumes += 1
            return False
        payload = message[1][0] if self.stateful else message[1]
        if message[0] != self.index or type(payload).__module__ == CONTROL:  # _IterableDatasetStopIteration
            return False
        self.end = end
        self.reads = None if meter.reads is None else meter.reads.end()
        self.measured = None
        if self.meter.open:
            self.measured = self.meter.end()
            if end - self.begin < TRIVIAL:
                self.meter.due = end + REST
        return True

    def sent(self, message: Any, sent: int) -> None:
        """The batch is in the result queue: writes its records."""
        ring = self.ring
        payload = message[1][0] if self.stateful else message[1]
        failed_there = type(payload).__module__ == ERRORS
        fields = (self.received, self.begin, self.end, sent, self.index, self.resumes, self.samples, self.worker)
        ring.pending.append((BATCH, RAISED if failed_there else 0, UNKNOWN16, *fields))
        if self.measured is not None:
            self.meter.write(ring, UNKNOWN16, self.measured, payload, self.collates)
            self.measured = None
        if self.reads:
            put(ring, UNKNOWN16, self.reads)
            self.reads = None
        self.built += 1
        if self.built == 1 and self.sampled:
            core.sampler = stacks.start(ring, self.builds_for)
        longs = ring.longs
        at = totals_slot(UNKNOWN16)
        longs[at + 5] = self.built
        if not self.first:
            longs[at + 6] = self.first = self.received
        self.index = None
        if sent >= ring.flush_at or len(ring.pending) > 60:
            ring.flush(sent)


def _length(index: Any) -> int:
    """Samples asked for, where telling it runs no code of the script."""
    return len(index) if isinstance(index, (list, tuple)) else UNKNOWN32


class IndexQueue:
    """The index queue: whatever comes out is looked at on its way to the loop."""

    def __init__(self, inner: Any, batches: Batches) -> None:
        self._inner = inner
        self._batches = batches

    def get(self, *args: Any, **kwargs: Any) -> Any:
        message = self._inner.get(*args, **kwargs)
        if not core.off:
            try:
                self._batches.asked(message)
            except Exception as error:
                failed(IN_WORKER, "index received", error)
        return message

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class DataQueue:
    """The result queue: a batch is complete when the loop puts it here."""

    def __init__(self, inner: Any, batches: Batches) -> None:
        self._inner = inner
        self._batches = batches

    def put(self, message: Any, *args: Any, **kwargs: Any) -> None:
        ours = False
        if not core.off:
            try:
                ours = self._batches.complete(message)
            except Exception as error:
                failed(IN_WORKER, "batch complete", error)
        self._inner.put(message, *args, **kwargs)
        if ours:
            try:
                self._batches.sent(message, core.clock())
            except Exception as error:
                failed(IN_WORKER, "batch sent", error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class TimedCollate:
    """collate_fn with its wall time added up. It sees how many samples there were: the last batch of a stream holds
    fewer than were asked for."""

    def __init__(self, inner: Callable[[Any], Any], batches: Batches) -> None:
        self._inner = inner
        self._batches = batches
        self._meter = batches.meter

    @transparent
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        begin = now(IN_WORKER, "collate")
        if self._batches.batched and len(args) == 1 and type(args[0]) is list:
            self._batches.samples = len(args[0])
        try:
            return self._inner(*args, **kwargs)
        finally:
            self._meter.collate += now(IN_WORKER, "collate") - begin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
