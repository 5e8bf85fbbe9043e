"""Runs scenarios with one fault each. Called as ``campaign.py HOOK FOLDER OPTIONS`` by the test; prints JSON.

Of the faults it is every second, so of each function the entry or the end, unless all are asked for. With PyTorch 2,
where a fork takes ten times as long, it is every sixth.
"""

from __future__ import annotations

import json
import os
import re
import sys
import types
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import forks
import instrument
from exempt import DONE_LAST, FRAMES, ITS_OWN, ORIGINALS, SAFE, STANDARD_LIBRARY
from forks import Fork, Outcome, Task, Told
from instrument import ERRORS, Point, faults, points
from recorded import differing, recorded

EMULATED = ("emulated", "tested")
# Under the cached-data test.
TESTED = ("served", "guarded", "mutated", "saves_after_the_test", "parked", "tried", "tested")
GUARDED = ("guarded", "saves_after_the_test")  # where what the save-guard replaces is looked for beside modules
MODULES = ("os", "builtins", "shutil", "pathlib", "zipfile", "subprocess", "tempfile", "torch", "torch.serialization",
           "scenarios", "testscenarios")  # fmt: skip
EXPECTED = {  # errors that are no fault of the hook
    "control page: BadPage: starts with b'nonsense'", "parked: RuntimeError: the agent is gone: training goes on",
}  # fmt: skip
TEST_BEGAN = 4  # code of a MARK
SYSTEM = re.compile(r"os\.(?!path|getp|environ|fs|WIF|register)|open$|mmap\.|fcntl\.|resource\.get|shutil\.")
SYSTEM_ERRORS = ("ENOSPC", "EROFS", "ENOENT", "EACCES")
OWN_ERRORS = ("error", "memory", "error", "ENOSPC", "error", "recursion")

# Faults of the failure path itself: what is reached only when these fail, always, is injected while they do.
FAILING = [
    ("no_workers", "fetch._deliver -> ring.flush"), ("no_workers", "stream.ring_for -> Ring"),
    ("no_workers", "arming._apply -> TARGETS[module.__name__]"), ("no_workers", "sitecustomize._arm -> install"),
    ("emulated", "events.attach -> _emulated_clock"), ("emulated", "fetch._device_before -> core.device.before"),
    ("workers", "worker.IndexQueue.get -> self._batches.asked"), ("threads", "fetch._finish_aside -> ring.put_off"),
    ("watched", "datawait.watch -> _watch"), ("watched", "datawait.building -> _Building"),
    ("late_imports", "lateimports.LateImports._has_run -> self._ran"),
    ("served", "cachedtest.CachedTest._turn -> running.boundary"),
    ("served", "cachedtest.CachedTest._serve -> running.serve"),
    ("served", "cachedtest.CachedTest._arm -> self._guard.arm"),
]  # fmt: skip


Reached = Dict[int, Tuple[str, Optional[int], int]]  # place -> scenario, what fails beside it, calls (three at most)


class Case(NamedTuple):
    scenario: str
    point: int = -1
    error: str = "error"
    role: int = 0  # 0 the script's process, 1 one that it made
    nth: int = 1
    also: Optional[int] = None


class Campaign:
    def __init__(self, hook: str, folder: str) -> None:
        instrument.install(os.path.join(hook, "datawait"))
        import scenarios
        import testscenarios

        import datawait.layout

        datawait.layout.MAIN_CAPACITY = datawait.layout.WORKER_CAPACITY = 2048  # more than a scenario records
        self.folder = folder
        self.scenarios = {**scenarios.SCENARIOS, **testscenarios.SCENARIOS}
        self.site = os.path.join(hook, "attach", "sitecustomize.py")
        self.code = instrument.sitecustomize(self.site)
        self.bare: Dict[str, Outcome] = {}
        self.usual: Dict[Tuple[str, Optional[int]], List[Dict[str, Any]]] = {}  # recorded without the fault

    def task(self, case: Case, hook: bool = True) -> Task:
        act = self.scenarios[case.scenario]
        return Task(act, (lambda spool: self.attach(case)) if hook else None)

    def attach(self, case: Case) -> None:
        import datawait.fetch
        import datawait.stream

        if case.scenario in EMULATED:
            os.environ["DATAWAIT_GPU"] = "emulated"
            datawait.fetch.EMULATED_GPU = True
        if case.scenario in TESTED:
            os.environ["DATAWAIT_TEST"] = "1"
            datawait.stream.core.test_due = True
        if case.scenario in TESTED:
            _few_modules(case.scenario in GUARDED)
        faults.target, faults.role, faults.nth, faults.also = case.point, case.role, case.nth, case.also
        faults.once = case.scenario in TESTED  # a batch that never thaws cannot make up for one that was taken out
        faults.error = ERRORS[case.error]
        faults.calls = 0
        faults.pid = os.getpid()
        forks.sitecustomize(self.code, self.site, __faults__=faults)

    def run_bare(self, names: List[str]) -> None:
        outcomes = forks.run([self.task(Case(name), hook=False) for name in names], self.folder, lambda n, f, o: o)
        self.bare = dict(zip(names, outcomes))
        for name, outcome in self.bare.items():
            if outcome.status != 0 or outcome.stderr:
                raise SystemExit("%s does not run: %s" % (name, outcome))

    def run(self, cases: List[Case]) -> List[Dict[str, Any]]:
        def done(number: int, fork: Fork, outcome: Outcome) -> Dict[str, Any]:
            case, told = cases[number], forks.told(fork.spool)
            return {
                "problems": told.wrong or forks.differences(self.expected(case, told), outcome),
                "told": [error for error in told.errors if error not in EXPECTED],
                "raised": bool(faults.raised[fork.slot]),
                "arrived": "injected" in outcome.stderr + str(outcome.result),
                "recorded": recorded(told.rings),
            }

        def starting(slot: int) -> None:
            faults.slot, faults.raised[slot] = slot, 0

        return forks.run([self.task(case) for case in cases], self.folder, done, starting)

    def expected(self, case: Case, told: Told) -> Outcome:
        """The outcome without the hook; but a run that trained on repeated batches may not save."""
        repeated = any(r.kind == "MARK" and r.ref == TEST_BEGAN for ring in told.rings for r in ring.records)
        if case.scenario == "saves_after_the_test" and repeated:
            return Outcome(256, None, "before saving\n", "")
        return self.bare[case.scenario]

    def reached(self, scenario: str, also: Optional[int]) -> Dict[int, int]:
        """Places (point * 2 + role) that a run without the fault comes by, as in Faults.reached."""
        faults.reached[:] = bytes(len(faults.reached))
        faults.recording = True
        (one,) = self.run([Case(scenario, also=also)])
        faults.recording = False
        if one["problems"] or (one["told"] and also is None):
            raise SystemExit("%s without a fault: %s %s" % (scenario, one["problems"], one["told"]))
        again = self.run([Case(scenario, also=also)] * 2)
        self.usual[scenario, also] = [one["recorded"], *(run["recorded"] for run in again)]
        return {place: faults.reached[place] for place in range(len(points) * 2) if faults.reached[place]}

    def all_lost(self, cases: List[Case], outcomes: List[Dict[str, Any]]) -> Dict[Case, List[str]]:
        """What faults that are not told leave otherwise than it is recorded without them, each time: how far workers
        get before they are stopped is never quite the same."""
        silent = {case: one for case, one in zip(cases, outcomes) if one["raised"] and not one["told"]}
        lost = {case: self.lost(case, one) for case, one in silent.items()}
        for _ in range(2):
            again = [case for case, names in lost.items() if names]
            for case, one in zip(again, self.run(again)):
                lost[case] = [name for name in lost[case] if name in self.lost(case, one)]
        return lost

    def lost(self, case: Case, one: Dict[str, Any]) -> List[str]:
        """What is recorded otherwise than without the fault."""
        return differing(self.usual[case.scenario, case.also], one["recorded"])


def _few_modules(walked: bool) -> None:
    """The guard replaces functions in some modules alone, and walks through what a script of these holds or through
    nothing: all of them take longer than all the rest."""
    import datawait.holders
    import datawait.stands

    few = {name: sys.modules[name] for name in MODULES if name in sys.modules}
    small = types.SimpleNamespace(modules=few, _current_frames=sys._current_frames)
    datawait.stands.sys = datawait.holders.sys = small  # type: ignore[assignment]
    if not walked:
        datawait.stands.holders = types.SimpleNamespace(find=lambda stand: iter(()))  # type: ignore[assignment]


def errors_at(place: int, times: int, outermost: Any, everything: bool) -> List[Tuple[str, int]]:
    """Which errors to raise at a place of the hook's, and at which call of it."""
    point = points[place // 2]
    if point.function.partition(".")[0] in ITS_OWN or point.what in SAFE | STANDARD_LIBRARY or _exempt(point):
        return []
    mine = sorted(set(OWN_ERRORS)) if everything else [OWN_ERRORS[place // 2 % len(OWN_ERRORS)]]
    if point.kind == "entry":
        return [(error, nth) for error in mine for nth in [1, 3][: 1 + (everything and times > 2)]]
    if point.kind == "end":
        return [(error, min(times, 3)) for error in mine]
    if point.kind == "call" and SYSTEM.match(point.what) and point.what not in ORIGINALS:
        return [(error, 1) for error in SYSTEM_ERRORS]
    return [(error, 1) for error in mine] if everything or point.function in outermost else []


def _exempt(point: Point) -> bool:
    function = point.function
    return (point.kind in ("entry", "end") and function in FRAMES) or (point.kind == "end" and function in DONE_LAST)


def cases_of(where: Reached, outermost: Any, everything: bool) -> List[Case]:
    return [
        Case(scenario, place // 2, error, place % 2, nth, also)
        for place, (scenario, also, times) in sorted(where.items())
        for error, nth in errors_at(place, times, outermost, everything)
    ]


def survey(campaign: Campaign, names: List[str], everything: bool) -> Tuple[Reached, List[int]]:
    """Where each place is come by first, and the functions that are entered from outside the hook."""
    numbers = {str(point): number for number, point in enumerate(points)}
    runs: List[Tuple[str, Optional[int]]] = [(name, None) for name in names]
    runs += [(name, numbers[point]) for name, point in FAILING if name in names]
    where: Reached = {}
    boundary = set()
    for name, also in runs:
        for place, how in campaign.reached(name, also).items():
            if how & 1:
                where.setdefault(place, (name, also, how >> 2))
            if how & 2:
                boundary.add(place // 2)
    if not everything:  # a process that was made only for what the script's own does not come by
        where = {place: how for place, how in where.items() if place % 2 == 0 or place - 1 not in where}
    return where, sorted(boundary)


def main() -> None:
    hook, folder, options = forks.torch_process()
    campaign = Campaign(hook, folder)
    names = options.get("scenarios") or list(campaign.scenarios)
    campaign.run_bare(names)
    everything = bool(options.get("everything"))
    where, boundary = survey(campaign, names, everything)
    outermost = {points[number].function for number in boundary} | set(FRAMES)
    cases = cases_of(where, outermost, everything)
    every = 1 if everything else 6 if "torch._dynamo" in sys.modules else 2
    cases = [case for number, case in enumerate(cases) if number % every == 0 or points[case.point].what in ORIGINALS]
    outcomes = campaign.run(cases)
    lost = campaign.all_lost(cases, outcomes)
    report = []
    for case, one in zip(cases, outcomes):
        del one["recorded"]
        report.append({**case._asdict(), **one, "lost": lost.get(case, []), **_shown(points[case.point])})
    reached = {place // 2 for place in where} | set(boundary)
    never = sorted({p.function for n, p in enumerate(points) if n not in reached and p.kind == "entry"})
    entered = sorted({points[number].function for number in boundary})
    print(json.dumps({"cases": report, "never": never, "entered": entered, "every": every}))


def _shown(point: Point) -> Dict[str, Any]:
    return {"function": point.function, "what": point.what, "kind": point.kind, "line": point.line}


if __name__ == "__main__":
    main()
