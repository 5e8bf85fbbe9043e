"""Attaching without touching the script: silent, harmless, and out of the way of others."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest
from conftest import ATTACH, HOOK


def python(code, spool=None, path=(ATTACH, HOOK), flags=(), **env):
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        **env,
    }
    if spool:
        environment["DATAWAIT_SPOOL"] = spool
    return subprocess.run(
        [sys.executable, *flags, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_process_that_loads_nothing_leaves_only_its_trace(spool):
    done = python("print('hello')", spool)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")
    (seen,) = os.listdir(spool)
    assert seen.startswith("seen-") and os.path.getsize(os.path.join(spool, seen)) == 0


def test_nothing_happens_without_a_spool(spool):
    done = python("import sys; print([m for m in sys.modules if m.startswith('datawait')])")
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_off_is_off(spool):
    code = "import sys, datawait; print(datawait.install(), 'datawait.fetch' in sys.modules)"
    done = python(code, spool, DATAWAIT_HOOK="off")
    assert (done.stdout, done.stderr) == ("False False\n", "") and os.listdir(spool) == []


def test_importing_the_package_does_nothing(spool):
    code = "import sys, datawait; print(sorted(m for m in sys.modules if 'datawait' in m), len(sys.meta_path))"
    done = python(code, path=(HOOK,))
    plain = python("import sys; print(len(sys.meta_path))", path=(HOOK,))
    assert done.stdout == "['datawait', 'datawait.version'] %s" % plain.stdout


@pytest.mark.parametrize("spooled", [False, True])
def test_the_sitecustomize_it_hides_still_runs(spool, tmp_path, spooled):
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['THEIRS'] = __file__\n")
    code = "import os, sitecustomize; print(os.environ['THEIRS'], sitecustomize.__file__)"
    done = python(code, spool if spooled else None, path=(ATTACH, HOOK, str(tmp_path)))
    theirs = str(tmp_path / "sitecustomize.py")
    assert (done.stdout, done.stderr) == ("%s %s\n" % (theirs, theirs), "")


def test_a_broken_sitecustomize_fails_as_it_would_alone(spool, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('theirs')\n")
    alone = python("print(1)", path=(str(tmp_path),))
    done = python("print(1)", spool, path=(ATTACH, HOOK, str(tmp_path)))
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout)
    assert done.stderr.splitlines()[-1] == alone.stderr.splitlines()[-1]
    assert os.listdir(spool)  # ours ran all the same


def test_a_missing_spool_is_no_reason_to_fail(tmp_path):
    done = python("print(1)", str(tmp_path / "gone"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_isolated_pythons_are_not_attached(spool, flag):
    """They ignore PYTHONPATH or sitecustomize: a report says hook-not-loaded."""
    done = python("print(1)", spool, flags=(flag,))
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert os.listdir(spool) == []


def test_imports_are_found_as_before(spool, tmp_path):
    """The finder steps aside: origin, loader and cached flag of a patched module are the real ones."""
    package = tmp_path / "torch" / "utils" / "data"
    package.mkdir(parents=True)
    for folder in (tmp_path / "torch", tmp_path / "torch" / "utils", package):
        (folder / "__init__.py").write_text("")
    (package / "dataloader.py").write_text("VALUE = 1\n")  # not PyTorch's: patching it fails
    code = (
        "import torch.utils.data.dataloader as d, inspect, sys; print(d.VALUE, inspect.getsource(d).strip(),"
        " type(d.__loader__).__name__, 'exec_module' in vars(d.__loader__))"
    )
    done = python(code, spool, path=(ATTACH, HOOK, str(tmp_path)))
    assert (done.stdout, done.stderr) == ("1 VALUE = 1 SourceFileLoader False\n", "")


def test_finding_a_module_is_not_importing_it(spool, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    (tmp_path / "torch" / "serialization.py").write_text("def save(): pass\n")
    code = (
        "import importlib.util as u; u.find_spec('torch.serialization');"
        "import torch.serialization as s; print(hasattr(s.save, '__wrapped__'))"
    )
    done = python(code, spool, path=(ATTACH, HOOK, str(tmp_path)))
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_explicit_install_makes_its_own_folder():
    code = (
        "import datawait, os; assert datawait.install(); list(datawait.watch([1, 2]));"
        "from datawait import stream; print(stream.core.ring.path)"
    )
    done = python(code, path=(HOOK,))
    path = done.stdout.strip()
    folder = os.path.dirname(path)
    try:
        assert folder.startswith("/dev/shm/datawait-%d/" % os.getuid())
        pid_and_start = os.path.basename(path)[len("ring-") : -len(".dwr")]
        assert os.path.basename(folder) == pid_and_start  # no later process finds itself in this folder
        assert os.stat(folder).st_mode & 0o777 == 0o700 and os.path.exists(path)
    finally:
        os.unlink(path)
        os.rmdir(folder)


def test_old_pythons_may_read_sitecustomize():
    """It is the one file that any Python on the machine runs."""
    with open(os.path.join(ATTACH, "sitecustomize.py"), encoding="utf-8") as file:
        source = file.read()
    ast.parse(source, feature_version=(3, 4))
