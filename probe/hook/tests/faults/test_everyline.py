"""A signal handler of the script may raise wherever the hook just is: the exception arrives in the script, and all that
comes afterwards is observed as if nothing had been. What happens stands in everyline.py."""

from __future__ import annotations

import re

import pytest
from programs import outcome

pytestmark = pytest.mark.xdist_group("every line")

# PyTorch's own, of an iterator that was not made completely.
LEFT_UNDONE = re.compile(r"Exception ignored in: <function _Multi\w+Iter.__del__[^\n]*\n(?:[ T].*\n)+\w+.*\n")
PARTS = 8


@pytest.fixture(scope="module")
def ran(torch_python):
    return outcome(torch_python, "everyline.py", patience=1500, PYTHONWARNINGS="ignore")


def results(ran):
    return [(run["at"], run, run["outcome"][1]) for run in ran["runs"]]


def test_the_training_goes_on(ran):
    for at, run, result in results(ran):
        status, _, stdout, stderr = run["outcome"]
        assert (status, stdout, LEFT_UNDONE.sub("", stderr)) == (0, "", ""), at
        assert result["steps"] == ran["usual"]["outcome"][1]["steps"], at


def test_what_the_handler_raised_arrives_in_the_script(ran):
    assert len(ran["lines"]) == PARTS and min(ran["lines"]) > 200
    for at, _, result in results(ran):
        assert result["arrived"] == result["raised"], at
    raised = sum(result["raised"] for _, _, result in results(ran))
    assert raised > 0.8 * sum(line is not None for at, _, _ in results(ran) for line in at)


def test_the_hook_takes_it_for_no_error_of_its_own(ran):
    for at, run, _ in results(ran):
        assert (run["errors"], run["wrong"]) == ([], []), at


def test_everything_afterwards_is_recorded(ran):
    assert ran["usual"]["after"]["STEP"] == 28
    for at, run, _ in results(ran):
        assert run["after"] == ran["usual"]["after"], at


def test_no_batch_is_counted_that_was_not_fetched(ran):
    """One that was fetched when the exception came did not reach the script."""
    for at, run, result in results(ran):
        assert run["twice"] == 0, at
        for name, got in result["got"].items():
            assert max(run["fetched"][name], run["counted"][name]) <= got + PARTS, (at, name)
