"""Stacks, folded: which function was called by which, and how often each was found at work (kinds STACK of SPEC §2).

A function is ``file:name``; a call a pair of the call it came from and a function. Recursion is folded: what a function
calls deeper down counts as called by it where it is on the stack first. Both tables are bounded: what finds no room
counts for the nearest caller that has a place, and the number of such samples is told.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Optional, Tuple

from .foreign import HERE
from .ring import Ring

MOST_CALLS = 512
MOST_NAME_BYTES = 24000  # of all functions, of the 61 KB that notes have
MOST_CODES = 2048
MOST_FRAMES = 4096  # deeper stacks are cut off at the root
LONGEST = 120
MOST_PATHS = 512  # that are remembered with the call they lead to, each of …
SHORT = 64  # … so many functions at most

NONE = 0  # no function, no call: the table is full, or nothing was below the loop
OURS = -1  # a frame of the hook: passed over
LOOP = -2  # the loop that builds: nothing above it is of interest

LOOPS: List[Any] = []  # code of the hook's that runs a worker's loop
METHODS = ("self", "cls")  # names of a first argument by which a method is known, where Python does not tell (3.10)


class Calls:
    def __init__(self) -> None:
        self.codes: Dict[int, int] = {}  # id of a code object -> function
        self.kept: List[Any] = []  # those code objects: so the id of each stays its own
        self.functions: Dict[str, int] = {}  # name -> number, from 1
        self.calls: Dict[Tuple[int, int], int] = {}  # (call it came from or 0, function) -> number, from 1
        self.ends: Dict[Tuple[int, ...], Tuple[int, bool]] = {}  # path -> what _follow says of it
        self.counts: Dict[Tuple[int, int], List[int]] = {}  # (loader, call) -> ns [on, off, unclear], samples
        self.dirty: Dict[Tuple[int, int], List[int]] = {}
        self.outside = 0  # samples of which a part found no room
        self.room = MOST_NAME_BYTES
        self.told = [0, 0]  # functions and calls that are noted
        self.full = False  # no note of them fits any more

    def path(self, frame: Any) -> List[int]:
        """Functions from the leaf up to the loop. Looks at nothing of the frames but their code; the names of code
        that is new are found out here, once."""
        path: List[int] = []
        function_of, last = self.codes.get, OURS
        for _ in range(MOST_FRAMES):
            if frame is None:
                break
            function = function_of(id(frame.f_code))
            if function is None:
                function = self._meet(frame)
            if function != last and function != OURS:
                if function == LOOP:
                    break
                path.append(function)
                last = function
            frame = frame.f_back
        return path

    def add(self, loader: Optional[int], path: List[int], runs: Optional[bool], ns: int) -> None:
        """Counts a sample, which stands for so much time, for the call that the path leads to."""
        way = tuple(path)
        end = self.ends.get(way)
        if end is None:
            end = self._follow(way)
            if len(self.ends) < MOST_PATHS and len(way) <= SHORT:
                self.ends[way] = end  # for good: what found no room will not find any later
        call, outside = end
        self.outside += outside
        key = (0 if loader is None else loader, call)
        counts = self.counts.get(key)
        if counts is None:
            counts = self.counts[key] = [0, 0, 0, 0]
        counts[2 if runs is None else 0 if runs else 1] += ns
        counts[3] += 1
        self.dirty[key] = counts

    def _follow(self, path: Tuple[int, ...]) -> Tuple[int, bool]:
        """The call that a path leads to, and whether a part of it found no room."""
        call = NONE
        found: Dict[int, int] = {}  # function -> call
        outside = False
        for function in reversed(path):
            if function == NONE:
                outside = True
                continue
            if function in found:
                call = found[function]
                continue
            below = self.calls.get((call, function))
            if below is None:
                if self.full or len(self.calls) >= MOST_CALLS:
                    outside = True
                    break
                below = self.calls[(call, function)] = len(self.calls) + 1
            call = found[function] = below
        return call, outside

    def changed(self) -> List[Tuple[Tuple[int, int], List[int]]]:
        dirty, self.dirty = self.dirty, {}
        return list(dirty.items())

    def tell(self, ring: Ring) -> None:
        """Notes the functions and calls that are new."""
        functions, calls = list(self.functions)[self.told[0] :], list(self.calls)[self.told[1] :]
        if self.full:
            return
        if functions:
            self.full = not ring.note({"note": "functions", "first": self.told[0] + 1, "names": functions})
        if calls and not self.full:
            self.full = not ring.note({"note": "calls", "first": self.told[1] + 1, "calls": calls})
        self.told = [len(self.functions), len(self.calls)]

    def _meet(self, frame: Any) -> int:
        """The function of code that was not seen before."""
        code = frame.f_code
        if code.co_filename.startswith(HERE):
            function = LOOP if _is_loop(code) else OURS
        elif code.co_name == "_worker_loop":
            function = LOOP
        else:
            function = self._number(_name(frame, code))
        if function != NONE and len(self.codes) < MOST_CODES:
            self.kept.append(code)
            self.codes[id(code)] = function
        return function

    def _number(self, name: str) -> int:
        number = self.functions.get(name)
        if number is None:
            if self.full or len(name) + 3 > self.room:
                return NONE
            self.room -= len(name) + 3
            number = self.functions[name] = len(self.functions) + 1
        return number


def _is_loop(code: Any) -> bool:
    """The hook's frame around what builds: a worker's loop, or next() of a process that builds its batches itself."""
    return code in LOOPS or os.path.basename(code.co_filename) == "fetch.py"


def _name(frame: Any, code: Any) -> str:
    """``file:function``, the file as its module is called: ``torchvision/transforms/functional.py:resize``."""
    module = dict.get(frame.f_globals, "__name__")
    file = os.path.basename(code.co_filename) or "?"
    if type(module) is str and module not in ("__main__", "__mp_main__"):
        parts = module.split(".")
        if file == "__init__.py":
            parts.append("__init__")
        elif file != parts[-1] + ".py":
            parts = parts[:-1] + [file[:-3] if file.endswith(".py") else file]
        file = "/".join(parts) + ".py"
    name = getattr(code, "co_qualname", None) or _of_a_class(module, code) or code.co_name
    text = "%s:%s" % (file, name.replace(".<locals>", ""))
    return text if len(text) <= LONGEST else "…" + text[1 - LONGEST :]


def _of_a_class(module: Any, code: Any) -> Optional[str]:
    """Class and name of a method, where Python does not tell (3.10 and older); runs nothing of the script's."""
    if code.co_varnames[:1] not in ((METHODS[0],), (METHODS[1],)):
        return None
    for owner in list(vars(sys.modules.get(module) or object).values()):
        if not isinstance(owner, type):
            continue
        found = type.__dict__["__dict__"].__get__(owner).get(code.co_name)
        found = getattr(found, "__func__", found) if isinstance(found, (staticmethod, classmethod)) else found
        if type(found) is type(_of_a_class) and found.__code__ is code:
            return "%s.%s" % (owner.__name__, code.co_name)
    return None
