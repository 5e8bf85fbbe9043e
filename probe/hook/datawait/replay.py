"""Batches in private memory, served again and again to the training script as if a loader had delivered them.

A batch is taken apart the way a worker's queue does it: pickled, with every tensor and array set aside as a *leaf*.
Unpickling builds fresh containers around the same leaves, so a script that pops a key or appends to a list spoils
only its own copy, and copying 150 MB per step is avoided. A tensor is handed out as a view: it shares memory and
version counter with the private one but not its shape, so an ``unsqueeze_`` in the script stays there, and writing
into it is seen in ``_version``. Arrays have no version; large ones are handed out as views and compared by a
fingerprint of three places, small ones are copied each time.

Not seen: writes through ``tensor.data``, ``tensor.numpy()`` or a raw pointer, and writes into a large array beside
those three places. They change what is replayed, not how long it takes to load.

What cannot be pickled is deep-copied for each serving; what cannot even be copied is served itself.
"""

from __future__ import annotations

import copy
import io
import pickle
import sys
import zlib
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import foreign

SMALL_ARRAY = 64 * 1024  # bytes; a copy of this costs less than the step's own noise (about 5 µs)
FINGERPRINT = 1024  # bytes looked at in each of three places

_PLAIN = frozenset((str, int, float, bool, type(None), bytes, dict, list, tuple, complex))


class TooLarge(Exception):
    """The batch does not fit into what is left of the cap."""


def _torch() -> Any:
    return sys.modules["torch"]


def version(tensor: Any) -> Optional[int]:
    """How often a tensor's memory was written to in place; None where it is not tracked (inference tensors)."""
    try:
        return int(tensor._version)
    except Exception as error:
        foreign.own(error)
        return None


def fingerprint(array: Any) -> Optional[Tuple[int, ...]]:
    """Checksums of the beginning, the middle and the end of an array's memory; None where there is no such thing."""
    try:
        memory = array.ravel(order="K").view("u1")
    except (TypeError, ValueError):
        return None
    middle, last = len(memory) // 2, max(0, len(memory) - FINGERPRINT)
    return tuple(zlib.crc32(memory[at : at + FINGERPRINT]) for at in (0, middle, last))


class TensorLeaf:
    """One tensor. ``master`` is private; the script only ever gets views or clones of it."""

    __slots__ = ("master", "version", "shared", "grad", "pinned")

    def __init__(self, tensor: Any, own: bool) -> None:
        detached = tensor.detach()
        self.master = detached if own else detached.clone()
        self.version = version(self.master)
        # A subclass, a sparse or an inference tensor may not have views or a version: those are cloned each time.
        self.shared = type(tensor) is _torch().Tensor and self.version is not None and tensor.layout == _torch().strided
        self.grad = bool(tensor.requires_grad)
        self.pinned = False

    def pin(self) -> None:
        self.master = self.master.pin_memory()
        self.version = version(self.master)
        self.pinned = True

    def serve(self, fresh: bool) -> Any:
        if self.shared and not fresh:
            tensor = self.master.view_as(self.master)
        else:
            tensor = self.master.clone()
            if self.pinned:
                tensor = tensor.pin_memory()
        return tensor.requires_grad_() if self.grad else tensor

    def moved(self) -> bool:
        return version(self.master) != self.version

    stamp = staticmethod(version)


class ArrayLeaf:
    """One numpy array."""

    __slots__ = ("master", "mark")

    def __init__(self, array: Any, own: bool) -> None:
        self.master = array if own else array.copy(order="K")
        self.mark = fingerprint(self.master)

    def pin(self) -> None:
        """Arrays are never pinned, by PyTorch neither."""

    def serve(self, fresh: bool) -> Any:
        return self.master.copy(order="K") if fresh or self.master.nbytes <= SMALL_ARRAY else self.master.view()

    def moved(self) -> bool:
        return self.master.nbytes > SMALL_ARRAY and fingerprint(self.master) != self.mark

    stamp = staticmethod(fingerprint)


class _Freezer(pickle.Pickler):
    """Pickles a batch around its leaves."""

    def __init__(self, buffer: io.BytesIO, room: int, own: bool) -> None:
        super().__init__(buffer, protocol=4)
        self.leaves: List[Any] = []
        self.nbytes = 0
        self._room = room
        self._own = own
        self._seen: Dict[int, Tuple[int, Any]] = {}  # also keeps the object alive, so that its id stays its own
        self._tensor = _torch().Tensor if "torch" in sys.modules else ()
        self._array = sys.modules["numpy"].ndarray if "numpy" in sys.modules else ()

    def persistent_id(self, obj: Any) -> Optional[int]:
        if type(obj) in _PLAIN:
            return None
        if isinstance(obj, self._tensor):
            return self._set_aside(obj, TensorLeaf, obj.element_size() * obj.nelement())
        if isinstance(obj, self._array) and type(obj) is self._array and not obj.dtype.hasobject:
            return self._set_aside(obj, ArrayLeaf, obj.nbytes)
        return None

    def _set_aside(self, obj: Any, leaf: Callable[[Any, bool], Any], nbytes: int) -> int:
        known = self._seen.get(id(obj))
        if known is not None:
            return known[0]
        self.nbytes += nbytes
        if self.nbytes > self._room:  # before the copy: the cap is there because memory is short
            raise TooLarge()
        self.leaves.append(leaf(obj, self._own))
        self._seen[id(obj)] = len(self.leaves) - 1, obj
        return len(self.leaves) - 1


class _Thawer(pickle.Unpickler):
    """Unpickles what this process itself pickled a moment ago."""

    served: List[Any]

    def persistent_load(self, pid: Any) -> Any:
        return self.served[pid]


class FrozenBatch:
    """One batch in private memory. ``own`` adopts its tensors instead of copying them (they are ours already)."""

    pinned = False

    def __init__(self, batch: Any, room: int, own: bool = False) -> None:
        buffer = io.BytesIO()
        freezer = _Freezer(buffer, room, own)
        freezer.dump(batch)
        self.blob = buffer.getvalue()
        self.leaves = freezer.leaves
        self.nbytes = freezer.nbytes + len(self.blob)
        if self.nbytes > room:
            raise TooLarge()

    def pin(self) -> None:
        for leaf in self.leaves:
            leaf.pin()
        self.pinned = True

    def thaw(self, fresh: bool = False) -> Tuple[Any, List[Any]]:
        """The batch in new containers, and its leaves as served (copies when fresh)."""
        thawer = _Thawer(io.BytesIO(self.blob))
        thawer.served = [leaf.serve(fresh) for leaf in self.leaves]
        return thawer.load(), thawer.served

    def moved(self) -> bool:
        """Whether the script has written into the private memory since it was frozen."""
        return any(leaf.moved() for leaf in self.leaves)


class OpaqueBatch:
    """A batch that cannot be pickled: deep-copied where that works, else the object itself."""

    pinned = True  # as far as it ever will be

    def __init__(self, batch: Any, room: int, own: bool = False) -> None:
        self.leaves: List[Any] = []
        self.nbytes = size(batch)
        if self.nbytes > room:
            raise TooLarge()
        self._copies = not own
        self._batch = batch
        if self._copies:
            try:
                self._batch = copy.deepcopy(batch)
            except Exception as error:
                foreign.own(error)
                self._copies = False

    def pin(self) -> None:
        """Left as it is."""

    def thaw(self, fresh: bool = False) -> Tuple[Any, List[Any]]:
        return (copy.deepcopy(self._batch) if self._copies else self._batch), []

    def moved(self) -> bool:
        return False


def freeze(batch: Any, room: int, own: bool = False) -> Any:
    """A private copy of batch, at most room bytes. Raises TooLarge."""
    try:
        frozen = FrozenBatch(batch, room, own)
        frozen.thaw()  # an object may pickle well and not come back
        return frozen
    except TooLarge:
        raise
    except Exception as error:
        foreign.own(error)
        return OpaqueBatch(batch, room, own)


class ReplayPool:
    """The batches one loader's cached blocks replay, in the order in which they were delivered.

    The first servings of a block are copies that are watched: only they show, without a private tensor being lost,
    whether this script writes into its batches. If it does, every later serving is a copy too, and the copying is
    part of the cached leg's step: a ceiling that is too low, never too high.
    """

    def __init__(self) -> None:
        self.batches: List[Any] = []
        self.nbytes = 0
        self.mutating = False
        self._next = 0
        self._last: Any = None  # what the script has in hand
        self._watched: List[Tuple[Any, Callable[[Any], Any], Any]] = []
        self._watching = True

    def __len__(self) -> int:
        return len(self.batches)

    def clear(self) -> None:
        self.batches = []
        self.nbytes = 0
        self.rewind()

    def rewind(self) -> None:
        """Starts again at the first batch, with watched copies."""
        self._next = 0
        self._last = None
        self._watched = []
        self._watching = True

    def keep(self, batch: Any, room: int, own: bool = False) -> bool:
        """Takes a private copy; False when it does not fit into room bytes."""
        try:
            frozen = freeze(batch, room, own)
        except TooLarge:
            return False
        self.batches.append(frozen)
        self.nbytes += frozen.nbytes
        return True

    def pin(self) -> None:
        """Pins what is not pinned yet. Not done in keep(): it may stall the device while a live block is timed."""
        for frozen in self.batches:
            if not frozen.pinned:
                frozen.pin()

    def serve(self) -> Any:
        """The next batch. Raises LookupError when none is left unspoiled."""
        if self._last is not None and self._last.moved():  # found now, one private batch is lost and not all
            self._drop(self._last)
        while self.batches:
            self._next %= len(self.batches)
            frozen = self.batches[self._next]
            if frozen.moved():
                self._drop(frozen)
                continue
            self._next += 1
            self._last = frozen
            batch, leaves = frozen.thaw(self._watching or self.mutating)
            if self._watching:
                stamps = [leaf.stamp for leaf in frozen.leaves]
                self._watched += [(served, stamp, stamp(served)) for served, stamp in zip(leaves, stamps)]
            return batch
        raise LookupError("no batch left to replay")

    def start(self) -> None:
        """The counted part begins: decides whether copies are needed, and starts again at the first batch."""
        if any(stamp(served) != before for served, stamp, before in self._watched):
            self.mutating = True
        self._watched = []
        self._watching = False
        self._next = 0

    def on_device(self, to_device: Callable[[Any], Any], room: Callable[[List[Any]], int]) -> ReplayPool:
        """The same batches on the device, as many as room (told the leaves of a first one) allows."""
        moved = ReplayPool()
        left = sys.maxsize
        for frozen in self.batches:
            if not moved.keep(to_device(frozen.thaw()[0]), left - moved.nbytes, own=True):
                break
            if len(moved) == 1:
                left = room(moved.batches[0].leaves)
                if moved.nbytes > left:
                    moved.clear()
                    break
        return moved

    def _drop(self, frozen: Any) -> None:
        at = self.batches.index(frozen)
        del self.batches[at]
        self._next -= at < self._next
        self._last = None
        self.nbytes -= frozen.nbytes
        self.mutating = True


def size(value: Any) -> int:
    """Bytes of the tensors and arrays inside plain containers and objects: a lower bound for what else they hold."""
    total, stack, seen = 0, [value], set()
    while stack:
        item = stack.pop()
        if id(item) in seen or type(item) in (str, int, float, bool, type(None)):
            continue
        seen.add(id(item))
        if callable(getattr(item, "element_size", None)):
            total += item.element_size() * item.nelement()
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            stack.extend(item)
        else:
            total += int(getattr(item, "nbytes", 0) or 0) or sys.getsizeof(item, 0)
            stack.extend(getattr(item, "__dict__", {}).values())
    return total
