"""Checkpoint saves, as MARKs: ``torch.save``, safetensors and distributed checkpoints are timed, and the calls
themselves unchanged. A save that another one makes is part of that one.

The same place keeps a child of the run from saving a model that has trained on repeated batches (guardchild.py).
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import Any, Callable, Dict, Tuple

from . import guardchild, layout
from .stacklevel import transparent
from .stream import IN_SAVE, complain, core, failed

MARK = "_datawait_save"
FUNCTIONS = {
    "torch.serialization": ("save",),
    "safetensors.torch": ("save_file", "save_model"),
    "torch.distributed.checkpoint.state_dict_saver": ("save", "save_state_dict", "async_save"),
}


class Saves:
    """Saves of this process, on whatever thread. Without a lock, which a fork could find taken for ever."""

    def __init__(self) -> None:
        self._begun = 0
        self._threads: Dict[int, int] = {}  # that are saving -> calls inside one another

    @property
    def running(self) -> int:
        return len(self._threads)

    def enter(self) -> bool:
        """Whether this save is not part of another one."""
        thread = threading.get_ident()
        depth = self._threads.get(thread, 0)
        self._threads[thread] = depth + 1
        self._begun += 1  # of two threads at once one may be lost, but not both
        return not depth

    def leave(self) -> None:
        thread = threading.get_ident()
        depth = self._threads.pop(thread, 1)
        if depth > 1:
            self._threads[thread] = depth - 1

    def seen(self) -> Tuple[int, int]:
        """What quiet() asks for."""
        return self._begun, self.running

    def quiet(self, since: Tuple[int, int]) -> bool:
        """Whether no save was under way at any time since seen() gave that."""
        return since == (self._begun, 0)


saves = Saves()
os.register_at_fork(after_in_child=saves.__init__)  # type: ignore[misc]


def patch(module: Any) -> None:
    """Patches a module of FUNCTIONS, just imported; its package took a function from it before, or takes it later."""
    for name in FUNCTIONS[module.__name__]:
        original = getattr(module, name, None)
        if original is None or getattr(original, MARK, False):
            continue
        observed = _observed("%s.%s" % (module.__name__.split(".state_dict_saver")[0], name), original)
        setattr(module, name, observed)
        package = sys.modules.get(module.__name__.rpartition(".")[0])
        if getattr(package, name, None) is original:
            setattr(package, name, observed)


def _observed(call: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @transparent
    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        ring = core.ring  # a process without a ring trains nothing
        if core.off or ring is None or core.role != "main" or core.test is None:
            _refuse_in_child(call, args, kwargs)
        if core.off or ring is None or core.role != "main":
            return original(*args, **kwargs)
        outermost, begin = _begin()
        try:
            return original(*args, **kwargs)
        finally:
            try:
                saves.leave()
                if outermost:
                    ring.mark(layout.SAVE, begin, core.clock())
            except Exception as error:
                failed(IN_SAVE, "save", error)

    setattr(save, MARK, True)
    return save


def _refuse_in_child(call: str, args: Tuple[Any, ...], kwargs: Any) -> None:
    try:
        guardchild.refuse(core.folder, call, _name(args, kwargs))
    except Exception as error:  # what ends the process is none
        complain(IN_SAVE, "save-guard", error)


def _begin() -> Tuple[bool, int]:
    """Whether a save begins that is not part of another one, and when."""
    try:
        return saves.enter(), core.clock()
    except Exception as error:
        failed(IN_SAVE, "save", error)
        return False, 0


def _name(args: Tuple[Any, ...], kwargs: Any) -> str:
    """What is saved to, for a person."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, (str, bytes, os.PathLike)):
            return os.fsdecode(value)
    return "a buffer"
