"""The output of this process: when its ring is opened, what it declares, and what happens when the hook fails.

``core`` holds everything the hot path looks at. A fork gives the child an empty one: it opens a ring of its own when
it first has something to say, so launchers and compile workers never make a file. An error inside the hook is noted
and turns the hook off for the rest of the process; it is never seen by the training script.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import layout, place
from .foreign import own
from .identity import boot_id, pid_namespace, start_ticks
from .ring import Ring
from .version import __version__

# Reasons in a `hook-error` note and in MARK 3.
IN_FETCH, IN_STEP, IN_ITERATOR, IN_WORKER, IN_DEVICE, IN_SPOOL, IN_TEST, IN_WATCH, IN_SAVE, IN_STACKS = range(1, 11)

UNNAMED_RUN = "none"  # torchrun's --rdzv-id where none is given (torch/distributed/run.py)
LONGEST_JOB = 128  # characters of a job's name


def testable() -> bool:
    """Whether this process is a rank that may be tested: the agent says so, or a program it was before (execve)."""
    permission = os.environ.get("DATAWAIT_TEST", "")
    try:
        return permission == "1" or (permission.startswith("1:") and permission == for_me_alone())
    except Exception:
        return False


def for_me_alone() -> str:
    """The permission to be tested, for this process and none of its children."""
    return "1:%d-%d" % (os.getpid(), start_ticks())


class Core:
    """State of the hook in this process. Read by every fetch, so plain attributes and no properties."""

    __slots__ = (
        "off", "ring", "opening", "opens", "folder", "role", "parent", "clock", "cpu_clock", "training", "thread",
        "inside", "step", "unit", "boundary", "block", "measure_at", "look_at", "timing", "device", "test",
        "test_due", "serving", "complained", "untold", "start_method", "meter", "guessed", "forked",
        "other_loaders", "sampler",
    )  # fmt: skip

    def __init__(self) -> None:
        self.folder: Optional[str] = None  # spool folder; None = never installed
        self.off = True
        self.clock: Callable[[], int] = time.perf_counter_ns  # tests put a false clock here
        self.cpu_clock: Callable[[], int] = time.thread_time_ns
        self.start_method: Optional[str] = None
        self.forked = False  # this process is a fork of one that had the hook
        self.other_loaders: List[str] = []  # modules of loaders that the hook does not see, in order of import
        self.reset()

    def reset(self) -> None:
        """What a process starts with; also in a forked child."""
        self.ring: Optional[Ring] = None
        self.opening = threading.RLock()
        self.opens = False  # a ring is being made
        self.role: Optional[str] = None  # "main" or "worker", fixed when the ring opens
        self.guessed = False  # "worker" only because a batch was built here before anything else happened
        self.parent: Optional[int] = None
        self.training = threading.main_thread().ident  # thread that trains: main, until another one steps
        self.thread = threading.main_thread().native_id
        self.inside: Any = None  # the Track of the outermost next() that the training thread is inside of
        self.step = 0  # steps finished, in the unit below
        self.unit = layout.BY_FETCH
        self.boundary = -1  # step count at the last step boundary seen
        self.block = 0
        self.measure_at = 0  # no thread CPU is read before this time
        self.look_at = 0  # look around no earlier than this
        self.timing = False  # the next fetch goes the long way, and is timed
        self.device: Any = None  # device clock around next(), see events.py
        self.meter: Any = None  # counters of the training thread
        self.sampler: Any = None  # what looks at stacks, see stacks.py
        self.test: Any = None  # cached-data test
        self.test_due = testable()
        self.serving = False  # its answer for the present step
        self.complained: Dict[str, int] = {}
        self.untold: List[Tuple[int, str, str]] = []  # errors before there was a ring to note them in

core = Core()


def configure(folder: str) -> None:
    """Names the spool folder and lets the hook observe. Nothing is created yet."""
    core.folder = folder
    core.off = False


def ring_for(role: str) -> Optional[Ring]:
    """This process's ring, opened now if need be; None when the hook is off."""
    if core.ring is not None or core.off:
        return core.ring
    with core.opening:  # threads that fetch for the first time at once
        if core.ring is not None or core.off:
            return core.ring
        if core.opens:
            return None  # a signal handler fetches while this thread is here
        try:
            core.opens = True
            if core.role is None:
                core.role = role
            capacity = layout.MAIN_CAPACITY if core.role == "main" else layout.WORKER_CAPACITY
            ring = Ring(_folder(), capacity, declare(core.role))
            ring.trains_on(core.thread)
            core.ring = ring
        except Exception as error:
            refuse(error)
            return None
        finally:
            core.opens = False
        try:
            _tell_kept(core.ring)
            _at_exit()
        except Exception as error:
            failed(IN_SPOOL, "opening the ring", error)
        return core.ring


def builds() -> None:
    """A batch is built here. A process that nobody made to build may be one that trains, and builds in its threads."""
    if core.role is None:
        core.role, core.guessed = "worker", not (core.forked or _is_child())


def _is_child() -> bool:
    """Whether multiprocessing made this process."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def trains() -> None:
    """A loader is about to be used here. If the process was taken for a worker, it goes on in a ring of its own."""
    if core.role is None:
        core.role = "main"
    if not core.guessed:
        return
    with core.opening:
        ring, core.ring, core.role, core.guessed = core.ring, None, "main", False
    if ring is not None:
        ring.close()


def _folder() -> str:
    folder = core.folder or os.environ.get("DATAWAIT_SPOOL")
    if not folder:
        raise place.Refused("no spool folder")
    return folder


def declare(role: str) -> Dict[str, Any]:
    """The declaration of SPEC §3. What is not known is None, never left to a guess."""
    torch = sys.modules.get("torch")
    emulated = os.environ.get("DATAWAIT_GPU") == "emulated"
    declaration: Dict[str, Any] = {
        "producer": role,
        "host": os.uname().nodename,
        "boot_id": boot_id(),
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "start_ticks": start_ticks(),
        "opened": time.monotonic_ns(),
        "pid_namespace": pid_namespace(),
        "argv": [str(word)[:200] for word in getattr(sys, "argv", [])[:32]],
        "python": "%d.%d.%d" % sys.version_info[:3],
        "torch": getattr(torch, "__version__", None) and str(torch.__version__),  # type: ignore[union-attr]
        "job": job_name(),
        "rank": _number("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"),
        "local_rank": _number("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
        "world_size": _number("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
        "restart": _number("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"),
        "hook_version": __version__,
        "start_method": start_method(),
        "threads": _threads(torch),
        "gpu_uuid": _emulated_uuid() if emulated else None,
        "emulated": emulated,
    }
    if role == "worker":
        declaration["parent"] = core.parent if core.parent is not None else parent_pid()
    return declaration


def _number(*names: str) -> Optional[int]:
    for name in names:
        try:
            return int(os.environ[name])
        except (KeyError, ValueError):
            continue
    return None


def job_name() -> Optional[str]:
    """What the job is called that this process belongs to: by whoever started it, by Slurm, or by torchrun."""
    given, slurm_job, slurm_name, run = (
        os.environ.get(name, "").strip()
        for name in ("DATAWAIT_JOB", "SLURM_JOB_ID", "SLURM_JOB_NAME", "TORCHELASTIC_RUN_ID")
    )
    name = given
    if not name and slurm_job:  # a name alone is that of every run of a script
        name = "%s-%s" % (slurm_name[: LONGEST_JOB - 16], slurm_job) if slurm_name else slurm_job
    if not name and run != UNNAMED_RUN:
        name = run
    return name[:LONGEST_JOB] or None


def _threads(torch: Any) -> Optional[int]:
    try:
        return int(torch.get_num_threads())  # a plain read, starts no threads
    except Exception as error:
        own(error)
        return None


def start_method() -> Optional[str]:
    """fork, spawn or forkserver, where something already chose; asking must not choose it."""
    if core.start_method is not None:
        return core.start_method
    context = sys.modules.get("multiprocessing.context")
    try:
        chosen = context._default_context.get_start_method(allow_none=True)  # type: ignore[union-attr]
        return chosen or context._default_context._default_context._name  # type: ignore[union-attr]
    except Exception as error:
        own(error)
        return None


def _emulated_uuid() -> Optional[str]:
    emulated = sys.modules.get("datawait.emulated")
    gpu = emulated.current() if emulated is not None else None
    return gpu.uuid if gpu is not None else None


def parent_pid() -> int:
    """The process whose loader this one builds for: multiprocessing's parent, which under forkserver is not getppid."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    try:
        parent = multiprocessing.parent_process()  # type: ignore[union-attr]
        if parent is not None and parent.pid:
            return int(parent.pid)
    except Exception as error:
        own(error)
    return os.getppid()


def now(reason: int, where: str) -> int:
    """The clock, for a caller with nothing of ours around it: 0 and the hook off where it fails."""
    try:
        return core.clock()
    except Exception as error:
        failed(reason, where, error)
        return 0


# --- failing ----------------------------------------------------------------------------------------------------


def failed(reason: int, where: str, error: BaseException) -> None:
    """Counts and notes an error of the hook itself and turns the hook off. Raises only what is not the hook's.

    A signal handler of the script may raise while hook code runs; its exception must go on, not vanish here.
    """
    own(error)
    core.off = True
    try:
        ring = core.ring
        if ring is not None:
            ring.ints[layout.I_HOOK] = layout.OFF
        _count(reason, where, error)
        if ring is None:  # there will be none
            _beside("refused: %s: %s" % (where, _describe(error)))
            return
        now = time.perf_counter_ns()
        try:
            ring.mark(layout.DISABLED, now, now, reason)
        except Exception:  # what is pending cannot be written: without it the mark can
            ring.pending.clear()
            ring.mark(layout.DISABLED, now, now, reason)
    except Exception as another:
        own(another)


def complain(reason: int, where: str, error: BaseException) -> None:
    """Counts an error, and notes it once per place; the hook goes on. Raises what is not the hook's, as failed does."""
    own(error)
    _count(reason, where, error)


def _count(reason: int, where: str, error: BaseException) -> None:
    try:
        times = core.complained.get(where, 0)
        core.complained[where] = times + 1
        ring = core.ring
        if ring is not None:
            ring.longs[layout.Q_ERRORS] += 1
        if times == 0:
            if ring is None:
                core.untold.append((reason, where, _describe(error)))
            else:
                _note_error(ring, reason, where, _describe(error))
    except Exception as another:
        own(another)


def _note_error(ring: Ring, reason: int, where: str, text: str) -> None:
    ring.note({"note": "hook-error", "reason": reason, "where": where, "error": text})


def _tell_kept(ring: Ring) -> None:
    """Notes the errors that came before there was a ring."""
    for reason, where, text in core.untold:
        ring.longs[layout.Q_ERRORS] += core.complained[where]
        _note_error(ring, reason, where, text)
    core.untold = []
    if core.role == "main":
        for module in core.other_loaders:
            _note_other_loader(ring, module)


def tell_other_loader(module: str) -> None:
    """A loader was imported that the hook does not see: noted in this process's ring, now or when it opens one."""
    if core.off:
        return
    core.other_loaders.append(module)
    if core.ring is None:
        if not _is_child():  # a loader's own workers import it too, in every epoch
            _beside("loader: " + module)
    elif core.role == "main":
        _note_other_loader(core.ring, module)


def _note_other_loader(ring: Ring, module: str) -> None:
    ring.note({"note": "other-loader", "module": module})


def _describe(error: BaseException) -> str:
    return ("%s: %s" % (type(error).__name__, error))[:400]


def refuse(error: BaseException) -> None:
    """No ring can be had: the hook is off, and the reason is left where the agent may find it."""
    own(error)
    core.off = True
    try:
        _beside("refused: " + (str(error) if isinstance(error, OSError) else _describe(error)))
    except Exception as another:
        own(another)


def _beside(line: str) -> None:
    """Says beside the rings what a process has to say that has none. Not in a spool that all share: there it would
    pile up."""
    folder = place.if_made(_folder())
    if folder is None:
        return
    path = os.path.join(folder, "seen-%d" % os.getpid())
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as seen:
        os.fchmod(fd, 0o600)
        if place.may_write(4096):
            seen.write((" ".join(line.split()) + "\n").encode("utf-8", "replace"))


# --- the end of a process, and forks ----------------------------------------------------------------------------


def _at_exit() -> None:
    atexit.register(finish, os.getpid())
    # Children of multiprocessing leave through os._exit after these finalizers, not through atexit.
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, finish, args=(os.getpid(),), exitpriority=-100)


def finish(pid: int) -> None:
    """Closes the ring of the process that opened it. An uncaught exception is no normal end."""
    try:
        ring = core.ring
        if ring is None or ring.pid != pid or os.getpid() != pid:
            return
        if ring.ints[layout.I_STATE] == layout.CLOSED:
            return
        _stop_sampling()
        now = core.clock()
        ring.let_go(None)
        ring.flush(now)
        ring.end_validation()
        if core.role == "main" and getattr(sys, "last_value", None) is None:
            ring.mark(layout.ENDED, now, now)
        ring.close()
    except Exception as error:
        complain(IN_SPOOL, "closing the ring", error)


def _stop_sampling() -> None:
    """What was seen of stacks is written last."""
    sampler, core.sampler = core.sampler, None
    try:
        if sampler is not None:
            sampler.stop()
    except Exception as error:
        complain(IN_STACKS, "ending the sampling of stacks", error)


_inherited: List[Any] = []


def _in_forked_child() -> None:
    core.off = True
    # The parent's are kept: letting go of a map closes a descriptor, whose number may be the script's by now, and of a
    # device's events asks a device that this process cannot use.
    _inherited.append((core.ring, core.test, core.device))
    core.ring = None
    try:
        core.reset()
        core.forked = core.folder is not None
        core.thread = threading.get_native_id()  # after os.fork threading goes on telling the parent's
        if core.folder is not None:
            core.off = os.environ.get("DATAWAIT_HOOK") == "off"
    except Exception as error:
        failed(IN_SPOOL, "after a fork", error)


os.register_at_fork(after_in_child=_in_forked_child)
