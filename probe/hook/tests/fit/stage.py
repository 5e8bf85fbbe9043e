"""Runs on the side of the job: imports PyTorch once, then forks a child for every cell it is told to train.

A child is a training script of its own: it starts where the interpreter and PyTorch are loaded, opens its own ring and
has its own stdin, stdout and stderr. It ends as a script does, by an exception or by leaving the main module; but
taking PyTorch apart at the end of the interpreter takes longer than all the rest, so a cell that does not need that
ends where only that is left. Told and answered on stdin and stdout, one JSON object a line.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import sys
import threading


def main() -> None:
    import numpy  # noqa: F401
    import torch

    torch.set_num_threads(1)
    if hasattr(torch, "compile"):
        import torch._dynamo  # the first optimizer imports it, which takes seconds
    say({"ready": torch.__version__})
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            train(order)
            if not order["whole_exit"]:
                exit_but_for_the_modules()
            return
        say({"pid": pid})
        say({"status": os.waitpid(pid, 0)[1]})


def say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def train(order: "dict[str, object]") -> None:
    from witness import Witness

    os.setsid()
    os.chdir(order["folder"])
    redirect(0, os.devnull, os.O_RDONLY)
    redirect(1, "stdout", os.O_WRONLY | os.O_CREAT)
    redirect(2, "stderr", os.O_WRONLY | os.O_CREAT)
    module, _, name = order["cell"].partition(":")
    witness = Witness()
    try:
        getattr(importlib.import_module(module), name)(witness, **order["arguments"])
    finally:
        witness.testify()


def exit_but_for_the_modules() -> None:
    """What Py_FinalizeEx does (Python/pylifecycle.c) before it takes the modules apart."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def redirect(fd: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o600)
    os.dup2(opened, fd)
    os.close(opened)


if __name__ == "__main__":
    main()
