"""Where a script keeps a function beside the names of its modules: closures, defaults, tables, partials, classes.

Asking the garbage collector who refers to ``os.replace`` is thorough and takes ten seconds in a process that has
imported PyTorch and transformers. So only what can be reached from the script's own modules, and from the local
variables of its running functions, is walked through, some steps deep. Libraries call these functions by their modules'
names. A local variable itself cannot be changed from outside.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import types
from typing import Any, Callable, Iterable, Iterator, List, Set, Tuple

DEEPEST = 6
MOST = 50_000  # objects looked at: some tens of milliseconds

Change = Tuple[Callable[..., Any], Tuple[Any, ...], Tuple[Any, ...]]  # what to call, to replace and to put back


def find(stand_for: Callable[[Any], Any]) -> Iterator[Change]:
    """The changes that put stand_for(value) in the place of every value for which it is not None."""
    return _Walk(stand_for).run()


class _Walk:
    def __init__(self, stand_for: Callable[[Any], Any]) -> None:
        self._stand = stand_for
        self._seen: Set[int] = set()
        self._modules = {name: module for name, module in list(sys.modules.items()) if _of_the_script(name, module)}
        self._ahead: List[Tuple[Any, int]] = []

    def run(self) -> Iterator[Change]:
        self._ahead = [(dict(vars(module)), 0) for module in self._modules.values()]
        for frame in list(sys._current_frames().values()):
            self._locals(frame)
        while self._ahead and len(self._seen) < MOST:
            value, depth = self._ahead.pop()
            if id(value) in self._seen or depth > DEEPEST:
                continue
            self._seen.add(id(value))
            yield from self._changes(value)
            for part in self._parts(value):
                if issubclass(type(part), _WALKED) or self._own(part):
                    self._ahead.append((part, depth + 1))

    def _locals(self, frame: Any) -> None:
        while frame is not None:
            if frame.f_globals.get("__name__") in self._modules and frame.f_code.co_name != "<module>":
                self._ahead.append((dict(frame.f_locals), 0))
            frame = frame.f_back

    def _own(self, value: Any) -> bool:
        """A class of the script, or an instance of one."""
        cls = value if issubclass(type(value), type) else type(value)
        return type.__getattribute__(cls, "__module__") in self._modules

    def _parts(self, value: Any) -> List[Any]:
        kind = type(value)
        if issubclass(kind, dict):
            return list(dict.values(value))
        if issubclass(kind, list):
            return list(list.__iter__(value))
        if issubclass(kind, tuple):
            return list(tuple.__iter__(value))
        if kind is types.CellType:
            return [_content(value)]
        if kind is types.FunctionType:
            return [*(value.__closure__ or ()), value.__defaults__, value.__kwdefaults__, vars(value)]
        if kind is types.MethodType:
            return [value.__self__, value.__func__]
        if kind is functools.partial:
            return [value.func, value.args, value.keywords]
        if kind in (staticmethod, classmethod):
            return [value.__func__]
        return list(_attributes(value).values())

    def _changes(self, value: Any) -> Iterator[Change]:
        """What is to be changed in this one holder."""
        kind = type(value)
        if issubclass(kind, dict):
            yield from self._items(functools.partial(dict.__setitem__, value), dict.items(value))
        elif issubclass(kind, list):
            yield from self._items(functools.partial(list.__setitem__, value), enumerate(list.__iter__(value)))
        elif kind is types.CellType:
            yield from self._items(functools.partial(setattr, value), [("cell_contents", _content(value))])
        elif kind is types.FunctionType:
            held = value.__defaults__ or ()
            replaced = tuple(default if self._stand(default) is None else self._stand(default) for default in held)
            if any(now is not before for now, before in zip(replaced, held)):
                yield setattr, (value, "__defaults__", replaced), (value, "__defaults__", held)
        elif kind is functools.partial:
            rest, stand = (value.args, value.keywords, vars(value) or None), self._stand(value.func)
            if stand is not None:
                yield value.__setstate__, ((stand, *rest),), ((value.func, *rest),)
        elif kind is staticmethod:
            stand = self._stand(value.__func__)
            if stand is not None:
                yield value.__init__, (stand,), (value.__func__,)
        elif issubclass(kind, type):
            yield from self._items(functools.partial(setattr, value), _attributes(value).items())
        else:
            names = _attributes(value)
            yield from self._items(functools.partial(dict.__setitem__, names), names.items())

    def _items(self, change: Callable[[Any, Any], None], items: Iterable[Tuple[Any, Any]]) -> Iterator[Change]:
        for key, held in list(items):
            stand = self._stand(held)
            if stand is not None:
                yield change, (key, stand), (key, held)


_WALKED = (dict, list, tuple, types.CellType, types.FunctionType, types.MethodType, functools.partial, staticmethod,
           classmethod)  # fmt: skip


def _attributes(value: Any) -> Any:
    """Of an instance, a dictionary; of a class, a view. Without asking the object: it may compute what it is asked."""
    try:
        return type.__getattribute__(value, "__dict__") if issubclass(type(value), type) else _dict_of(value)
    except AttributeError:  # slots
        return {}


def _dict_of(value: Any) -> Any:
    names = object.__getattribute__(value, "__dict__")
    return names if type(names) is dict else {}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _of_the_script(name: str, module: Any) -> bool:
    """Whether a module is the script's own: neither the standard library's, nor installed, nor ours."""
    if name in ("__main__", "__mp_main__"):
        return True
    file = getattr(module, "__file__", None) if type(module) is types.ModuleType else None
    if not isinstance(file, str) or name.split(".")[0] == __package__:
        return False
    path = os.path.abspath(file)
    installed = ("site-packages" in path) or ("dist-packages" in path)
    return not installed and not path.startswith(_LIBRARY)


_LIBRARY = tuple(
    os.path.join(path, "") for key, path in sysconfig.get_paths().items() if key in ("stdlib", "platstdlib")
)
