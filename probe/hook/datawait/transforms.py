"""Exact times of transforms where they stand in a list that is known: torchvision's Compose and albumentations.

In the worker, and only there, the method that goes through the list is replaced on its class, so no object changes and
pickling sees nothing. torchvision's own code still runs; it is handed the list through a generator that takes the time
between two items. That is done for Compose itself (no class derived from it), and only where its code uses nothing of
the object but that list. A transform inside another is part of that one's time.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import layout
from .layout import UNKNOWN16
from .ring import Ring
from .stacklevel import transparent
from .stream import IN_STACKS, complain, core

# module, class, method that is replaced, and how
LISTS = (
    ("torchvision.transforms.transforms", "Compose", "__call__"),
    ("torchvision.transforms.v2._container", "Compose", "forward"),
)
EACH = (("albumentations.core.transforms_interface", "BasicTransform", "__call__"),)
USES = {"transforms", "len"}  # all that the body of a known Compose names

MOST = 64  # transforms told apart
MOST_NAME = 120


class Timings:
    """Times by name of the transform. One per process; a fork begins with none."""

    def __init__(self) -> None:
        self.sums: Dict[Tuple[int, str], List[int]] = {}  # (loader, name) -> [number, calls, ns]
        self.dirty: Dict[Tuple[int, str], List[int]] = {}
        self.told = 0
        self.on = False
        self.inside = False  # a transform is being timed
        self.thread = 0
        self.loader: Callable[[], Any] = _nobody
        self.seen: Dict[str, bool] = {}  # classes that were looked at

    def begin(self, loader: Callable[[], Any]) -> None:
        """Times the transforms that the calling thread goes through from here on."""
        self.sums, self.dirty = {}, {}
        self.told, self.inside = 0, False
        self.thread = threading.get_ident()
        self.loader = loader
        self.on = True
        self.patch()

    def patch(self) -> None:
        """Replaces the methods of what is imported by now."""
        for places, replace in ((LISTS, _timed_list), (EACH, _timed_call)):
            for module, name, method in places:
                if self.on and module in sys.modules and module not in self.seen:
                    owner = getattr(sys.modules[module], name, None)
                    original = getattr(owner, method, None)
                    if original is None:
                        continue  # being imported at this moment
                    self.seen[module] = True
                    wrapper = replace(owner, original)
                    if wrapper is not None:
                        setattr(owner, method, wrapper)

    def timed(self) -> bool:
        """Whether what the calling thread does now is to be timed."""
        return self.on and not core.off and not self.inside and threading.get_ident() == self.thread

    def took(self, transform: Any, began: int) -> None:
        loader = self.loader()
        if loader is None:
            return  # not in a batch
        key = (loader, _name(transform))
        sums = self.sums.get(key)
        if sums is None:
            if len(self.sums) >= MOST:
                return
            sums = self.sums[key] = [len(self.sums), 0, 0]
        sums[1] += 1
        sums[2] += core.clock() - began
        self.dirty[key] = sums

    def write(self, ring: Ring, now: int) -> None:
        """The sums that have changed since they were written last, and the names that are new."""
        dirty, self.dirty = self.dirty, {}
        new = [name for _, name in list(self.sums)[self.told :]]
        if new:
            ring.note({"note": "transforms", "first": self.told, "names": new})
            self.told += len(new)
        for (loader, _), (number, calls, ns) in dirty.items():
            ring.write(layout.pack_transform, layout.TRANSFORM, 0, loader, now, calls, ns, number)


def _nobody() -> int:
    return UNKNOWN16


timings = Timings()


def _name(transform: Any) -> str:
    """A class by its name, a function by its own."""
    kind = type(transform)
    if kind is type(_name):
        kind = transform
    return ("%s:%s" % (str(kind.__module__).replace(".", "/"), kind.__qualname__))[-MOST_NAME:]


def _timed_list(owner: Any, original: Any) -> Any:
    """A method that goes through self.transforms, timed; None where it does more than that."""
    code = getattr(original, "__code__", None)
    if code is None or not set(code.co_names) <= USES or any(isinstance(one, type(code)) for one in code.co_consts):
        return None

    @transparent
    def through(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self) is not owner or not _now():
            return original(self, *args, **kwargs)
        try:
            return original(_Timed(self.transforms), *args, **kwargs)
        finally:
            _leaves()

    return functools.wraps(original)(through)


class _Timed:
    """Stands for the Compose while its code runs."""

    __slots__ = ("transforms",)

    def __init__(self, transforms: Any) -> None:
        self.transforms = _each(transforms)


@transparent
def _each(transforms: Any) -> Iterator[Any]:
    for transform in transforms:
        began = _begins()
        yield transform
        _ends(transform, began)


def _timed_call(owner: Any, original: Any) -> Any:
    """A method that is called for one transform, timed."""

    @transparent
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        began = _begins()
        try:
            return original(self, *args, **kwargs)
        finally:
            _ends(self, began)

    return functools.wraps(original)(call)


def _now() -> bool:
    try:
        return timings.timed()
    except Exception as error:
        _fail(error)
        return False


def _begins() -> int:
    """The time, 0 where this is not timed."""
    try:
        if timings.timed():
            timings.inside = True
            return core.clock()
    except Exception as error:
        _fail(error)
    return 0


def _ends(transform: Any, began: int) -> None:
    try:
        if began:
            timings.inside = False
            timings.took(transform, began)
    except Exception as error:
        _fail(error)


def _leaves() -> None:
    """A list is done with: its last transform may have raised."""
    timings.inside = False


def _fail(error: BaseException) -> None:
    timings.on = False
    complain(IN_STACKS, "timing transforms", error)
