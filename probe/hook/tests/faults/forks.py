"""Many runs of one process that has imported PyTorch once: each in a fork of its own, with and without the hook."""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import time
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import ringreader

PATIENCE = 60  # seconds a run may take
AT_ONCE = 2

Act = Callable[[str], Any]  # is given an empty folder, returns what must not depend on the hook


class Outcome(NamedTuple):
    """All that a run shows to the outside."""

    status: int  # as waitpid gives it, -1 = it hung
    result: Any
    stdout: str
    stderr: str


class Told(NamedTuple):
    """What the spool tells afterwards."""

    errors: List[str]  # of the hook
    wrong: List[str]  # rings that cannot be read
    rings: List[ringreader.Ring]


class Task(NamedTuple):
    act: Act
    attach: Optional[Callable[[str], None]]  # is given the spool folder; None = a bare run


class Fork:
    """A task in a child of its own, with an empty folder and a spool."""

    def __init__(self, task: Task, folder: str, slot: int) -> None:
        self.folder = folder
        self.slot = slot  # which of those that run at once
        self.spool = os.path.join(folder, "spool")
        os.makedirs(self.spool, mode=0o700)
        sys.stdout.flush()
        self.deadline = time.monotonic() + PATIENCE
        self.pid = os.fork()
        if self.pid == 0:
            self._child(task)

    def _child(self, task: Task) -> None:
        code = 70
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            os.setsid()
            for fd, name in ((1, "stdout"), (2, "stderr")):
                file = os.open(os.path.join(self.folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                os.dup2(file, fd)
                os.close(file)
            code = self._perform(task)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _perform(self, task: Task) -> int:
        """As an interpreter does it: sitecustomize, the script, what an exception makes of it, atexit."""
        work = os.path.join(self.folder, "work")
        os.mkdir(work)
        os.chdir(work)
        atexit._clear()
        if task.attach is not None:
            os.environ["DATAWAIT_SPOOL"] = self.spool
            task.attach(self.spool)
        code = 0
        try:
            text = json.dumps(task.act(work))
            with open(os.path.join(self.folder, "result"), "w", encoding="utf-8") as file:
                file.write(text)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            traceback.print_exc()
            code = 1
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        return code

    def finished(self) -> Optional[int]:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            return status
        if time.monotonic() > self.deadline:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return -1
        return None

    def outcome(self, status: int) -> Outcome:
        texts = []
        for name in ("stdout", "stderr"):
            with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                texts.append(file.read())
        result = None
        path = os.path.join(self.folder, "result")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                result = json.load(file)
        return Outcome(status, result, *texts)


def run(
    tasks: List[Task], folder: str, done: Callable[[int, Fork, Outcome], Any],
    starting: Callable[[int], None] = lambda slot: None,
) -> List[Any]:  # fmt: skip
    """Every task, two at a time; what ``done`` made of each, in their order. The folders are gone afterwards."""
    results: Dict[int, Any] = {}
    running: Dict[int, Fork] = {}
    waiting = list(enumerate(tasks))
    gc.collect()
    gc.freeze()  # what there is by now is no concern of a collection in a fork
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # it then waits for whoever asks for it
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            number, task = waiting.pop(0)
            slot = min(set(range(AT_ONCE)) - {fork.slot for fork in running.values()})
            starting(slot)
            running[number] = Fork(task, os.path.join(folder, "run-%d" % number), slot)
        for number, fork in list(running.items()):
            status = fork.finished()
            if status is not None:
                results[number] = done(number, fork, fork.outcome(status))
                shutil.rmtree(fork.folder, ignore_errors=True)
                del running[number]
                break
        else:
            signal.sigtimedwait({signal.SIGCHLD}, 1.0)
    return [results[number] for number in range(len(tasks))]


def sitecustomize(code: Any, path: str, **names: Any) -> None:
    """Runs what attaches the hook, as site.execsitecustomize does."""
    before = sys.modules.pop("sitecustomize", None)
    try:
        exec(code, {"__file__": path, **names})
    except Exception as error:
        print("Error in sitecustomize: %s" % error, file=sys.stderr)
    if before is not None:
        sys.modules["sitecustomize"] = before


def told(spool: str) -> Told:
    errors: List[str] = []
    wrong: List[str] = []
    rings: List[ringreader.Ring] = []
    for name in sorted(os.listdir(spool)) if os.path.isdir(spool) else []:
        path = os.path.join(spool, name)
        if name.startswith("seen-"):
            with open(path, encoding="utf-8") as file:
                errors += [line.strip() for line in file if line.startswith("refused: ")]
        elif name.endswith(".dwr"):
            try:
                ring = ringreader.Ring(path)
            except AssertionError as error:
                wrong.append("%s cannot be read: %s" % (name, error))
                continue
            rings.append(ring)
            errors += ["%s: %s" % (note["where"], note["error"]) for note in ring.note("hook-error")]
            if ring.errors and not ring.note("hook-error"):
                errors.append("%d errors" % ring.errors)
            if ring.hook == 2:
                errors.append("off")
    return Told(errors, wrong, rings)


def differences(bare: Outcome, outcome: Outcome) -> List[str]:
    """How a run differs from the one without the hook."""
    if outcome.status == -1:
        return ["hangs"]
    found = []
    for name in ("status", "stdout", "stderr", "result"):
        if getattr(outcome, name) != getattr(bare, name):
            shown = getattr(outcome, name)
            found.append("%s differs: %s" % (name, shown if name == "stderr" else str(shown)[:300]))
    return found


def torch_process() -> Tuple[str, str, Any]:
    """For a program called with the hook's folder and one of its own: PyTorch alone on one thread, with what it would
    import in each fork when the first optimizer is made (seconds)."""
    hook, folder = sys.argv[1:3]
    os.environ["OMP_NUM_THREADS"] = "1"
    with contextlib.suppress(ImportError):  # older than 2.0
        import torch._dynamo  # noqa: F401
    sys.path.append(hook)  # where a spawned worker would find the package
    return hook, folder, json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
