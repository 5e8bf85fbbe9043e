"""Functions that a script keeps outside the names of its modules are replaced there as well."""

from __future__ import annotations

import functools
import os
import sys

import pytest

from datawait.stands import Stand, Stands


class Kept:
    in_class = os.link
    in_static = staticmethod(os.link)

    def __init__(self):
        self.in_instance = os.link
        self.in_table = {"save": [os.link]}

    def method(self, finish=os.link):
        return finish


class Slotted:
    __slots__ = ("link",)

    def __init__(self):
        self.link = os.link


class Lazy(dict):
    """What must not be asked for anything."""

    def items(self):
        raise AssertionError("asked")

    values = keys = __iter__ = items

    @property
    def __class__(self):
        raise AssertionError("asked")


def closure():
    finish = os.link

    def save():
        return finish

    return save


KEPT = Kept()
SLOTTED = Slotted()
CLOSURE = closure()
PARTIAL = functools.partial(os.link, "a", follow_symlinks=True)
NESTED = ({"way": [functools.partial(print, 1), (closure(),)]},)
LAZY = Lazy(link=os.link)

HOLDERS = {
    "a class": lambda: Kept.in_class,
    "a static method": lambda: Kept.in_static,
    "an instance": lambda: KEPT.in_instance,
    "a list in a table of an instance": lambda: KEPT.in_table["save"][0],
    "a default": lambda: KEPT.method(),
    "a closure": lambda: CLOSURE(),
    "a partial": lambda: PARTIAL.func,
    "a closure in a tuple in a list in a dictionary in a tuple": lambda: NESTED[0]["way"][1][0](),
    "a dictionary of its own kind": lambda: dict.__getitem__(LAZY, "link"),
    "a module": lambda: os.link,
}


@pytest.fixture
def stands():
    stands = Stands()
    stands.before(os.link, lambda args, kwargs: None)
    yield stands
    stands.undo()


@pytest.fixture(autouse=True)
def script(monkeypatch):
    """This file lies beside a script, and is none of a library."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules[__name__])


@pytest.mark.parametrize("name", HOLDERS)
def test_a_function_is_replaced_in(stands, name):
    original = os.link
    stands.rebind()
    stands.rebind_script()
    assert type(HOLDERS[name]()) is Stand and HOLDERS[name]() == original
    stands.undo()
    assert HOLDERS[name]() is original


def test_a_local_table_of_a_running_function(stands):
    table, kept = {"link": os.link}, os.link
    stands.rebind_script()
    assert type(table["link"]) is Stand
    assert kept is not table["link"]  # a local variable itself is out of reach


def test_what_cannot_be_changed_is_left(stands):
    stands.rebind_script()
    assert type(SLOTTED.link) is not Stand
    assert PARTIAL.args == ("a",) and PARTIAL.keywords == {"follow_symlinks": True}
