"""Calls back when a named module has been imported. Changes neither how nor when modules are imported.

A name is waited for until its module has run: asking whether a package exists (``importlib.util.find_spec``, as
transformers does for safetensors) finds it without importing it.
"""

from __future__ import annotations

import importlib.abc
import sys
import threading
from typing import Any, Callable, Iterable

from .stream import IN_ITERATOR, complain


class LateImports(importlib.abc.MetaPathFinder):
    """Finds nothing itself; wraps what the other finders found, whose errors are the script's to see."""

    def __init__(self, names: Iterable[str], ran: Callable[[Any], None]) -> None:
        self._names = set(names)
        self._ran = ran
        self._asking = threading.local()

    def begin(self) -> None:
        if self._names:
            sys.meta_path.insert(0, self)

    def end(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname not in self._names or getattr(self._asking, "now", False):
            return None
        self._asking.now = True
        try:
            spec = self._found(fullname, path, target)
        finally:
            self._asking.now = False
        try:
            if spec is not None and hasattr(spec.loader, "exec_module"):
                self._wrap(spec.loader)
        except Exception as error:
            complain(IN_ITERATOR, "waiting for %s" % fullname, error)
        return spec

    def _found(self, fullname: str, path: Any, target: Any) -> Any:
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    return spec
        return None

    def _wrap(self, loader: Any) -> None:
        """The loader object stays what it is; for one call its exec_module is ours."""
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            loader.__dict__.pop("exec_module", None)
            run(module)
            self._has_run(module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader without a dictionary: built-in and frozen modules, which we never wait for

    def _has_run(self, module: Any) -> None:
        try:
            if module.__name__ not in self._names:  # one loader may load many modules, as that of a zip file does
                return
            self._names.remove(module.__name__)
            if not self._names:
                self.end()
            self._ran(module)
        except Exception as error:
            complain(IN_ITERATOR, "after an import", error)
