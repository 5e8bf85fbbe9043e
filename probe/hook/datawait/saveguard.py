"""Stops a run that has trained on repeated batches before it saves, overwrites or deletes anything.

Nothing is patched until ``arm()``. From then on these end the run *before* they happen: the saves of guardcalls.py, a
file opened for writing or a folder made that is called like a checkpoint, and whatever would overwrite, empty, move or
delete a file that was there before (guardpaths.py): ``open``, ``os.open``, ``truncate``, ``remove``, ``unlink``,
``replace``, ``rename``, ``rmdir``, ``shutil.rmtree``, their pathlib forms, and command lines that would (commands.py).
Whatever writes through Python goes through one of these: pickle, numpy, zipfile, shutil, fsspec on local files.

What is asked before each is in guardrules.py.

Patched by replacing (stands.py), not by an audit hook: that would slow ``id()`` and every deep copy of the very steps
that are being timed, and can never be removed. Modules imported later are patched when they have run.

Out of reach:
  - a function that was in a local variable, or kept by a library outside its modules' names, when the guard was armed;
  - files that were open for writing by then: memory-mapped ones, h5py, SQLite, descriptors;
  - writers in C or C++ that open files themselves: Arrow, HDF5 beneath h5py, TensorFlow;
  - programs that commands.py does not know, and processes that ran before: a tracker's daemon, a saver of one's own
    (its ``torch.save`` and safetensors are seen where the hook is loaded);
  - requests to object stores and trackers other than those in guardcalls.py.

A dataset that fills a cache is let through: in a DataLoader worker altogether, without workers where it hits no file
from before.
"""

from __future__ import annotations

import builtins
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Optional

from . import guardcalls
from .foreign import own
from .guardchild import in_loader_worker
from .guardpaths import Ages, past_now
from .guardrules import Harmful, Rules, in_words
from .lateimports import LateImports
from .stands import Stand, Stands
from .stream import IN_SAVE, complain

Stop = Callable[[str, str], None]


def wait_forever(call: str, target: str) -> None:
    while True:
        time.sleep(1)


class SaveGuard:
    """Calls stop(call, target) before a save or deletion, held(call, target) in a child of this process; neither
    returns."""

    def __init__(self, stop: Stop, spool: str, held: Stop = wait_forever) -> None:
        self._stop = stop
        self._held = held
        self._spool = spool
        self._pid = os.getpid()
        self._inside = threading.local()
        self._stands = Stands()
        self._rules = Rules(self._judge)
        self._ages: Optional[Ages] = None
        self._late: Optional[LateImports] = None

    def arm(self, limit: Optional[int] = None) -> int:
        """Patches what is imported; what is not yet follows when it is. Protected is what was written until limit
        (ns of the wall clock), by default until now; returns that."""
        if self._ages is not None:
            return self._ages.limit
        self._ages = Ages(self._spool, past_now() if limit is None else limit)
        self._file_functions()
        self._processes()
        for name in guardcalls.MODULES:
            if name in sys.modules:
                self._saves(sys.modules[name])
        self._stands.rebind()
        self._stands.rebind_script()
        self._paths()
        self._late = LateImports((name for name in guardcalls.MODULES if name not in sys.modules), self._imported)
        self._late.begin()
        return self._ages.limit

    def disarm(self) -> None:
        """Puts everything back; for tests."""
        self._stands.undo()
        self._ages = None
        if self._late is not None:
            self._late.end()

    # --- what is patched -------------------------------------------------------------------------------------------

    def _file_functions(self) -> None:
        before = self._stands.before
        for name in ("remove", "unlink", "rmdir"):
            before(getattr(os, name), functools.partial(self._rules.deletes, "os." + name))
        for name in ("rename", "replace"):
            before(getattr(os, name), functools.partial(self._rules.renames, "os." + name))
        for name in ("truncate", "ftruncate"):
            before(getattr(os, name), functools.partial(self._rules.empties, "os." + name))
        before(os.open, self._rules.opens_descriptor)
        before(os.mkdir, functools.partial(self._rules.makes_folder, "os.mkdir"))
        before(os.utime, self._rules.touches)
        before(shutil.rmtree, functools.partial(self._rules.deletes_tree, "shutil.rmtree"))
        before(builtins.open, self._rules.opens)

    def _processes(self) -> None:
        for name in ("system", "posix_spawn", "posix_spawnp", "execv", "execve"):
            self._stands.before(getattr(os, name), functools.partial(self._rules.runs, "os." + name))
        self._stands.before_method(subprocess.Popen, "__init__", self._rules.popens)

    def _paths(self) -> None:
        """pathlib up to Python 3.10 keeps the os functions in a class of its own, so its methods are wrapped."""
        for name, before in (
            ("unlink", self._rules.deletes),
            ("rmdir", self._rules.deletes),
            ("rename", self._rules.renames),
            ("replace", self._rules.renames),
            ("mkdir", self._rules.makes_folder),
        ):
            self._stands.before_method(pathlib.Path, name, functools.partial(before, "Path." + name))
        self._stands.before_method(pathlib.Path, "touch", self._rules.touches)

    def _saves(self, module: Any) -> None:
        called = module.__name__
        for name in guardcalls.SAVES.get(called, ()):
            function = getattr(module, name, None)
            while function is not None and not isinstance(function, Stand):
                # The functions it wraps as well: a script may hold one that was bound before a wrapper was put on.
                self._stands.before(function, functools.partial(self._rules.saving, "%s.%s" % (called, name)))
                function = getattr(function, "__wrapped__", None)
        for table, before in (
            (guardcalls.METHODS, self._rules.saving_by),
            (guardcalls.REQUESTS, self._rules.requests),
            (guardcalls.OPENERS, self._rules.opens_by),
        ):
            for name, methods in table.get(called, {}).items():
                cls = getattr(module, name, None)
                if not isinstance(cls, type):
                    continue
                for method in methods:
                    self._stands.before_method(cls, method, functools.partial(before, "%s.%s" % (name, method)))

    def _imported(self, module: Any) -> None:
        if self._ages is not None and module.__name__ in guardcalls.MODULES:
            self._saves(module)
            self._stands.rebind()

    # --- what is asked before a call -------------------------------------------------------------------------------

    def _judge(self, call: str, harmful: Harmful, target: Callable[[], Any]) -> None:
        """Stops the run if the call would do harm. Calls made while this thread is in here are our own."""
        ages = self._ages
        if ages is None or getattr(self._inside, "busy", False):
            return
        self._inside.busy = True
        try:
            if in_loader_worker() or not _doubtful(harmful, ages):
                return
            stop = self._stop if os.getpid() == self._pid else self._held
            stop(call, in_words(target()))
        finally:
            self._inside.busy = False


def _doubtful(harmful: Harmful, ages: Ages) -> bool:
    try:
        return harmful(ages)
    except (TypeError, ValueError, OSError) as error:  # arguments that the call itself will refuse
        own(error)
        return False
    except Exception as error:
        complain(IN_SAVE, "save-guard", error)
        return False
