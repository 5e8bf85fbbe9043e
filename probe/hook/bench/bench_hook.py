#!/usr/bin/env python3
"""What the hook costs, in lines that benchstat reads: ``bench_hook.py > new.txt; benchstat new.txt``.

Bare and observed loops alternate within one run, so their ratio means something on a noisy machine; each line is the
median of one round. The observed no-op ``next`` is the added cost itself. Needs PyTorch only for the last group.
"""

from __future__ import annotations

import copy
import gc
import os
import shutil
import statistics
import sys
import tempfile
import time
from typing import Any, Callable, Dict

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
folder = tempfile.mkdtemp(prefix="datawait-bench-", dir="/dev/shm")
os.environ["DATAWAIT_SPOOL"] = folder

import datawait  # noqa: E402
from datawait import emulated, events, fetch, loaders, meter, stream, watching  # noqa: E402
from datawait.fetch import Loader, Track  # noqa: E402

ROUNDS = 12
clock = time.thread_time_ns  # all that the hook adds is CPU of this thread; a busy machine moves it less than wall time


def nothing(_: Any) -> None:
    return None


def median_ns(loop: Callable[[int], float], n: int) -> float:
    """ns per operation: median of 7 short runs, so that one preemption does not count."""
    return statistics.median(loop(n) for _ in range(7))


def report(name: str, n: int, ns: float) -> None:
    print("Benchmark%s %d %.0f ns/op" % (name, n, ns), flush=True)


def alternate(loops: Dict[str, Callable[[int], float]], n: int) -> None:
    for loop in loops.values():
        loop(n)
    for _ in range(ROUNDS):
        for name, loop in loops.items():
            report(name, n, median_ns(loop, n))


def timed(call: Callable[[], Any]) -> Callable[[int], float]:
    def loop(n: int) -> float:
        gc.disable()
        begin = clock()
        for _ in range(n):
            call()
        end = clock()
        gc.enable()
        return (end - begin) / n

    return loop


def main_process() -> None:
    """One fetch around a next() that does nothing."""
    track = Track(Loader(0, {"note": "loader", "loader": 0}))

    def observed() -> None:
        fetch.fetch(track, nothing, None)

    def measured() -> None:  # thread CPU read as well, as happens at most once a millisecond
        stream.core.measure_at = 0
        fetch.fetch(track, nothing, None)

    counted_track = Track(Loader(1, {"note": "loader", "loader": 1}))
    counted_track.builds = True

    def counted() -> None:  # no workers: all counters of the main process, at most once a millisecond
        stream.core.measure_at = 0
        fetch.fetch(counted_track, nothing, None)

    gpu = emulated.Gpu()
    device = events.EmulatedClock(gpu)

    def clocked() -> None:  # with the device clock's two events around it
        stream.core.device = device
        fetch.fetch(track, nothing, None)
        stream.core.device = None

    alternate(
        {
            "Fetch/bare": timed(lambda: nothing(None)),
            "Fetch/observed": timed(observed),
            "Fetch/observed-with-cpu": timed(measured),
            "Fetch/observed-with-counters": timed(counted),
            "Fetch/observed-with-device-clock": timed(clocked),
        },
        2000,
    )


class NoQueue:
    def get(self, timeout: float = 0) -> Any:
        return (3, [1, 2, 3, 4])

    def put(self, message: Any) -> None:
        return None


def worker_process() -> None:
    """One batch through the queue proxies of a worker."""
    from datawait import worker

    ring = stream.core.ring
    assert ring is not None
    batches = worker.Batches(ring, 0, False)
    index, data = worker.IndexQueue(NoQueue(), batches), worker.DataQueue(NoQueue(), batches)
    bare = NoQueue()
    batch = (3, [bytes(100), bytes(100)])

    def observed() -> None:
        index.get()
        data.put(batch)

    def measured() -> None:
        batches.meter.due = 0
        index.get()
        data.put(batch)

    def plain() -> None:
        bare.get()
        bare.put(batch)

    alternate(
        {
            "Worker/bare": timed(plain),
            "Worker/observed": timed(observed),
            "Worker/observed-with-counters": timed(measured),
        },
        1000,
    )


def watched() -> None:
    items = [None] * 2000

    def bare(n: int) -> float:
        begin = clock()
        for _ in items:
            pass
        return (clock() - begin) / len(items)

    def observed(n: int) -> float:
        wrapped = datawait.watch(items, name="bench")
        begin = clock()
        for _ in wrapped:
            pass
        return (clock() - begin) / len(items)

    alternate({"Watch/bare": bare, "Watch/observed": observed}, len(items))


def real_loader() -> None:
    """Trivial DataLoaders without workers, about the shortest fetches PyTorch has."""
    try:
        import torch
        from torch.utils.data import DataLoader
    except ImportError:
        print("no torch: Loader left out", file=sys.stderr)
        return
    torch.set_num_threads(1)
    datawait.install()
    data = [torch.zeros(4)] * 4000

    def loop(off: bool, **arguments: Any) -> Callable[[int], float]:
        def run(n: int) -> float:
            stream.core.off = off
            it = iter(DataLoader(data, **arguments))  # type: ignore[arg-type]
            begin = clock()
            for _ in it:
                pass
            end = clock()
            stream.core.off = False
            return (end - begin) / (len(data) / arguments["batch_size"])

        return run

    collated = {"batch_size": 4}
    bare = {"batch_size": 1, "collate_fn": nothing}
    alternate(
        {
            "Loader/collating-4/bare": loop(True, **collated),
            "Loader/collating-4/observed": loop(False, **collated),
            "Loader/collating-nothing/bare": loop(True, **bare),
            "Loader/collating-nothing/observed": loop(False, **bare),
        },
        1000,
    )


def audit() -> None:
    """What a worker's audit hook costs the code that builds batches. It cannot be taken off again, so it comes last."""
    tree = {"a": [1, (2, 3)], "b": {"c": [4.0] * 20}}

    def open_file() -> None:
        with open("/dev/null", "rb", buffering=0):
            pass

    calls = {"Open": open_file, "Deepcopy": lambda: copy.deepcopy(tree)}
    alternate({"Audit/%s/bare" % name: timed(call) for name, call in calls.items()}, 1000)
    meter.audit()
    alternate({"Audit/%s/observed" % name: timed(call) for name, call in calls.items()}, 1000)


def main() -> None:
    print("goos: linux\npkg: datawait (python %d.%d)" % sys.version_info[:2])
    try:
        assert datawait.install() and loaders and watching
        main_process()
        worker_process()
        watched()
        real_loader()
        audit()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
