"""datawait beside TraceML and torch.profiler, each as its own documentation says to use it, in the same run.

Neither can be taken out of a process again, so every round starts a process for each, one after the other, and a ratio
is of one round. CPU of the training thread, and of the whole process: TraceML sends from a thread of its own; what its
aggregator takes, a process of its own, is not in here.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional

import measure

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "beside_job.py")
ROUNDS = min(6, measure.ROUNDS)


def main() -> None:
    tools = ["bare", "datawait"]
    for tool, module in (("torch.profiler", "torch.profiler"), ("TraceML", "traceml_ai")):
        if importlib.util.find_spec(module) is None:
            print("NOT MEASURED: %s is not installed" % tool, file=sys.stderr)
        else:
            tools.append(tool)
    with tempfile.TemporaryDirectory(prefix="datawait-beside-") as folder:
        for number in range(ROUNDS):
            order = tools[:]
            random.Random(number).shuffle(order)
            told = {tool: run(tool, os.path.join(folder, "%d-%s" % (number, tool))) for tool in order}
            for tool in tools:
                if told[tool] is not None:
                    tell(tool, told[tool], told["bare"])


def run(tool: str, folder: str) -> Optional[Dict[str, Any]]:
    """What the job says of itself, None (and said) where it failed."""
    os.mkdir(folder)
    answer = os.path.join(folder, "answer")
    done = subprocess.run(
        command(tool, answer, folder), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode != 0 or not os.path.exists(answer):
        print("NOT MEASURED: %s ended with %d: %s" % (tool, done.returncode, done.stdout[-2000:]), file=sys.stderr)
        if tool == "bare":
            raise SystemExit("error: the bare job failed")
        return None
    with open(answer, encoding="utf-8") as file:
        return json.load(file)


def command(tool: str, answer: str, folder: str) -> List[str]:
    if tool != "TraceML":
        return [sys.executable, JOB, tool, answer]
    # `traceml run train.py --args …` is the documented way; ports of its own, as a machine may run two.
    traceml = os.path.join(os.path.dirname(sys.executable), "traceml")
    return [
        traceml, "run", JOB, "--logs-dir", os.path.join(folder, "logs"),
        "--run-name", "bench", "--aggregator-port", free_port(), "--master-port", free_port(), "--args", tool, answer,
    ]  # fmt: skip


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def tell(tool: str, told: Dict[str, Any], bare: Dict[str, Any]) -> None:
    for loop, (n, ns, process) in told.items():
        before = bare[loop][1]
        units = {"ns": ns, "process_ns": process}
        if tool != "bare":
            units.update(added_ns=ns - before, x_bare=ns / before)
        measure.report("Beside/%s/%s" % (loop, tool), n, **units)
