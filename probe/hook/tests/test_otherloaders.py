"""Loaders the hook cannot see are told by name, whenever they are imported; what only looks like one is not."""

from __future__ import annotations

import os

import pytest
import ringreader
from test_attach import ATTACH, HOOK, python


def stand_in(folder, module, code="LOADER = object()\n"):
    """A module of that name, as an installed package would hold it."""
    at = folder
    for part in module.split(".")[:-1]:
        at = at / part
        at.mkdir(exist_ok=True)
        (at / "__init__.py").touch()
    (at / (module.split(".")[-1] + ".py")).write_text(code)
    return (ATTACH, HOOK, str(folder))


def told(spool):
    (ring,) = (ring for ring in ringreader.rings(spool) if ring.declaration["producer"] == "main")
    return [note["module"] for note in ring.notes if note["note"] == "other-loader"]


def beside(spool):
    lines = []
    for name in os.listdir(spool):
        if name.startswith("seen-"):
            with open(os.path.join(spool, name), encoding="utf-8") as file:
                lines += file.read().splitlines()
    return lines


TRAIN = "import datawait; list(datawait.watch([1, 2]))\n"
DALI = "import nvidia.dali.plugin.pytorch as d; assert d.LOADER\n"


@pytest.mark.parametrize("code", [DALI + TRAIN, TRAIN + DALI, DALI + TRAIN + DALI], ids=["before", "after", "twice"])
def test_a_ring_names_the_loader_whenever_it_was_imported(spool, tmp_path, code):
    done = python(code, spool, path=stand_in(tmp_path, "nvidia.dali.plugin.pytorch"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert told(spool) == ["nvidia.dali.plugin.pytorch"]


def test_a_process_without_a_ring_names_it_beside(spool, tmp_path):
    done = python(DALI, spool, path=stand_in(tmp_path, "nvidia.dali.plugin.pytorch"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert ringreader.rings(spool) == [] and beside(spool) == ["loader: nvidia.dali.plugin.pytorch"]


def test_a_forked_trainer_names_what_its_parent_imported(spool, tmp_path):
    code = DALI + "import os; pid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: exec(%r)\n" % TRAIN
    done = python(code, spool, path=stand_in(tmp_path, "nvidia.dali.plugin.pytorch"))
    assert (done.returncode, done.stderr) == (0, "")
    assert told(spool) == ["nvidia.dali.plugin.pytorch"]


def test_a_worker_names_nothing(spool, tmp_path):
    code = DALI + "import datawait\nwith datawait.building(0): pass\n"
    worker = "import os; pid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: exec(%r)\n" % code
    done = python(worker, spool, path=stand_in(tmp_path, "nvidia.dali.plugin.pytorch"))
    assert (done.returncode, done.stderr) == (0, "")
    (ring,) = ringreader.rings(spool)
    assert ring.declaration["producer"] == "worker" and not [n for n in ring.notes if n["note"] == "other-loader"]


def test_a_spawned_worker_leaves_no_line(spool, tmp_path):
    path = stand_in(tmp_path, "nvidia.dali.plugin.pytorch")
    (tmp_path / "work.py").write_text(DALI + "def work(): pass\n")
    code = (
        "import multiprocessing as m, sys\n"
        "if __name__ == '__main__':\n"
        "    from importlib import import_module\n"
        "    p = m.get_context('spawn').Process(target=import_module, args=('work',)); p.start(); p.join()\n"
        "    sys.exit(p.exitcode)\n"
    )
    (tmp_path / "main.py").write_text(code)
    done = python("import runpy; runpy.run_path(%r, run_name='__main__')" % str(tmp_path / "main.py"), spool, path=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert beside(spool) == []


def test_a_module_of_ones_own_is_no_loader(spool, tmp_path):
    (tmp_path / "datasets.py").write_text("ROWS = 3\n")
    done = python("import datasets\n" + TRAIN, spool, path=(ATTACH, HOOK, str(tmp_path)))
    assert (done.returncode, done.stderr) == (0, "")
    assert told(spool) == [] and beside(spool) == []


def test_an_import_fails_as_it_would(spool, tmp_path):
    path = stand_in(tmp_path, "ffcv.loader", "raise OSError('libturbojpeg is missing')\n")
    code = "try:\n    import ffcv.loader\nexcept OSError as error:\n    print(error)\n" + TRAIN
    done = python(code, spool, path=path)
    assert (done.stdout, done.stderr) == ("libturbojpeg is missing\n", "")
    assert told(spool) == []


def test_a_note_that_cannot_be_left_costs_nothing(spool, tmp_path):
    code = "import os, shutil; shutil.rmtree(os.environ['DATAWAIT_SPOOL'])\n" + DALI
    done = python(code + "print('on')", spool, path=stand_in(tmp_path, "nvidia.dali.plugin.pytorch"))
    assert (done.stdout, done.stderr) == ("on\n", "")
