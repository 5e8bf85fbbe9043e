"""What the hook's tests share: a spool folder, the hook on a clock that the test moves, jobs run as processes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any, Callable, Iterator, List, Optional

import pytest

HOOK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTACH = os.path.join(HOOK, "attach")
sys.path.insert(0, HOOK)
sys.path.insert(0, os.path.join(HOOK, "tests"))

import ringreader  # noqa: E402

pytest.register_assert_rewrite("agreement")  # of fit/


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "xdist_group(name): these run in one process, for what they share")


def _has_torch(python: str) -> bool:
    find = "import sys, importlib.util as u; sys.exit(u.find_spec('torch') is None)"
    try:
        return subprocess.run([python, "-c", find], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def find_torch() -> Optional[str]:
    """A Python that has PyTorch: the one named by DATAWAIT_PYTHON, this one, or the system's."""
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    for python in (os.environ.get("DATAWAIT_PYTHON"), "/usr/bin/python3"):
        if python and _has_torch(python):
            return python
    return None


@pytest.fixture(scope="session")
def torch_python() -> str:
    python = find_torch()
    if python is None and os.environ.get("CI") == "true":
        pytest.fail("no Python with PyTorch here, and CI is meant to have one")
    if python is None:
        pytest.skip("NOT TESTED: no Python with PyTorch here")
    return python


@pytest.fixture
def spool() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="datawait-test-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def no_permission() -> Iterator[None]:
    """A test that began in this process leaves the permission to be tested in its environment."""
    yield
    os.environ.pop("DATAWAIT_TEST", None)


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    """Every process that a later test starts would inherit what a test leaves blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    left = signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert left == before


class Job:
    """Runs a script as `datawait record` would: hook on PYTHONPATH, spool in the environment."""

    def __init__(self, folder: str, spool: str) -> None:
        self.folder = folder
        self.spool = spool

    def __call__(
        self, script: str, *args: str, python: str = sys.executable, hook: bool = True, timeout: float = 120, **env: str
    ) -> "subprocess.CompletedProcess[str]":
        path = os.path.join(self.folder, "train.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("DATAWAIT", "PYTHON"))}
        environment.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", **env)
        if hook:
            environment.update(PYTHONPATH=ATTACH + os.pathsep + HOOK, DATAWAIT_SPOOL=self.spool)
        return subprocess.run(
            [python, path, *args],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd=self.folder,
        )

    def rings(self) -> List[ringreader.Ring]:
        return ringreader.rings(self.spool)

    def main(self) -> ringreader.Ring:
        return ringreader.one(self.spool)

    def workers(self) -> List[ringreader.Ring]:
        return [ring for ring in self.rings() if ring.declaration["producer"] == "worker"]


@pytest.fixture
def job(tmp_path: Any, spool: str) -> Job:
    return Job(str(tmp_path), spool)


class Clock:
    """Nanoseconds that pass only when told; every look costs `tick`."""

    def __init__(self, now: int = 1_000_000_000_000, tick: int = 0) -> None:
        self.now = now
        self.tick = tick

    def __call__(self) -> int:
        self.now += self.tick
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


class Hook:
    """The hook in this process, on false clocks, writing into a spool of its own."""

    def __init__(self, spool: str, short: bool) -> None:
        from datawait import stream

        self.spool = spool
        self.short = short
        self.core = stream.core
        self.clock = Clock()
        self.cpu = Clock(now=500)
        self.core.reset()
        self.core.role = "main"
        self.core.clock = self.clock
        self.core.cpu_clock = self.cpu
        stream.configure(spool)

    def read(self) -> ringreader.Ring:
        assert self.core.ring is not None
        self.core.ring.flush(self.clock.now)
        return ringreader.Ring(self.core.ring.path)

    def iterator(self, call: Callable[[Any], Any], number: int = 0, **attributes: Any) -> Callable[[], Any]:
        """A loader of one iterator whose next() is call; returns the observed next()."""
        from datawait.fetch import Loader, Track, fetch, observing

        track = Track(Loader(number, {"note": "loader", "loader": number}))
        for name, value in attributes.items():
            setattr(track, name, value)
        iterator = Observed()
        iterator._datawait = track
        short = observing(call)

        def observed() -> Any:
            return short(iterator) if self.short else fetch(track, call, iterator)

        observed.track = track  # type: ignore[attr-defined]
        return observed


class Observed:
    """An iterator as a loader makes it: with the hook's Track in it."""

    _datawait: Any = None


def pytest_generate_tests(metafunc: Any) -> None:
    """The tests of the hot path run on both ways through a fetch: no test may be able to tell them apart."""
    if metafunc.module.__name__ == "test_fetch" and "hook" in metafunc.fixturenames:
        metafunc.parametrize("hook", ["short", "long"], indirect=True)


@pytest.fixture
def hook(spool: str, request: Any) -> Iterator[Hook]:
    from datawait import fetch, stream

    core = stream.core
    before = (core.folder, core.off, core.clock, core.cpu_clock, fetch.is_grad_enabled)
    try:
        yield Hook(spool, getattr(request, "param", "short") == "short")
    finally:
        core.reset()
        core.folder, core.off, core.clock, core.cpu_clock, fetch.is_grad_enabled = before


@pytest.fixture(scope="session")
def cells(torch_python: str) -> Iterator[Any]:
    """Trains cells of fit/ with and without the hook."""
    sys.path.insert(0, os.path.join(HOOK, "tests", "fit"))
    from launcher import Cells

    made = Cells(torch_python)
    yield made
    made.close()
