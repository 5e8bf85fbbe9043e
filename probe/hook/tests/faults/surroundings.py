"""Runs trainings in hostile surroundings, each bare and hooked, and prints what both showed."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import clocks  # noqa: F401
import crowds  # noqa: F401
import forks
import interruptions  # noqa: F401
import limits  # noqa: F401
import processes  # noqa: F401
import spools  # noqa: F401
from trainings import SURROUNDINGS


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
    names = options or list(SURROUNDINGS)
    tasks = []
    for name in names:
        tasks.append(forks.Task(SURROUNDINGS[name], None))
        tasks.append(forks.Task(SURROUNDINGS[name], lambda spool: forks.sitecustomize(code, site)))

    def done(number: int, fork: Any, outcome: Any) -> Any:
        told = forks.told(fork.spool)
        rings = [_summary(ring) for ring in told.rings]
        return {"outcome": outcome, "errors": told.errors, "wrong": told.wrong, "rings": rings}

    results = forks.run(tasks, folder, done)
    report = {}
    for at, name in enumerate(names):
        bare, hooked = results[2 * at], results[2 * at + 1]
        report[name] = {**hooked, "differences": forks.differences(bare["outcome"], hooked["outcome"]),
                        "bare": bare["outcome"]}  # fmt: skip
    print(json.dumps(report))


def _summary(ring: Any) -> Dict[str, Any]:
    return {
        "producer": ring.declaration["producer"], "fetches": ring.fetches, "step": ring.step, "hook": ring.hook,
        "state": ring.state, "capacity": ring.capacity, "notes_lost": ring.notes_lost, "head": ring.head,
        "notes": sorted({note["note"] for note in ring.notes}),
        "longest": max((f.exit - f.enter for f in ring.all("FETCH")), default=0),
        "shortest": min((f.exit - f.enter for f in ring.all("FETCH")), default=0),
        "wait": [ring.totals(n)["wait"] for n in range(32)],
    }  # fmt: skip


if __name__ == "__main__":
    main()
