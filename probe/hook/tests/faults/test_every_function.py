"""Whatever fails inside the hook, training ends as it would without it, and the spool tells.

Every function of the package is made to raise, at its entry and at its end; every call of the operating system to fail
in four ways; and every call made by functions that the script, PyTorch or the interpreter enter. campaign.py finds them
in the source; by default it runs a part of them, with DATAWAIT_FAULTS=all all, each with every kind of error, and every
call of all functions besides (a quarter of an hour). What is exempt stands in exempt.py.
"""

from __future__ import annotations

import ast
import builtins
import functools
import json
import os

import exempt
import pytest
from conftest import HOOK
from programs import outcome

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)

pytestmark = pytest.mark.xdist_group("faults in every function")


@pytest.fixture(scope="module")
def campaign(torch_python):
    options = {"everything": os.environ.get("DATAWAIT_FAULTS") == "all"}
    return outcome(torch_python, "campaign.py", json.dumps(options), patience=3000)


def of_the_script(case):
    """An error of what the hook stands in front of, or of a function whose own calls are injected."""
    frames = {frame.rpartition(".")[2] for frame in exempt.FRAMES}
    return case["what"] in exempt.ORIGINALS or case["what"].rpartition(".")[2] in frames


def shown(cases):
    form = "%(function)s %(what)s (line %(line)d), call %(nth)d, %(error)s in %(scenario)s: %(problems)s %(lost)s"
    return "\n".join(form % case for case in cases)


def test_training_ends_as_it_would_without_the_hook(campaign):
    harmed = [case for case in campaign["cases"] if case["problems"] and not of_the_script(case)]
    assert not harmed, shown(harmed)


def silence_is_meant(case):
    function, lost = case["function"], set(case["lost"])
    if case["role"] and function in exempt.RINGLESS and not lost:
        return True
    if case["role"] and case["scenario"] == "tried" and not lost:
        return True  # a worker of a loader that is tried has no ring
    if function in exempt.LAST_WORDS or (function in exempt.ABSENT and case["error"] == "ENOENT"):
        return True
    if function in exempt.UNTOLD:
        return lost <= exempt.UNTOLD[function]
    return function.partition(".")[0] in exempt.UNTOLD_MODULES and not lost


def test_the_spool_tells_of_every_error_or_what_is_missing_is_unknown(campaign):
    raised = [case for case in campaign["cases"] if case["raised"] and not case["problems"] and not of_the_script(case)]
    assert len(raised) > 800 / campaign["every"]
    silent = [case for case in raised if not case["told"] and not silence_is_meant(case)]
    # The end of a process may overtake its sampler's thread: that is rare, and costs nothing that is recorded.
    sampler = [case for case in raised if case["function"].startswith("stacks.Sampler.") and case["role"]]
    overtaken = [case for case in silent if case in sampler and not case["lost"]]
    assert 5 * len(overtaken) <= len(sampler), shown(overtaken)
    silent = [case for case in silent if case not in overtaken]
    assert not silent, shown(silent)


def within_a_trial(case):
    """What failed is the loader that is tried: its block is void, and the script has no part in it."""
    return case["scenario"] == "tried" and "BLOCK" in case["lost"] and set(case["lost"]) <= exempt.TRIED


def test_an_error_of_the_script_reaches_the_script(campaign):
    """Or is told, where the hook calls the same for itself."""
    raised = [case for case in campaign["cases"] if case["raised"] and case["what"] in exempt.ORIGINALS]
    assert {case["what"] for case in raised} == exempt.ORIGINALS
    swallowed = [case for case in raised if not case["arrived"] and not case["told"]]
    swallowed = [case for case in swallowed if not (case["role"] and case["function"] in exempt.RINGLESS)]
    swallowed = [case for case in swallowed if not within_a_trial(case)]
    assert not swallowed, shown(swallowed)


@functools.lru_cache(maxsize=None)
def functions():
    """Every function of the package by the name that campaign.py gives it, with its node."""
    found = {}

    def walk(node, names):
        for child in ast.iter_child_nodes(node):
            inner = names
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inner = [*names, child.name]
            elif isinstance(child, ast.Lambda):
                inner = [*names, "<lambda>"]
            if isinstance(child, (ast.FunctionDef, ast.Lambda)):
                found[".".join(inner)] = child
            walk(child, inner)

    for folder in ("datawait", "attach"):
        for file in os.listdir(os.path.join(HOOK, folder)):
            if file.endswith(".py"):
                with open(os.path.join(HOOK, folder, file), encoding="utf-8") as source:
                    walk(ast.parse(source.read()), ["datawait" if file == "__init__.py" else file[:-3]])
    return found


def test_a_function_without_a_case_is_known_to_have_none(campaign):
    known = exempt.WITHOUT_STATEMENTS.union(*exempt.TESTED_ELSEWHERE.values())
    assert set(campaign["never"]) <= known
    assert known <= set(functions())


def test_what_is_without_statements_does_nothing():
    for name in exempt.WITHOUT_STATEMENTS:
        node = functions()[name]
        calls = [inner for inner in ast.walk(node) if isinstance(inner, (ast.Call, ast.Assign, ast.AugAssign))]
        assert not calls, name


def test_what_is_tested_elsewhere_is():
    for file, names in exempt.TESTED_ELSEWHERE.items():
        with open(os.path.join(TESTS, file), encoding="utf-8") as source:
            text = source.read()
        assert text.count("def test_") > 3 and names


def test_what_cannot_be_done_twice_is_done_last():
    """The last statement but for returning a name holds the only call that comes after the others."""
    for name in exempt.DONE_LAST:
        body = functions()[name].body
        last = [statement for statement in body if not _returns_a_name(statement)][-1]
        assert body.index(last) >= len(body) - 2, name
        assert all(not _calls(statement) for statement in body[body.index(last) + 1 :])


def _returns_a_name(statement):
    return isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name)


def _calls(statement):
    return [node for node in ast.walk(statement) if isinstance(node, ast.Call)]


def test_what_stands_before_a_try_has_its_calls_fail_instead(campaign):
    """Of each function that no `try` of ours is around, every call that runs Python code is a case, or a call of
    another such function."""
    injected = {(case["function"], case["what"]) for case in campaign["cases"]}
    reached = {case["function"] for case in campaign["cases"]} | set(campaign["entered"])
    for name in exempt.FRAMES & reached:
        assert name in functions(), name
    assert len({name for name, what in injected if name in exempt.FRAMES}) > len(exempt.FRAMES) // 2


def test_what_is_called_safe_is_written_in_c():
    import _thread
    import weakref

    real = {"get_ident": _thread.get_ident, "name.startswith": str.startswith, "loader.__dict__.pop": dict.pop,
            "_inherited.append": list.append, "self._kit.pools.get": dict.get, "reference": weakref.ref,
            "_stepping.add": set.add, "_stepping.discard": set.discard}  # fmt: skip
    ours = {"is_compiling", "_Unseen"}  # a flag of PyTorch's, a class without __init__
    for name in exempt.SAFE - ours:
        called = real.get(name, getattr(builtins, name, None))
        assert called is not None and not hasattr(called, "__code__"), name


def test_no_exemption_is_left_over(campaign):
    cases = campaign["cases"]
    known = {case["function"] for case in cases} | set(campaign["entered"])
    if campaign["every"] == 1:
        seldom = exempt.TESTED_ELSEWHERE["test_stacks.py"]  # a scenario may be over before a stack was looked at
        assert set(exempt.UNTOLD) | exempt.LAST_WORDS | exempt.ABSENT <= known | seldom
    assert set(functions()) >= exempt.FRAMES | exempt.DONE_LAST
