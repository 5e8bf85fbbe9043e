"""Programs of this folder, started by a test for all its cases: each runs trainings bare and hooked and prints JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from typing import Any

from conftest import HOOK

HERE = os.path.dirname(os.path.abspath(__file__))


def outcome(python: str, program: str, *options: str, patience: int = 600, **more: str) -> Any:
    """What a program printed that was given the hook and an empty folder, in memory where that can be; more is added to
    its environment."""
    folder = tempfile.mkdtemp(prefix="datawait-faults-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    os.chmod(folder, 0o755)  # some become another user
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DATAWAIT", "PYTHON"))}
    environment.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", **more)
    try:
        done = subprocess.run(
            [python, os.path.join(HERE, program), HOOK, folder, *options],
            env=environment, stdout=subprocess.PIPE, text=True, check=False, timeout=patience,
        )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert done.returncode == 0
    return json.loads(done.stdout)
