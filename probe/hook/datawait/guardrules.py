"""What the save-guard asks before each kind of call: would it save, overwrite, move or delete what must stay?"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from . import commands, guardcalls
from .foreign import own
from .guardpaths import Ages
from .stream import core

Arguments = Tuple[Any, ...]
Keywords = Dict[str, Any]
Harmful = Callable[[Ages], bool]
Judge = Callable[[str, Harmful, Callable[[], Any]], None]


class Rules:
    """Each method is called with the arguments of a call that is about to be made, and hands judge its question. In
    doubt there is no harm: the call itself will raise whatever is wrong with its arguments."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def saving(self, call: str, args: Arguments, kwargs: Keywords) -> None:
        def harmful(ages: Ages) -> bool:
            try:
                return not _building() or _replaces(ages, args, kwargs)
            except Exception as error:
                own(error)
                return True  # a save is one, whatever its arguments

        self._judge(call, harmful, lambda: _target(args, kwargs))

    def saving_by(self, call: str, args: Arguments, kwargs: Keywords) -> None:
        self.saving(call, args[1:], kwargs)

    def requests(self, call: str, args: Arguments, kwargs: Keywords) -> None:
        operation = str(_argument(args, kwargs, 1, "operation_name"))
        self._judge(call, lambda _: operation.startswith(guardcalls.CHANGES), lambda: operation)

    def deletes(self, call: str, args: Arguments, kwargs: Keywords) -> None:
        path = _argument(args, kwargs, 0, "path")
        self._judge(call, lambda ages: ages.old(path, kwargs.get("dir_fd")), lambda: path)

    def deletes_tree(self, call: str, args: Arguments, kwargs: Keywords) -> None:
        path = _argument(args, kwargs, 0, "path")
        self._judge(call, lambda ages: ages.old_tree(path, kwargs.get("dir_fd")), lambda: path)

    def renames(self, call: str, args: Arguments, kwargs: Keywords) -> None:
        source, target = _argument(args, kwargs, 0, "src"), _argument(args, kwargs, 1, "dst")
        if target == "":
            target = kwargs.get("target", "")  # as pathlib calls it

        def harmful(ages: Ages) -> bool:
            to = kwargs.get("dst_dir_fd")
            finished = not _building() and ages.new_model(target, to)
            return finished or ages.old(target, to) or ages.old_tree(source, kwargs.get("src_dir_fd"))

        self._judge(call, harmful, lambda: "%s to %s" % (source, target))

    def empties(self, call: str, args: Arguments, kwargs: Keywords) -> None:
        path = _argument(args, kwargs, 0, "path")

        def harmful(ages: Ages) -> bool:
            return ages.old_descriptor(path) if isinstance(path, int) else ages.old_content(path)

        self._judge(call, harmful, lambda: path)

    def makes_folder(self, call: str, args: Arguments, kwargs: Keywords) -> None:
        path = _argument(args, kwargs, 0, "path")
        self._judge(call, lambda ages: not _building() and ages.new_folder(path, kwargs.get("dir_fd")), lambda: path)

    def touches(self, args: Arguments, kwargs: Keywords) -> None:
        path = _argument(args, kwargs, 0, "path")

        def harmful(ages: Ages) -> bool:
            ages.keep(path)
            return False

        self._judge("os.utime", harmful, lambda: path)

    def opens(self, args: Arguments, kwargs: Keywords) -> None:
        mode = args[1] if len(args) > 1 else kwargs.get("mode", "r")
        if mode == "r" or mode == "rb" or not isinstance(mode, str):
            return
        path = _argument(args, kwargs, 0, "file")
        if isinstance(path, int):
            return
        if "w" in mode or "x" in mode or "a" in mode or ("+" in mode and not _memory_maps()):
            self._judge("open", lambda ages: _overwrites(ages, path, "a" in mode), lambda: path)

    def opens_by(self, call: str, args: Arguments, kwargs: Keywords) -> None:
        """A class whose instances are open files; without a mode they only read."""
        mode = _argument(args, kwargs, 2, "mode") or "r"
        path = _argument(args, kwargs, 1, "name")
        if mode != "r" and isinstance(path, (str, bytes, os.PathLike)):
            self._judge(call, lambda ages: _overwrites(ages, path, False), lambda: path)

    def opens_descriptor(self, args: Arguments, kwargs: Keywords) -> None:
        flags = _argument(args, kwargs, 1, "flags")
        if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC):
            return
        path, dir_fd = _argument(args, kwargs, 0, "path"), kwargs.get("dir_fd")
        appends = bool(flags & os.O_APPEND) and not flags & os.O_TRUNC
        self._judge("os.open", lambda ages: _overwrites(ages, path, appends, dir_fd), lambda: path)

    def runs(self, call: str, args: Arguments, kwargs: Keywords) -> None:
        shell = call == "os.system"
        words = _argument(args, kwargs, 0, "command") if shell else _argument(args, kwargs, 1, "argv")
        self._judge(call, lambda ages: commands.harmful(words, shell, None, ages.old_tree), lambda: words)

    def popens(self, args: Arguments, kwargs: Keywords) -> None:
        words = _argument(args, kwargs, 1, "args")
        shell, cwd = bool(_argument(args, kwargs, 9, "shell")), _argument(args, kwargs, 10, "cwd") or None
        self._judge("subprocess", lambda ages: commands.harmful(words, shell, cwd, ages.old_tree), lambda: words)


def _overwrites(ages: Ages, path: Any, appends: bool, dir_fd: Optional[int] = None) -> bool:
    """Whether opening path for writing is a save. What is only added to keeps its age."""
    if not _building() and ages.new_model(path, dir_fd):
        return True
    if appends:
        ages.keep(path)
        return False
    return ages.old_content(path, dir_fd)


def _replaces(ages: Ages, args: Arguments, kwargs: Keywords) -> bool:
    return any(ages.old_content(path) for path in _paths_of(args, kwargs))


def _building() -> bool:
    """Whether this thread builds a batch for a loader without workers."""
    inside = core.inside
    return inside is not None and inside.builds and threading.get_ident() == core.training


def _memory_maps() -> bool:
    """Whether numpy.memmap opens the file: its default is to open for writing what nobody will write to."""
    frame = sys._getframe(4)  # of whoever called the stand-in of open
    return str(frame.f_globals.get("__name__", "")).startswith("numpy.")


def _argument(args: Arguments, kwargs: Keywords, position: int, name: str) -> Any:
    return args[position] if len(args) > position else kwargs.get(name, "")


def _target(args: Arguments, kwargs: Keywords) -> str:
    """What a save would write to: the first argument that looks like a path, else the kind of buffer."""
    for path in _paths_of(args, kwargs):
        return path
    for value in (*args, *kwargs.values()):
        if callable(getattr(value, "write", None)):
            return str(getattr(value, "name", type(value).__name__))
    return "?"


def _paths_of(args: Arguments, kwargs: Keywords) -> Iterator[str]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, (str, bytes, os.PathLike)):
            yield os.fsdecode(value)


def in_words(target: Any) -> str:
    """For a person: a path, or the words of a command."""
    if isinstance(target, (list, tuple)):
        return " ".join(in_words(word) for word in target)
    return os.fsdecode(target) if isinstance(target, (bytes, os.PathLike)) else str(target)
