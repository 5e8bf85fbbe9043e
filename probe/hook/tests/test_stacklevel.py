"""Warnings name the line of the script that called, as if no wrapper stood between."""

from __future__ import annotations

import os
import warnings

from datawait import foreign, stacklevel


def warn():
    warnings.warn("for the caller", stacklevel=2)


def wrapper():
    return warn()


def seen_through():
    return warn()


stacklevel.transparent(seen_through)


def place(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught[0].filename, caught[0].lineno


def test_a_wrapper_is_no_level():
    def script():
        seen_through()

    assert place(script) == (__file__, script.__code__.co_firstlineno + 1)
    assert place(wrapper) == (__file__, wrapper.__code__.co_firstlineno + 1)  # an ordinary one is


def test_its_frames_stay_those_of_the_hook():
    """The file a traceback names does not exist, but lies in the hook's folder: foreign.py relies on it."""
    from datawait.fetch import fetch

    name = fetch.__code__.co_filename
    assert name.startswith(foreign.HERE) and os.path.normpath(name) == foreign.HERE + "fetch.py"
