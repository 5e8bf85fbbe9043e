"""Trains one cell twice, bare and with the hook attached, and reads what is left of both runs.

The two Pythons that import PyTorch for it (stage.py) are started once; a cell runs in a forked child of each.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
from typing import Any, Dict, List, Optional

import ringreader
from conftest import ATTACH, HOOK

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 90  # seconds until a cell counts as hung


def surroundings(spool: Optional[str]) -> Dict[str, str]:
    """The environment of a job: observed where there is a spool, as `datawait record` does it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DATAWAIT", "PYTHON"))}
    environment.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    environment.update(TORCH_LOGS_FORMAT="%(message)s")  # torch.compile's log: no times, no pids
    if spool is not None:
        environment.update(PYTHONPATH=ATTACH + os.pathsep + HOOK, DATAWAIT_SPOOL=spool)
    return environment


class Stage:
    """A Python with PyTorch in which cells are trained."""

    def __init__(self, python: str, spool: Optional[str]) -> None:
        self.process = subprocess.Popen(
            [python, os.path.join(HERE, "stage.py")],
            env=surroundings(spool),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ready(self) -> "tuple[int, ...]":
        """Once PyTorch is imported: its version."""
        return tuple(int(part) for part in self._answer()["ready"].split("+")[0].split(".")[:2])

    def train(self, folder: str, order: Dict[str, Any]) -> "Run":
        self.process.stdin.write(json.dumps({"folder": folder, **order}).encode() + b"\n")
        self.process.stdin.flush()
        pid = self._answer()["pid"]
        try:
            return Run(folder, self._answer()["status"])
        except TimeoutError:
            os.killpg(pid, signal.SIGKILL)
            self._answer()
            raise

    def _answer(self) -> Any:
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            raise TimeoutError("no answer within %d s" % PATIENCE)
        line = self.process.stdout.readline()
        assert line, "the Python that trains the cells died"
        return json.loads(line)

    def close(self) -> None:
        """It has nothing to lose, and PyTorch takes seconds to end."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Run:
    """What one run of a cell left behind."""

    def __init__(self, folder: str, status: int) -> None:
        self.status = status
        self.stdout = self._text(folder, "stdout")
        self.stderr = self._text(folder, "stderr")
        account = json.loads(self._text(folder, "witness.json") or "null")
        assert account is not None, "the script left no account: %s" % self.stderr
        self.pid = account["pid"]
        self.same = account["same"]
        self.fetches: List[Dict[str, Any]] = account["fetches"]
        self.steps: List[Dict[str, Any]] = account["steps"]
        self.count = account["count"]
        self.loose = account["loose"]
        self.built = {
            int(name.rpartition("-")[2]): [json.loads(line) for line in self._text(folder, name).splitlines()]
            for name in os.listdir(folder)
            if name.startswith("built-")
        }
        self.files = self._files(folder)
        self.parts = {
            name: Run(os.path.join(folder, name), status)
            for name in os.listdir(folder)
            if os.path.exists(os.path.join(folder, name, "witness.json"))
        }

    @staticmethod
    def _text(folder: str, name: str) -> str:
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    @staticmethod
    def _files(folder: str) -> Dict[str, str]:
        """Everything else the script wrote: small files as they are, of others a digest."""
        found = {}
        for parent, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)
                if name not in ("stdout", "stderr", "witness.json") and not name.startswith("built-"):
                    with open(path, "rb") as file:
                        content = file.read()
                    small = len(content) < 4096 and content.isascii()
                    found[os.path.relpath(path, folder)] = (
                        content.decode() if small else hashlib.sha256(content).hexdigest()
                    )
        return found

    def workers(self) -> List[Any]:
        """What each worker built, in order, and its generators at the end; not which process it was."""
        by_start = sorted(self.built.values(), key=lambda rows: (rows[0][0], rows[0][2]))
        return [[row if row[0] == "rng" else row[:2] for row in rows] for rows in by_start]

    def effects(self) -> Dict[str, Any]:
        """All that must not differ."""
        said = [line for line in _without_our_frames(self.stderr).splitlines() if not _is_python_race(line)]
        effects = {"stdout": self.stdout, "stderr": said, "status": self.status, "files": self.files, **self.same}
        if not self.loose:
            effects["workers"] = self.workers()
        return effects


def _without_our_frames(text: str) -> str:
    """A traceback goes through the hook's wrappers and shows them; the rest of it must be as ever."""
    return re.sub(r'^  File "%s/datawait/.*\n(    .*\n)*' % re.escape(HOOK), "", text, flags=re.M)


def _is_python_race(line: str) -> bool:
    """CPython's resource tracker may lose the race with an exiting main process, hook or no hook."""
    return "resource_tracker" in line or "warnings.warn" in line


class Pair:
    """The same cell bare and observed."""

    def __init__(self, bare: Run, observed: Run, rings: "List[ringreader.Ring]") -> None:
        self.bare = bare
        self.observed = observed
        self.rings = rings
        self.mains = [ring for ring in rings if ring.declaration["pid"] == observed.pid]
        self.workers = [ring for ring in rings if ring.declaration.get("parent") == observed.pid]

    def part(self, name: str) -> "Pair":
        """The same for a process that the script made, by its folder."""
        return Pair(self.bare.parts[name], self.observed.parts[name], self.rings)

    @property
    def ring(self) -> ringreader.Ring:
        (ring,) = self.mains
        return ring


class Cells:
    """Trains cells; one per test session."""

    def __init__(self, python: str) -> None:
        self.folder = tempfile.mkdtemp(prefix="datawait-fit-")
        self.spool = tempfile.mkdtemp(prefix="datawait-test-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.bare = Stage(python, None)
        self.observed = Stage(python, self.spool)
        self.torch = self.bare.ready()
        assert self.observed.ready() == self.torch

    def __call__(self, cell: str, whole_exit: bool = False, **arguments: Any) -> Pair:
        order = {"cell": cell, "arguments": arguments, "whole_exit": whole_exit}
        self._empty()
        runs = []
        for stage in (self.bare, self.observed):
            folder = os.path.join(self.folder, "cell")  # the same path for both: a script may print it
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
            runs.append(stage.train(folder, order))
        return Pair(runs[0], runs[1], ringreader.rings(self.spool))

    def _empty(self) -> None:
        for path in glob.glob(os.path.join(self.spool, "ring-*")):
            os.unlink(path)

    def close(self) -> None:
        self.bare.close()
        self.observed.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.spool, ignore_errors=True)
