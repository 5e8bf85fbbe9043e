"""Interrupts a training at each line of the hook that its process comes by: a signal handler raises there.
Called as ``everyline.py HOOK FOLDER OPTIONS`` by the test; prints JSON.

By default it is every twenty-fourth line, and all with DATAWAIT_FAULTS=all.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import os
import signal
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import forks
from trainings import Numbers, Training

Line = Tuple[str, int]
UNDELIVERED = 4 | 8  # flags of a FETCH: see SPEC


class Late(Exception):
    pass


class Tracer:
    """Sees which lines of the hook are about to run, and lets the script's handler come at one of them, once a part."""

    def __init__(self, hook: str) -> None:
        self.package = os.path.join(hook, "datawait") + os.sep
        self.pid = os.getpid()
        self.lines: Dict[Line, None] = {}  # of this part, in order
        self.at: Optional[Line] = None
        self.due = False
        self.raised = self.arrived = 0
        signal.signal(signal.SIGUSR2, self.handler)

    def handler(self, number: int, frame: Any) -> None:
        self.raised += 1
        raise KeyboardInterrupt if self.raised % 2 else Late

    def __call__(self, frame: Any, event: str, arg: Any) -> Any:
        return self.within if frame.f_code.co_filename.startswith(self.package) else None

    def within(self, frame: Any, event: str, arg: Any) -> Any:
        if event == "line" and os.getpid() == self.pid:
            line = (frame.f_code.co_filename[len(self.package) :], frame.f_lineno)
            self.lines[line] = None
            if line == self.at and self.due:
                self.due = False
                signal.raise_signal(signal.SIGUSR2)
        return self.within

    @contextlib.contextmanager
    def tracing(self, at: Optional[Line]) -> Iterator[None]:
        self.at, self.due, self.lines = at, True, {}
        sys.settrace(self)
        try:
            yield
        except (Late, KeyboardInterrupt):
            self.arrived += 1
        finally:
            sys.settrace(None)


class Got(collections.Counter):  # type: ignore[type-arg]
    """Batches that the script got, by class of data set."""

    def batches(self, loader: Any, dataset: Any, step: Callable[[Any], None]) -> None:
        for x, _i in loader:
            self[type(dataset).__name__] += 1
            step(x)


class Plain(Numbers):
    pass


class Built(Numbers):
    pass


class Checked(Numbers):
    pass


class Bad(Numbers):
    def __getitem__(self, i: int) -> Any:
        if i == 5:
            raise ValueError("bad sample")
        return super().__getitem__(i)


class Job:
    """One training, in parts; each may be left by an exception, and all happen once more afterwards."""

    def __init__(self) -> None:
        self.train = Training()
        self.got = Got()
        self.plain, self.built, self.checked, self.bad = Plain(20), Built(8), Checked(8), Bad(8)
        self.first = self.train.loader(dataset=self.plain)
        self.kept = self.train.loader(dataset=self.built, workers=1, persistent_workers=True)
        self.watched: Any = None

    def parts(self) -> List[Callable[[], None]]:
        return [self.plainly, self.slowly, self.with_workers, self.with_workers, self.checks, self.fails, self.watches,
                self.steps_with_another]  # fmt: skip

    def plainly(self) -> None:
        self.got.batches(self.first, self.plain, self.train.step)

    def slowly(self) -> None:
        def step(x: Any) -> None:
            self.train.step(x)
            time.sleep(0.025)

        self.got.batches(self.first, self.plain, step)

    def with_workers(self) -> None:
        self.got.batches(self.kept, self.built, self.train.step)

    def checks(self) -> None:
        with self.train.torch.no_grad():
            self.got.batches(self.train.loader(dataset=self.checked), self.checked, self.train.model)

    def fails(self) -> None:
        with contextlib.suppress(ValueError):
            self.got.batches(self.train.loader(dataset=self.bad), self.bad, self.train.step)

    def watches(self) -> None:
        import datawait

        def build(i: int) -> Any:
            with datawait.building(i) as batch:
                return batch.result(self.train.torch.full((4, 3), float(i)))

        for x in datawait.watch([build(i) for i in range(3)], workers=0, ready=lambda: 1):
            self.got["list"] += 1
            self.train.step(x)

    def steps_with_another(self) -> None:
        class Own(self.train.torch.optim.SGD):  # type: ignore[name-defined,misc]
            pass

        other = Own(self.train.model.parameters(), lr=0.01)

        def step(x: Any) -> None:
            self.train.step(x)
            other.step()

        self.got.batches(self.first, self.plain, step)


def interrupted(hook: str, at: List[Optional[Line]]) -> forks.Act:
    """At one line of each part."""

    def act(folder: str) -> Any:
        tracer = Tracer(hook)
        job = Job()
        lines = []
        for part, line in zip(job.parts(), at):
            with tracer.tracing(line):
                part()
            lines.append(list(tracer.lines))
        before = dict(job.got)
        since = time.perf_counter_ns()
        job.train.diary = []
        for part in job.parts():
            part()
        return {"raised": tracer.raised, "arrived": tracer.arrived, "before": before, "since": since, "got": job.got,
                "steps": len(job.train.diary), "lines": [] if any(at) else lines}  # fmt: skip

    return act


def seen(told: forks.Told, since: int) -> Dict[str, Any]:
    """What the rings tell of the time since then, and how often a batch was fetched in all."""
    after: Dict[str, int] = collections.Counter()
    fetched: Dict[str, int] = collections.Counter()
    counted: Dict[str, int] = collections.Counter()
    twice = 0
    for ring in told.rings:
        names = {note["loader"]: note["dataset"].rpartition(".")[2] for note in ring.note("loader")}
        for record in ring.records:
            if record.kind in ("FETCH", "ITERATOR", "STEP") and record.get("enter", record.get("begin")) >= since:
                after["STEP" if record.kind == "STEP" else "%s of %s" % (record.kind, names.get(record.ref))] += 1
        fetches = [fetch for fetch in ring.all("FETCH") if not fetch.flags & UNDELIVERED]
        for fetch in fetches:
            fetched[str(names.get(fetch.ref))] += 1
        twice += len(fetches) - len({(f.ref, f.epoch, f.batch) for f in fetches})
        for number, name in names.items():
            counted[name] += ring.totals(number)["fetches"]
    return {"after": after, "fetched": fetched, "counted": counted, "twice": twice}


def _drop_unfinished(spool: str) -> None:
    """A ring without its magic is none yet, to any reader."""
    for name in os.listdir(spool):
        path = os.path.join(spool, name)
        with open(path, "rb") as file:
            if name.endswith(".dwr") and not any(file.read(8)):
                os.unlink(path)


def main() -> None:
    hook, folder, options = forks.torch_process()
    import torch.utils.data  # noqa: F401

    import datawait.fetch
    import datawait.optimizer
    import datawait.torchhook
    import datawait.worker  # noqa: F401

    site = os.path.join(hook, "attach", "sitecustomize.py")
    with open(site, encoding="utf-8") as file:
        code = compile(file.read(), site, "exec")

    def done(number: int, fork: forks.Fork, outcome: forks.Outcome) -> Any:
        _drop_unfinished(fork.spool)
        told = forks.told(fork.spool)
        result = outcome.result or {"since": 0}
        return {"outcome": outcome, "errors": told.errors, "wrong": told.wrong, **seen(told, result["since"])}

    def attached(at: List[Optional[Line]]) -> forks.Task:
        at = [tuple(line) if line else None for line in at]  # type: ignore[misc]
        return forks.Task(interrupted(hook, at), lambda spool: forks.sitecustomize(code, site))

    usual = forks.run([attached([None] * 8)], folder, done)[0]
    if usual["outcome"].status != 0:
        raise SystemExit("does not run: %s" % (usual["outcome"],))
    lines = usual["outcome"].result.pop("lines")
    every = 1 if os.environ.get("DATAWAIT_FAULTS") == "all" else 24
    chosen = options or list(itertools.zip_longest(*(part[::every] for part in lines)))
    runs = forks.run([attached(at) for at in chosen], folder, done)
    print(json.dumps({"usual": usual, "lines": [len(part) for part in lines], "runs": [
        {"at": at, **run} for at, run in zip(chosen, runs)
    ]}))  # fmt: skip


if __name__ == "__main__":
    main()
