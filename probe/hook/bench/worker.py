"""What the hook adds in a worker: to every batch, to every file opened, and to code that raises audit events."""

from __future__ import annotations

import copy
import os
import time
import zlib
from typing import Any

import measure

from datawait import meter, stacks, stream
from datawait.layout import UNKNOWN16

N = 1000


class NoQueue:
    def get(self, timeout: float = 0) -> Any:
        return (3, [1, 2, 3, 4])

    def put(self, message: Any) -> None:
        return None


def batches() -> None:
    """One batch through the proxies of the queues of a worker."""
    from datawait import worker

    ring = stream.ring_for("main")
    if ring is None:
        raise SystemExit("error: the hook is off")
    seen = worker.Batches(ring, 0, False)
    index, data = worker.IndexQueue(NoQueue(), seen), worker.DataQueue(NoQueue(), seen)
    bare = NoQueue()
    batch = (3, [bytes(100), bytes(100)])

    def observed() -> None:
        index.get()
        data.put(batch)

    def counted() -> None:
        seen.meter.due = 0
        index.get()
        data.put(batch)

    def plain() -> None:
        bare.get()
        bare.put(batch)

    loops = {"bare": plain, "observed": observed, "looking-at-all-counters": counted}
    measure.alternate("Worker/batch", {name: measure.calling(call) for name, call in loops.items()}, N)


def sampling() -> None:
    """What looking at the stack of a busy worker takes, by the CPU clock of the thread that looks."""
    ring = stream.ring_for("main")
    if ring is None:
        raise SystemExit("error: the hook is off")
    for _ in range(min(measure.ROUNDS, 6)):
        sampler = stacks.Sampler(ring, lambda: UNKNOWN16)
        sampler.start()
        build(2.2)
        looks, cost = sampler.paced
        sampler.stop()
        wall = sampler.told_at - sampler.began
        measure.report("Worker/sampling", looks, ns=cost / looks, core_percent=100 * cost / wall)


def build(seconds: float) -> None:
    """Twenty functions deep: Python, and compression without the interpreter's lock."""
    end = time.perf_counter() + seconds
    blob = os.urandom(20_000)

    def deep(left: int) -> None:
        if left:
            deep_too(left - 1)
            return
        while time.perf_counter() < end:
            sum(range(20_000))
            zlib.compress(blob)

    def deep_too(left: int) -> None:
        deep(left)

    deep(10)


def audit() -> None:
    """The audit hook cannot be taken off again: observed runs are those of a forked child, as workers are."""
    tree = {"a": [1, (2, 3)], "b": {"c": [4.0] * 20}}

    def open_file() -> None:
        with open("/dev/null", "rb", buffering=0):
            pass

    for name, call in {"open": open_file, "deepcopy": lambda: copy.deepcopy(tree)}.items():
        loop = measure.calling(call)
        loops = {"bare": in_child(loop, False), "observed": in_child(loop, True)}
        measure.alternate("Worker/" + name, loops, N, runs=3)


def in_child(loop: measure.Loop, audited: bool) -> measure.Loop:
    def run(n: int) -> float:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            if audited:
                meter.audit()
                assert meter.reads is not None
                meter.reads.begin()  # as while a batch is built
            loop(n)
            os.write(writer, b"%f" % loop(n))
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            told = float(pipe.read())
        os.waitpid(pid, 0)
        return told

    return run
