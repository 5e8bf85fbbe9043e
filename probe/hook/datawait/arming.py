"""Starts the hook: at once where PyTorch is already imported, else when the script imports it.

A finder at the head of ``sys.meta_path`` waits for a handful of module names and patches each right after it has
run. It changes neither how nor when they are imported, and steps aside for every other name.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from typing import Any, Callable, Dict

from .stream import IN_ITERATOR, complain, configure, core, failed


def _dataloader(module: Any) -> None:
    from . import torchhook

    torchhook.patch(module)


def _optimizer(module: Any) -> None:
    from . import optimizer

    optimizer.patch(module)


def _stateful(module: Any) -> None:
    from . import torchhook

    torchhook.patch_stateful(module)


def _serialization(module: Any) -> None:
    from . import saving

    saving.patch(module)


TARGETS: Dict[str, Callable[[Any], None]] = {
    "torch.utils.data.dataloader": _dataloader,
    "torch.optim.optimizer": _optimizer,
    "torchdata.stateful_dataloader.stateful_dataloader": _stateful,
    "torch.serialization": _serialization,
}

armed = False


def install(explicit: bool) -> bool:
    """Configures the spool and patches what is imported; the rest follows on import."""
    if os.environ.get("DATAWAIT_HOOK") == "off":
        return False
    if core.folder is None:
        folder = os.environ.get("DATAWAIT_SPOOL")
        if not folder:
            if not explicit:
                return False
            from .place import own_folder

            try:
                folder = own_folder()
            except OSError:
                return False
        configure(folder)
    arm()
    return not core.off


def arm() -> None:
    global armed
    if armed:
        return
    armed = True
    waiting = {}
    for name, patch in TARGETS.items():
        module = sys.modules.get(name)
        if module is not None and not _running(module):
            _apply(patch, module)
        else:
            waiting[name] = patch
    if waiting:
        sys.meta_path.insert(0, _Watcher(waiting))


def _running(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _apply(patch: Callable[[Any], None], module: Any) -> None:
    try:
        patch(module)
    except Exception as error:
        failed(IN_ITERATOR, "patching %s" % getattr(module, "__name__", "?"), error)


class _Watcher(importlib.abc.MetaPathFinder):
    """Finds nothing itself; asks the other finders and adds the patch after the module's own code."""

    def __init__(self, waiting: Dict[str, Callable[[Any], None]]) -> None:
        self.waiting = waiting

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        patch = self.waiting.get(fullname)
        if patch is None:
            return None
        spec = None
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    break
        if spec is None:
            return None
        try:
            self.patch_after(spec.loader, fullname, patch)
        except Exception as error:
            complain(IN_ITERATOR, "waiting for %s" % fullname, error)
        return spec

    def patch_after(self, loader: Any, name: str, patch: Callable[[Any], None]) -> None:
        """Lets the loader's own exec_module run first, then the patch; the loader object stays what it was.

        Finding a module is not yet importing it, so the name is waited for until its code has run.
        """
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            del loader.exec_module
            run(module)
            if self.waiting.pop(name, None) is not None:
                _apply(patch, module)
            if not self.waiting and self in sys.meta_path:
                sys.meta_path.remove(self)

        loader.exec_module = exec_module
