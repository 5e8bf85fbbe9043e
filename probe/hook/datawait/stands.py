"""Puts something before a function, wherever modules hold it and under whatever name.

A stand-in is an object and not a function, so that kept in a class it does not become a method, as the builtins it
replaces would not. Names bound in modules (``from os import remove``) are found in the modules' own dictionaries,
what a script keeps elsewhere by holders.py.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict, List, Tuple

from . import holders
from .foreign import own
from .stream import IN_SAVE, complain

Before = Callable[[Tuple[Any, ...], Dict[str, Any]], None]


class Stand:
    """Stands in for a function: what is to come before it, then the function itself."""

    def __init__(self, original: Any, before: Before) -> None:
        functools.update_wrapper(self, original)
        self._original = original
        self._before = before

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _ask(self._before, args, kwargs)
        return self._original(*args, **kwargs)

    def __reduce__(self) -> Any:
        """By name, so that it arrives in another process as what that process has there."""
        import pydoc

        return pydoc.locate, ("%s.%s" % (self._original.__module__, self._original.__qualname__),)

    def __eq__(self, other: object) -> bool:
        """Equal to the original: ``os.unlink in os.supports_dir_fd`` has to stay true."""
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)

    def __repr__(self) -> str:
        return repr(self._original)


class Stands:
    """All that was replaced, and how it was."""

    def __init__(self) -> None:
        self._known: Dict[int, Tuple[Any, Any]] = {}  # id of the original -> (original, stand-in)
        self._undo: List[Callable[[], None]] = []

    def before(self, original: Any, before: Before) -> None:
        """From the next rebind() on, before comes before original."""
        if id(original) not in self._known:
            self._known[id(original)] = original, Stand(original, before)

    def before_method(self, cls: type, name: str, before: Before) -> None:
        """The same for what a class itself defines; at once."""
        original = vars(cls).get(name)
        if callable(original):
            self._set(cls, name, _method(original, before))

    def rebind(self) -> None:
        """Replaces the originals in every module there is."""
        for imported, module in list(sys.modules.items()):
            if _left_alone(imported):
                continue
            names = _names(module)
            for name, value in list(names.items()):
                stand = self._stand(value)
                if stand is not None:
                    self._put(names, name, stand)

    def rebind_script(self) -> None:
        """Replaces the originals in the closures, defaults, tables and classes of the script's own modules."""
        for change, now, before in holders.find(self._stand):
            try:
                self._call(change, now, before)
            except Exception as error:  # a class of the script that lets nobody change it
                own(error)

    def undo(self) -> None:
        """Puts everything back; for tests."""
        for restore in reversed(self._undo):
            restore()
        self._undo = []
        self._known = {}

    def _stand(self, value: Any) -> Any:
        entry = self._known.get(id(value))
        return entry[1] if entry is not None and entry[0] is value else None

    def _put(self, owner: Any, key: Any, stand: Any) -> None:
        self._call(owner.__setitem__, (key, stand), (key, owner[key]))

    def _set(self, owner: Any, name: str, stand: Any) -> None:
        before = vars(owner)[name] if isinstance(owner, type) else getattr(owner, name)
        self._call(setattr, (owner, name, stand), (owner, name, before))

    def _call(self, change: Callable[..., Any], now: Tuple[Any, ...], before: Tuple[Any, ...]) -> None:
        change(*now)
        self._undo.append(functools.partial(change, *before))


def _method(original: Any, before: Before) -> Any:
    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        _ask(before, args, kwargs)
        return original(*args, **kwargs)

    return method


def _ask(before: Before, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
    try:
        before(args, kwargs)
    except Exception as error:  # what ends the run is none
        complain(IN_SAVE, "save-guard", error)


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
