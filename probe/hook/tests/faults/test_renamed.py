"""With each name inside PyTorch that the hook uses called otherwise (renamed.py): training ends as it would without
the hook, what it no longer sees is unknown or told, and the rest is seen as ever."""

from __future__ import annotations

import ast
import os

import pytest
from conftest import HOOK
from programs import outcome
from renamed import NAMES

pytestmark = pytest.mark.xdist_group("renamed")


@pytest.fixture(scope="module")
def ran(torch_python):
    return outcome(torch_python, "renamed.py", PYTHONWARNINGS="ignore")


@pytest.mark.parametrize("name", ["", *NAMES])
def test_training_ends_as_it_would_without_the_hook(ran, name):
    status, result, _, stderr = ran[name]["bare"]
    assert (status, stderr) == (0, "") and result is not None
    assert ran[name]["differences"] == [] and ran[name]["wrong"] == []


# What is told, by name.
TOLD = {
    "_reset": "later epochs of kept workers are unseen",
    "_worker_loop": "workers are unseen",
    "index_queue": "a worker loop with other arguments than are known",
    "data_queue": "a worker loop with other arguments than are known",
    "_BaseDataLoaderIter": "no attribute '_BaseDataLoaderIter'",
    "_MultiProcessingDataLoaderIter": "no attribute '_MultiProcessingDataLoaderIter'",
}
STEPS = "steps are unseen"


def step_hook(ran):
    """The name by which this PyTorch hooks optimizers."""
    (name,) = [name for name in ("_hook_for_profile", "_patch_step_function") if ran[name]["errors"]]
    return name


@pytest.mark.parametrize("name", ["", *NAMES])
def test_what_is_no_longer_seen_is_told(ran, name):
    expected = STEPS if name == step_hook(ran) else TOLD.get(name)
    errors = ran[name]["errors"]
    assert any(expected in error for error in errors) if expected else errors == []


def main_ring(ran, name):
    (ring,) = [ring for ring in ran[name]["rings"] if ring["producer"] == "main"]
    return ring


# What differs in the ring of the main process: it is unknown there. Loaders that only their lengths told apart become
# one where that is unknown.
UNKNOWN = {
    "_prefetch_factor": {"iterators"}, "_workers": {"workers"}, "_index_sampler": {"iterators", "iterable"},
    "_worker_result_queue": {"ready"}, "_data_queue": {"ready"}, "_task_info": {"ready"},
    "_tasks_outstanding": {"ready"}, "_reset": {"iterators", "batch"}, "_worker_loop": set(),
}  # fmt: skip
BLIND = {"_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BLIND])
def test_everything_else_is_seen_as_ever(ran, name):
    usual, now = main_ring(ran, ""), main_ring(ran, name)
    differing = {key for key in usual if usual[key] != now[key]}
    assert differing == ({"unit"} if name == step_hook(ran) else UNKNOWN.get(name, set()))
    if name not in ("_worker_loop", "index_queue", "data_queue"):
        built = sorted(ring["batches"] for ring in ran[name]["rings"] if ring["producer"] == "worker")
        assert built == [1, 2, 4, 6]
        assert sum(ring["raised"] for ring in ran[name]["rings"]) == 1


def test_what_differs_is_unknown(ran):
    assert {i["prefetch"] for i in main_ring(ran, "_prefetch_factor")["iterators"]} == {None}
    assert {i["length"] for i in main_ring(ran, "_index_sampler")["iterators"]} == {None}
    for name in ("_worker_result_queue", "_data_queue", "_task_info", "_tasks_outstanding"):
        assert main_ring(ran, name)["ready"] == [False, True]  # known without workers, unknown with
    assert main_ring(ran, "_workers")["workers"] == 0 and len(ran["_workers"]["rings"]) == 5
    assert main_ring(ran, step_hook(ran))["unit"] == 0
    for name in BLIND:
        assert ran[name]["rings"] == []


OWN = {"_datawait", "_datawait_begin", "_semlock", "_sem", "_maxsize", "_get_value"}  # ours; the standard library's


def test_no_name_is_forgotten():
    """Private names that the hook reads off an iterator or patches in PyTorch all stand in renamed.py."""
    used = set()
    for module in ("torchhook", "worker", "optimizer"):
        with open(os.path.join(HOOK, "datawait", module + ".py"), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
                owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
                if owner in ("it", "module", "base", "cls", "loader", "queue", "_sem", "_semlock", "_data_queue"):
                    used.add(node.attr)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
                name = node.args[1]
                if node.func.id in ("getattr", "hasattr") and isinstance(name, ast.Constant):
                    used.add(name.value)
    private = {name for name in used if name.startswith("_") and not name.startswith("__")} - OWN
    assert private - {"_initializing", "_dynamo", "_StatefulMultiProcessingDataLoaderIter"} <= set(NAMES), private
