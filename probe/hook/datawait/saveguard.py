"""Stops a run that has trained on repeated batches before it saves, overwrites or deletes anything.

Nothing is patched until ``arm()``. From then on these end the run *before* they happen: ``torch.save`` (to a path or
to a buffer: Lightning writes object stores through BytesIO), ``torch.jit.save``, safetensors, distributed checkpoints;
and where they hit a file older than the run, ``os.remove``, ``unlink``, ``replace``, ``rename``, ``rmdir``,
``shutil.rmtree``, their pathlib forms, and ``open`` for writing, through which every other writer goes.

Patched by replacing, not by an audit hook: that would slow ``id()`` and every deep copy of the very steps that are
being timed, and can never be removed. A name bound earlier (``from safetensors.torch import save_file``, as
transformers does) is found in the modules' own dictionaries and replaced too; modules imported later are patched when
they have run. Out of reach: a function kept in a closure or a class, C++ writers (HDF5, Arrow), ``rm`` in a
subprocess, and deletions by a child process. A child's saves are held like ours, except in a DataLoader worker.

"Older than the run" is the earlier of a file's modification and change times: a checkpoint renamed during the run is
still old. Files made during the run may be deleted at will.
"""

from __future__ import annotations

import builtins
import functools
import os
import pathlib
import pydoc
import shutil
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from .guardpaths import Ages
from .lateimports import LateImports

Stop = Callable[[str, str], None]

# module -> functions whose call alone is a save
SAVES: Dict[str, Tuple[str, ...]] = {
    "torch": ("save",),
    "torch.serialization": ("save", "_open_zipfile_writer"),
    "torch.jit": ("save",),
    "torch.export": ("save",),
    "torch.onnx": ("export",),
    "safetensors": ("serialize_file",),
    "safetensors.torch": ("save_file", "save_model", "serialize_file"),
    "safetensors.numpy": ("save_file", "serialize_file"),
    "torch.distributed.checkpoint": ("save", "save_state_dict", "async_save"),
    "torch.distributed.checkpoint.state_dict_saver": ("save", "save_state_dict", "async_save"),
    "torch.distributed._shard.checkpoint": ("save_state_dict",),
    "torch.distributed._shard.checkpoint.state_dict_saver": ("save_state_dict",),
}


class _Stand:
    """Stands in for a function. An object, not a function: kept in a class it does not become a method, as the
    builtins it replaces would not."""

    def __init__(self, original: Any, before: Callable[..., None]) -> None:
        functools.update_wrapper(self, original)
        self._original = original
        self._before = before

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._before(args, kwargs)
        return self._original(*args, **kwargs)

    def __reduce__(self) -> Any:
        """By name, so that it arrives in another process as what that process has there."""
        return pydoc.locate, ("%s.%s" % (self._original.__module__, self._original.__qualname__),)

    def __eq__(self, other: object) -> bool:
        """Equal to the original: ``os.unlink in os.supports_dir_fd`` has to stay true."""
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)

    def __repr__(self) -> str:
        return repr(self._original)


class SaveGuard:
    """Calls stop(call, target) before a save or deletion; stop does not return."""

    def __init__(self, stop: Stop, spool: str) -> None:
        self._stop = stop
        self._spool = spool
        self._pid = os.getpid()
        self._inside = threading.local()
        self._stands: Dict[int, Tuple[Any, Any]] = {}  # id of the original -> (original, stand)
        self._undo: List[Tuple[Any, str, Any]] = []
        self._ages: Optional[Ages] = None
        self._late: Optional[LateImports] = None

    def arm(self) -> None:
        """Patches what is imported; what is not yet follows when it is."""
        if self._ages is not None:
            return
        self._ages = Ages(self._spool)
        self._file_functions()
        for name in SAVES:
            if name in sys.modules:
                self._saves(sys.modules[name])
        self._rebind()
        self._paths()
        self._late = LateImports((name for name in SAVES if name not in sys.modules), self._imported)
        self._late.begin()

    def disarm(self) -> None:
        """Puts everything back; for tests."""
        for owner, name, original in reversed(self._undo):
            _put(owner, name, original)
        self._undo = []
        self._stands = {}
        self._ages = None
        if self._late is not None:
            self._late.end()

    # --- what is patched -------------------------------------------------------------------------------------------

    def _file_functions(self) -> None:
        for name in ("remove", "unlink", "rmdir"):
            self._stand(getattr(os, name), functools.partial(self._deletes, "os." + name))
        for name in ("rename", "replace"):
            self._stand(getattr(os, name), functools.partial(self._renames, "os." + name))
        self._stand(shutil.rmtree, functools.partial(self._deletes_tree, "shutil.rmtree"))
        self._stand(builtins.open, self._opens)

    def _saves(self, module: Any) -> None:
        for name in SAVES[module.__name__]:
            function = getattr(module, name, None)
            while function is not None and not isinstance(function, _Stand):
                # The functions it wraps as well: a script may hold one that was bound before a wrapper was put on.
                self._stand(function, functools.partial(self._saving, "%s.%s" % (module.__name__, name)))
                function = getattr(function, "__wrapped__", None)

    def _stand(self, original: Any, before: Callable[..., None]) -> None:
        if id(original) not in self._stands:
            self._stands[id(original)] = original, _Stand(original, before)

    def _rebind(self) -> None:
        """Replaces the originals wherever a module holds them under whatever name."""
        for imported, module in list(sys.modules.items()):
            if _left_alone(imported):
                continue
            for name, value in list(_names(module).items()):
                entry = self._stands.get(id(value))
                if entry is not None and entry[0] is value:
                    self._set(module, name, entry[1])

    def _set(self, owner: Any, name: str, stand: Any) -> None:
        self._undo.append((owner, name, vars(owner)[name]))
        _put(owner, name, stand)

    def _paths(self) -> None:
        """pathlib up to Python 3.10 keeps the os functions in a class of its own, so its methods are wrapped."""
        for name, before in (
            ("unlink", self._deletes),
            ("rmdir", self._deletes),
            ("rename", self._renames),
            ("replace", self._renames),
        ):
            self._set(pathlib.Path, name, _method(vars(pathlib.Path)[name], functools.partial(before, "Path." + name)))

    def _imported(self, module: Any) -> None:
        if self._ages is not None and module.__name__ in SAVES:
            self._saves(module)
            self._rebind()

    # --- what is asked before a call -------------------------------------------------------------------------------

    def _saving(self, call: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        self._judge(call, lambda: True, lambda: _target(args, kwargs), save=True)

    def _deletes(self, call: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        path = _argument(args, kwargs, 0, "path")
        self._judge(call, lambda: self._old(path, kwargs.get("dir_fd")), lambda: path)

    def _deletes_tree(self, call: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        path = _argument(args, kwargs, 0, "path")
        assert self._ages is not None
        old = self._ages.old_tree
        self._judge(call, lambda: old(path, kwargs.get("dir_fd")), lambda: path)

    def _renames(self, call: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        source, target = _argument(args, kwargs, 0, "src"), _argument(args, kwargs, 1, "dst")
        self._judge(
            call,
            lambda: self._old(target, kwargs.get("dst_dir_fd")) or self._old(source, kwargs.get("src_dir_fd")),
            lambda: "%s to %s" % (source, target),
        )

    def _opens(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        mode = args[1] if len(args) > 1 else kwargs.get("mode", "r")
        if "w" in mode and self._ages is not None:
            path = _argument(args, kwargs, 0, "file")
            old = self._ages.old_content
            self._judge("open", lambda: old(path), lambda: path)

    def _old(self, path: Any, dir_fd: Optional[int]) -> bool:
        return self._ages is not None and self._ages.old(path, dir_fd)

    def _judge(self, call: str, harmful: Callable[[], bool], target: Callable[[], Any], save: bool = False) -> None:
        """Stops the run if the call would do harm. Calls made while this thread is in here are our own."""
        if getattr(self._inside, "busy", False):
            return
        self._inside.busy = True
        try:
            if os.getpid() != self._pid:
                if save and not _in_loader_worker():
                    _wait_forever()
                return
            if _doubtful(harmful):
                self._stop(call, str(target()))
        finally:
            self._inside.busy = False


def _doubtful(harmful: Callable[[], bool]) -> bool:
    """In doubt there is no harm: the original call will raise whatever is wrong with its arguments."""
    try:
        return harmful()
    except Exception:
        return False


def _in_loader_worker() -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _wait_forever() -> None:
    """A child of the run about to save a model that must not be saved; the run is ended from outside."""
    while True:
        time.sleep(1)


def _argument(args: Tuple[Any, ...], kwargs: Dict[str, Any], position: int, name: str) -> Any:
    return args[position] if len(args) > position else kwargs.get(name, "")


def _target(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
    """What a save would write to: the first argument that looks like a path, else the kind of buffer."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, (str, bytes, os.PathLike)):
            return os.fsdecode(value)
    for value in (*args, *kwargs.values()):
        if callable(getattr(value, "write", None)):
            return str(getattr(value, "name", type(value).__name__))
    return "?"


def _method(original: Any, before: Callable[..., None]) -> Any:
    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        before(args, kwargs)
        return original(*args, **kwargs)

    return method


def _names(module: Any) -> Dict[str, Any]:
    """What a module holds, without asking it: a lazy one would start to import."""
    try:
        names = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return names if isinstance(names, dict) else {}


def _left_alone(name: str) -> bool:
    """Our own modules; and the C modules whose functions these are, through which importing itself works."""
    return name in ("posix", "_io") or name == __package__ or name.startswith(__package__ + ".")


def _put(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, type):
        setattr(owner, name, value)
    else:
        vars(owner)[name] = value
