"""Tells the hook's own errors from exceptions that a signal handler of the script raised while hook code ran.

Those must go on to the script, whatever they look like: TimeoutError, which a time limit raises, is an OSError too.
"""

from __future__ import annotations

import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def own(error: BaseException) -> None:
    """Raises the error again unless it is the hook's; for whoever catches one to go on without what failed."""
    try:
        passes = foreign(error)
    except Exception as another:  # a handler may raise here as well
        try:
            passes, error = foreign(another), another
        except Exception:
            return
    try:
        if passes:
            raise error
    finally:
        del error  # it may have come by this frame, which would keep it, and it this frame and all that led here


def without_frames(error: Exception) -> Exception:
    """The hook's error, to be told of later: its frames would keep the script's iterators and batches until then."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def foreign(error: BaseException) -> bool:
    """Whether an exception was raised by code outside this package, on top of a hook frame (a signal handler)."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    if frame.f_code.co_filename.startswith(HERE):
        return False
    return _is_handler(frame)


def _is_handler(frame: Any) -> bool:
    """Whether frame, or one it was called from, is a Python signal handler in force."""
    signal = sys.modules.get("signal")
    if signal is None:
        return False
    codes = {_code(signal.getsignal(number)) for number in signal.Signals}
    codes.discard(None)
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def _code(handler: Any) -> Any:
    """What runs when a handler is called: of a function, a method, a partial, or an object that can be called."""
    while hasattr(handler, "func"):
        handler = handler.func
    handler = getattr(handler, "__func__", handler)
    if not hasattr(handler, "__code__"):
        handler = getattr(type(handler), "__call__", None)  # noqa: B004 - the code, not whether there is some
    return getattr(handler, "__code__", None)
