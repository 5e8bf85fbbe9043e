"""Keeps warnings where they belong: PyTorch's name the line that called (``stacklevel=2``), and that line is not ours.

The text of such a warning, the filters that select it by module and the rule to show it once per place all go by the
frame one level up, which would be a wrapper of the hook. ``warnings`` passes over frames whose file name has both
"importlib" and "_bootstrap" in it (``is_internal_filename`` in Python/_warnings.c, 3.3 to 3.13): so the code of the
wrappers is given such a name, of a file that does not exist, inside the hook's own folder.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

F = TypeVar("F")


def transparent(function: F) -> F:
    """The same function, which does not count as a level for warnings."""
    code: Any = getattr(function, "__code__")  # noqa: B009  # mypy knows no function here
    folder, name = os.path.split(code.co_filename)
    function.__code__ = code.replace(  # type: ignore[attr-defined]
        co_filename=os.path.join(folder, "importlib._bootstrap", os.pardir, name)
    )
    return function
