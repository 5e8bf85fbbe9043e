"""Optimizer steps, in every PyTorch from 1.13 on: wraps ``step`` of each optimizer class that torch itself hooks.

torch wraps ``cls.step`` for its profiler when an optimizer is made (``_hook_for_profile``, later
``_patch_step_function``); this wraps it once more at the same moment, so subclasses defined before or after are
seen and optimizers that only forward (Accelerate's) are not. torch's own global step hooks are not used:
torch.compile unwraps ``step`` and marks it hooked, and they stay silent from then on. Our wrapper is put back when
that is noticed.

The step that counts is that of the first optimizer seen: a second one in the same iteration (a GAN, one optimizer
per parameter) is recorded with the count unchanged. If the first falls silent, the next one that steps takes over, at
once where the first no longer exists. Likewise the thread that trains: when it has ended, the next that steps is it.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from . import events, layout, track
from .stacklevel import transparent
from .stream import IN_STEP, complain, core, failed, now, ring_for

MARK = "_datawait_step"
MOST_RECORDED = 16  # optimizers whose steps are recorded even where they do not count; one per parameter is too much

get_ident = threading.get_ident
_stepping: Set[int] = set()  # threads inside a step (optimizers that wrap others)
_classes: "weakref.WeakSet[Any]" = weakref.WeakSet()
_numbers: Dict[int, Tuple[Any, int]] = {}  # id -> (reference, number)
_count = 0


def _eager() -> bool:
    return False


is_compiling: Callable[[], bool] = _eager


def patch(module: Any) -> None:
    """Patches torch.optim.optimizer, just imported."""
    base = module.Optimizer
    for name in ("_patch_step_function", "_hook_for_profile"):
        original = getattr(base, name, None)
        if original is not None and not getattr(original, MARK, False):
            setattr(base, name, _after(original))
            break
        if original is not None:
            break
    else:
        complain(IN_STEP, "patching an optimizer", AttributeError("PyTorch hooks none: steps are unseen"))
    for made in _subclasses(base):
        if getattr(made.__dict__.get("step"), "hooked", False):
            wrap(made)


def _subclasses(base: Any) -> List[Any]:
    found = []
    for cls in base.__subclasses__():
        found.append(cls)
        found.extend(_subclasses(cls))
    return found


def _after(original: Callable[..., Any]) -> Callable[..., Any]:
    @transparent
    @functools.wraps(original)
    def hook(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        try:
            wrap(type(self))
        except Exception as error:
            failed(IN_STEP, "wrapping an optimizer", error)
        return result

    setattr(hook, MARK, True)
    return hook


def wrap(cls: Any) -> None:
    """Puts our wrapper around ``cls.step`` unless it is there; again after something took it off."""
    step = cls.step
    _classes.add(cls)
    if getattr(step, MARK, False):
        return
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    global is_compiling
    if hasattr(compiler, "is_compiling"):
        is_compiling = compiler.is_compiling  # type: ignore[union-attr]
    cls.step = _observed(step)


def rewrap() -> None:
    """torch.compile unwraps optimizer classes; called when an epoch starts and ten times a second."""
    global _book
    _stepping.discard(get_ident())  # heals what an exception of a signal handler at a bad moment left behind
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None and _book is stepped and hasattr(dynamo, "disable"):
        _book = dynamo.disable(stepped)  # not for it to compile, where a step runs inside a compiled function
    for cls in list(_classes):
        wrap(cls)


def _observed(original: Callable[..., Any]) -> Callable[..., Any]:
    @transparent
    @functools.wraps(original)
    def step(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or core.off or get_ident() in _stepping:
            return original(*args, **kwargs)
        begin = now(IN_STEP, "step")
        ident = get_ident()
        try:
            _stepping.add(ident)
            return_value = original(*args, **kwargs)
        finally:
            _stepping.discard(ident)
        try:
            _book(args[0], begin)
        except Exception as error:
            failed(IN_STEP, "step", error)
        return return_value

    if getattr(original, "hooked", False):
        # torch._dynamo (TorchPatcher.patch) takes one layer off a step that torch hooked for its profiler. Let it
        # find underneath ours what it would have found without us.
        step.__wrapped__ = getattr(original, "__wrapped__", original)  # type: ignore[attr-defined]
    step.hooked = True  # type: ignore[attr-defined]  # so that torch does not wrap it again
    setattr(step, MARK, True)
    return step


def stepped(optimizer: Any, begin: int) -> None:
    """One outermost step ended."""
    ring = core.ring or ring_for("main")
    if ring is None:
        return
    end = core.clock()
    ident = get_ident()
    thread = threading.get_native_id()
    number = _number(optimizer)
    if core.unit == layout.BY_FETCH:
        _begin_counting(ring, ident)
    elif ident != core.training and not track.training_goes_on():
        _train_here(ring, ident, None)
    counts = False
    if ident == core.training:
        core.inside = None  # no fetch is running; heals what an exception at a bad moment left behind
        if thread != core.thread:
            track.train_in(thread)
        counts = _counts(optimizer, number, ring.fetches)
        if counts:
            core.step += 1
    if counts or number < MOST_RECORDED:
        ring.put_off(end, (layout.STEP, 0, number, begin, end, core.step, thread, core.cpu_clock()))
    if core.device is None:
        events.attach(optimizer)
    elif counts:
        events.launched()


def _in_forked_child() -> None:
    try:
        _stepping.intersection_update((get_ident(),))  # the others are not here, and their names will be taken again
    except Exception as error:
        complain(IN_STEP, "after a fork", error)


os.register_at_fork(after_in_child=_in_forked_child)

_book: Callable[[Any, int], None] = stepped
_primary = -1
_primary_lives: Callable[[], Any] = bool  # gives the primary while it exists
_silent: Optional[Tuple[int, int]] = None  # (step, fetches) when another optimizer first stepped without the primary


def _counts(optimizer: Any, number: int, fetches: int) -> bool:
    """Whether this optimizer's step ends a training step."""
    global _primary, _primary_lives, _silent
    if number == _primary:
        _silent = None
        return True
    if _primary < 0 or _primary_lives() is None:
        _primary, _primary_lives, _silent = number, _numbers[id(optimizer)][0], None
        return True
    if _silent is None:
        _silent = (number, fetches)
    elif _silent[0] == number and fetches > _silent[1] + 1:
        # It stepped again, fetches later, and the first one did not: training has moved on to it.
        _primary, _primary_lives, _silent = number, _numbers[id(optimizer)][0], None
        return True
    return False


def _begin_counting(ring: Any, ident: int) -> None:
    """The first optimizer step: from here on steps are optimizer steps, of this thread."""
    _train_here(ring, ident, core.step)
    ring.flush()
    ring.by_fetch = False
    core.unit = layout.BY_OPTIMIZER
    core.step = 0
    core.boundary = -1
    ring.longs[layout.Q_STEP] = 0
    ring.ints[layout.I_UNIT] = layout.BY_OPTIMIZER


def _train_here(ring: Any, ident: int, step: Optional[int]) -> None:
    """This thread trains from here on, and did so when it made the fetches of its that are held back."""
    global _primary, _silent
    _primary, _silent = -1, None
    thread = threading.get_native_id()
    ring.let_go(thread, step)
    if ident != core.training:
        core.training = ident
        track.train_in(thread)
        core.inside = None


def _number(optimizer: Any) -> int:
    global _count
    entry = _numbers.get(id(optimizer))
    if entry is not None and entry[0]() is optimizer:
        return entry[1]
    number = min(_count, layout.UNKNOWN16)
    _count += 1
    _numbers[id(optimizer)] = (weakref.ref(optimizer), number)
    return number
