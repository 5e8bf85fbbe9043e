"""Starts the hook: at once where PyTorch is already imported, else when the script imports it."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict

from . import guardchild, otherloaders
from .foreign import own
from .lateimports import LateImports
from .stream import IN_ITERATOR, configure, core, failed


def _dataloader(module: Any) -> None:
    from . import torchhook

    torchhook.patch(module)


def _optimizer(module: Any) -> None:
    from . import optimizer

    optimizer.patch(module)


def _stateful(module: Any) -> None:
    from . import torchhook

    torchhook.patch_stateful(module)


def _other_loader(module: Any) -> None:
    otherloaders.imported(module)


def _saving(module: Any) -> None:
    from . import saving

    saving.patch(module)


TARGETS: Dict[str, Callable[[Any], None]] = {
    "torch.utils.data.dataloader": _dataloader,
    "torch.optim.optimizer": _optimizer,
    "torchdata.stateful_dataloader.stateful_dataloader": _stateful,
    "torch.serialization": _saving,
    "torch.distributed.checkpoint.state_dict_saver": _saving,
    "safetensors.torch": _saving,
    **dict.fromkeys(otherloaders.MODULES, _other_loader),
}

armed = False


def install(explicit: bool) -> bool:
    """Configures the spool and patches what is imported; the rest follows on import. False: nothing is observed."""
    try:
        return _install(explicit)
    except Exception as error:
        failed(IN_ITERATOR, "install", error)
        return False


def _install(explicit: bool) -> bool:
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
            except OSError as error:
                own(error)
                return False
        configure(folder)
        guardchild.arm(folder)
    if not core.off:
        arm()
    return not core.off


def arm() -> None:
    global armed
    if armed:
        return
    armed = True
    waiting = []
    for name in TARGETS:
        module = sys.modules.get(name)
        if module is not None and not _running(module):
            _apply(module)
        else:
            waiting.append(name)
    LateImports(waiting, _apply).begin()


def _running(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _apply(module: Any) -> None:
    try:
        TARGETS[module.__name__](module)
    except Exception as error:
        failed(IN_ITERATOR, "patching %s" % getattr(module, "__name__", "?"), error)
