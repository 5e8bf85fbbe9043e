"""One fetch around a next() that does nothing: what the hook adds in the main process, and each part's share of it.

Parts are switched off in here, not in the product: records go nowhere, the clock stands still, guards and checks are
taken out of a copy of the hot path. What a part costs is what the whole costs more than the rest without it.
"""

from __future__ import annotations

import ast
import collections
import inspect
import itertools
import textwrap
from typing import Any, Callable, Dict

import measure

from datawait import emulated, events, fetch, stream
from datawait.fetch import Loader, Track, observing

N = 2000
core = stream.core
NEVER = 1 << 62


def nothing(_: Any) -> None:
    return None


class Bare:
    __next__ = nothing


class Observed:
    """An iterator as the hook leaves it: with a Track, and a __next__ that observes."""

    __next__ = observing(nothing)

    def __init__(self, number: int = 0) -> None:
        self._datawait = Track(Loader(number, {"note": "loader", "loader": number}))
        next(self)  # the first opens the ring
        if core.ring is None or core.off:
            raise SystemExit("error: the hook is off")


def nexts(it: Any) -> measure.Loop:
    def loop(n: int) -> float:
        step = it.__next__
        begin = measure.clock()
        for _ in itertools.repeat(None, n):
            step()
        return (measure.clock() - begin) / n

    return loop


def main() -> None:
    it = Observed()
    building = Observed(1)
    building._datawait.builds = True
    clocked = Observed(2)
    device = events.EmulatedClock(emulated.Gpu())

    def with_device(n: int) -> float:
        core.device = device
        try:
            return nexts(clocked)(n)
        finally:
            core.device = None

    loops = {
        "bare": nexts(Bare()),
        "observed": nexts(it),
        "looking-at-thread-clock": always_looking(nexts(it)),
        "looking-at-all-counters": always_looking(nexts(building)),
        "with-emulated-device-clock": with_device,
    }
    measure.alternate("Fetch", loops, N)


def always_looking(loop: measure.Loop) -> measure.Loop:
    """Counters are read at every fetch, which otherwise happens at most once a millisecond, the thread's CPU alone once
    in ten, and where batches are trivial as here, once in fifty."""

    def looking(n: int) -> float:
        apart = fetch.MILLISECOND, fetch.BETWEEN_CLOCKS, fetch.REST
        fetch.MILLISECOND = fetch.BETWEEN_CLOCKS = fetch.REST = 0
        core.measure_at = 0
        try:
            return loop(n)
        finally:
            fetch.MILLISECOND, fetch.BETWEEN_CLOCKS, fetch.REST = apart

    return looking


def parts() -> None:
    whole = Observed(3)
    loops: Dict[str, measure.Loop] = {
        "whole": nexts(whole),
        "without-records": without_records(nexts(whole)),
        "without-clock": without_clock(nexts(whole)),
        "without-guards": nexts(stripped(ast.Try, 3)),
        "without-checks": nexts(stripped(ast.BoolOp, 2)),
    }
    measure.alternate("Part", loops, N, against=measure.price)


def without_records(loop: measure.Loop) -> measure.Loop:
    def running(n: int) -> float:
        ring: Any = core.ring
        pending, flush_at = ring.pending, ring.flush_at
        ring.pending, ring.flush_at = collections.deque(maxlen=0), NEVER
        try:
            return loop(n)
        finally:
            ring.pending, ring.flush_at = pending, flush_at

    return running


def without_clock(loop: measure.Loop) -> measure.Loop:
    def running(n: int) -> float:
        clock = core.clock
        core.clock = itertools.repeat(clock()).__next__
        try:
            return loop(n)
        finally:
            core.clock = clock

    return running


def stripped(kind: type, times: int) -> Any:
    """An observed iterator whose __next__ lacks all statements of a kind: guards, or the checks for what is rare."""

    class Strip(ast.NodeTransformer):
        taken = 0

        def visit_Try(self, node: ast.Try) -> Any:
            self.generic_visit(node)
            if kind is not ast.Try:
                return node
            Strip.taken += 1
            return node.body

        def visit_If(self, node: ast.If) -> Any:
            self.generic_visit(node)
            if kind is not ast.BoolOp or not isinstance(node.body[0], ast.Return) or not _calls_fetch(node.body[0]):
                return node
            Strip.taken += 1
            return None

    tree = ast.parse(textwrap.dedent(inspect.getsource(observing)))
    tree = ast.fix_missing_locations(Strip().visit(tree))
    if Strip.taken != times:
        raise SystemExit("error: the hot path changed: took %d of %d statements out" % (Strip.taken, times))
    space = dict(vars(fetch))
    exec(compile(tree, "<stripped>", "exec"), space)
    around: Callable[..., Any] = space["observing"]

    class Without(Observed):
        __next__ = around(nothing)

        def __init__(self) -> None:
            self._datawait = Observed(4)._datawait

    return Without()


def _calls_fetch(statement: ast.Return) -> bool:
    call = statement.value
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "fetch"
