"""File descriptors that the hook keeps for good: never one of the first three, never one of the script's last."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import sys
from typing import Any, Dict, Iterator

FIRST = 3
SPARED = 16  # left to the script
# A map keeps a descriptor too, unless it is told not to (Python 3.13).
UNTRACKED: Dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """What is opened inside gets no number below three: a script that closed its standard files opens others in their
    place. Raises OSError where the script has few left."""
    low = []
    try:
        while True:
            fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if fd >= FIRST:
                os.close(fd)
                break
            low.append(fd)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit != resource.RLIM_INFINITY and fd + SPARED > limit:
            raise OSError(errno.EMFILE, "few file descriptors are left to the script")
        yield
    finally:
        for fd in low:
            os.close(fd)
