"""The trainings that beside.py has observed: TOOL ANSWER. Writes ns of the thread and of the process for each step."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any, Callable, List

sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))), os.path.dirname(os.path.abspath(__file__))]
tool, answer = sys.argv[1:]
if tool == "datawait":
    import datawait

    os.environ["DATAWAIT_SPOOL"] = spool = os.path.join(os.path.dirname(answer), "spool")
    os.mkdir(spool, 0o700)
    datawait.install()

import torch  # noqa: E402
import training  # noqa: E402

LOOPS = {"trivial-step": 2000, training.FAST: 400}
RUNS = 5


def steps(loader: Any, step: Callable[[], None], model: Any) -> None:
    """A training loop with what the tool asks to be written into it."""
    if tool == "TraceML":
        import traceml_ai as traceml

        for _ in loader:
            with traceml.trace_step(model):
                step()
    elif tool == "torch.profiler":
        # Its documentation's loop for long jobs: a schedule, and step() after each. 3 of 100 steps are recorded.
        from torch.profiler import ProfilerActivity, profile, schedule

        plan = schedule(wait=95, warmup=2, active=3)
        with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=lambda _: None) as profiler:
            for _ in loader:
                step()
                profiler.step()
    else:
        for _ in loader:
            step()


def main() -> None:
    torch.set_num_threads(1)
    if tool == "TraceML":
        import traceml_ai as traceml

        traceml.init(mode="auto")
    step = training.fast()
    told = {}
    for name, n in LOOPS.items():
        one = training.no_step if name == "trivial-step" else step
        steps(training.trivial(n), one, step.model)
        thread: List[float] = []
        process: List[float] = []
        for _ in range(RUNS):
            loader = training.trivial(n)
            before = time.thread_time_ns(), time.process_time_ns()
            steps(loader, one, step.model)
            thread.append((time.thread_time_ns() - before[0]) / n)
            process.append((time.process_time_ns() - before[1]) / n)
        told[name] = (n, statistics.median(thread), statistics.median(process))
    with open(answer + ".new", "w", encoding="utf-8") as file:
        json.dump(told, file)
    os.replace(answer + ".new", answer)


if __name__ == "__main__":
    main()
