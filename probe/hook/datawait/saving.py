"""Checkpoint saves, as MARKs: ``torch.save`` and nothing else is timed; the call itself is unchanged."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from . import layout
from .stacklevel import transparent
from .stream import IN_SAVE, core, failed, now

MARK = "_datawait_save"


def patch(module: Any) -> None:
    """Patches torch.serialization, just imported; ``torch.save`` is taken from there later, or was before."""
    original = module.save
    if getattr(original, MARK, False):
        return
    module.save = _observed(original)
    torch = sys.modules.get("torch")
    if getattr(torch, "save", None) is original:
        torch.save = module.save  # type: ignore[union-attr]


def _observed(original: Callable[..., Any]) -> Callable[..., Any]:
    @transparent
    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        ring = core.ring  # a process without a ring trains nothing
        if ring is None or core.off or core.role != "main":
            return original(*args, **kwargs)
        begin = now(IN_SAVE, "save")
        try:
            return original(*args, **kwargs)
        finally:
            try:
                ring.mark(layout.SAVE, begin, core.clock())
            except Exception as error:
                failed(IN_SAVE, "save", error)

    setattr(save, MARK, True)
    return save
