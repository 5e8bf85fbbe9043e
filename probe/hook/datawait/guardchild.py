"""Children of a run that has trained on repeated batches may not save for it either.

A rank that arms its save-guard leaves a file in the spool folder that says since when, and which process will end the
run. A Python that starts later reads it when the hook is installed and arms a guard of its own; one that was there
before looks for it at each save that the hook sees (saving.py). A child that is held says so in a file of its own,
``held-<pid>``, by which the agent knows that the run is to be ended, and waits.

DataLoader workers are not held: they have no model, and their datasets may fill a cache.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from typing import Any, Optional, Tuple

from .control import NAME, Agent
from .foreign import own
from .parking import LONGEST, NAP, RunEnded
from .place import if_made
from .stream import core

FLAG, HELD = "guard", "held-%d"

_guard: Any = None  # of a Python that started later


def begin(folder: str, limit: int, agent: Optional[Agent]) -> None:
    """Says that what is older than limit (ns) is to be kept from here on. The first rank of a node says it for all.

    Raises where that cannot be said: without it the run's children would save."""
    pid, locks = (0, False) if agent is None else (agent.pid, agent.page is not None)
    part = os.path.join(folder, "%s-%d.part" % (FLAG, os.getpid()))
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        try:
            os.write(fd, b"%d %d %d\n" % (limit, pid, locks))
        finally:
            os.close(fd)
        os.link(part, os.path.join(folder, FLAG))  # whole, or not at all
    except FileExistsError as error:  # another rank said it
        own(error)
    finally:
        os.unlink(part)


def begun(folder: Optional[str]) -> Optional[Tuple[int, Agent]]:
    """The limit and the agent, None while no rank has served a cached batch. Raises where that cannot be read."""
    if folder is None:
        return None
    try:
        with open(os.path.join(folder, FLAG), "rb") as flag:
            limit, pid, locks = map(int, flag.read(64).split())
        return limit, Agent(pid, os.path.join(folder, NAME) if locks else None)
    except (FileNotFoundError, NotADirectoryError) as error:
        own(error)
        return None


def arm(folder: str) -> None:
    """At the start of a Python: guards it if it belongs to a run that must not save any more."""
    global _guard
    private = _private(folder)
    found = begun(private)
    if private is None or found is None or _guard is not None:
        return
    from .saveguard import SaveGuard

    limit, agent = found
    stop = functools.partial(hold, private, agent)
    _guard = SaveGuard(stop, private, stop)
    _guard.arm(limit)


def refuse(folder: Optional[str], call: str, target: str) -> None:
    """Before a save that the hook sees in a process that is no rank."""
    if folder is None or in_loader_worker():
        return
    private = _private(folder)
    found = begun(private)
    if private is not None and found is not None:
        hold(private, found[1], call, target)


def _private(folder: str) -> Optional[str]:
    """Where a rank of this user leaves its flag: in a shared spool, anybody could leave one."""
    try:
        return if_made(folder)
    except (FileNotFoundError, NotADirectoryError) as error:
        own(error)
        return None


def hold(folder: str, agent: Optional[Agent], call: str, target: str) -> None:
    """Tells the agent and waits for the end, which comes from outside. With the agent gone the save is refused."""
    _tell(folder, call, target)
    until = time.monotonic_ns() + LONGEST
    while (agent is None or not agent.gone()) and time.monotonic_ns() < until:
        time.sleep(NAP)
    raise RunEnded(
        "datawait: %s (%s) refused: the run that started this process trained on repeated batches to measure its "
        "loader, and the datawait that was to end it is gone" % (call, target)
    )


def _tell(folder: str, call: str, target: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    path = os.path.join(folder, HELD % os.getpid())
    try:
        fd = os.open(path + ".part", flags, 0o600)
        try:
            os.write(fd, json.dumps({"call": call[:200], "target": target[:400]}).encode() + b"\n")
        finally:
            os.close(fd)
        os.rename(path + ".part", path)  # so that nobody reads half of it
    except OSError as error:
        own(error)


def in_loader_worker() -> bool:
    """Also of loaders that are not PyTorch's, where they say what they build."""
    if core.role == "worker":
        return True
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None
