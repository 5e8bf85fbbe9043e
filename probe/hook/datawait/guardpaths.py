"""Which files the save-guard protects: those that were there before the run.

A file's age is the earlier of its modification and change times: a checkpoint that was renamed, or unpacked with its
old date, counts as old. Nothing else tells a checkpoint from a temporary file; names do not.
"""

from __future__ import annotations

import os
import stat
import time
from typing import Any, Callable, Optional

from .ring import start_ticks

# Kernel files and shared memory (PyTorch's and multiprocessing's segments and semaphores) are no checkpoints.
EXEMPT_ROOTS = ("/dev", "/proc", "/sys")
# Caches of compilers are rewritten by whatever compiles next.
EXEMPT_PARTS = ("__pycache__", ".triton")
EXEMPT_BEGINNING = "torchinductor_"
MOST_ENTRIES = 20_000  # of a tree: about half a second of looking; a larger one counts as old


def process_start() -> float:
    """When this process started, on the wall clock that file times use."""
    seconds = start_ticks() / os.sysconf("SC_CLK_TCK")
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - seconds)


class Ages:
    """Tells old from new; ``spool`` is the hook's own folder and always exempt."""

    def __init__(self, spool: str, started: Callable[[], float] = process_start) -> None:
        self.started = started()
        self._roots = tuple(os.path.realpath(root) + os.sep for root in (*EXEMPT_ROOTS, spool))

    def old(self, path: Any, dir_fd: Optional[int] = None, follow: bool = False) -> bool:
        """Whether path exists and was there before the run. A link is looked at itself unless followed."""
        if isinstance(path, int):
            return False
        try:
            info = os.stat(path, dir_fd=dir_fd, follow_symlinks=follow)
        except (OSError, ValueError):
            return False
        if stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode) or stat.S_ISDIR(info.st_mode):
            return min(info.st_mtime, info.st_ctime) < self.started and not self._exempt(path, dir_fd)
        return False  # devices, pipes and sockets

    def old_content(self, path: Any) -> bool:
        """Whether opening path for writing would throw away bytes from before the run."""
        try:
            info = os.stat(path)
        except (OSError, ValueError):
            return False
        return stat.S_ISREG(info.st_mode) and info.st_size > 0 and self.old(path, follow=True)

    def old_tree(self, path: Any, dir_fd: Optional[int] = None) -> bool:
        """Whether a folder, or anything in it, was there before the run."""
        if self.old(path, dir_fd):
            return True
        if dir_fd is not None or self._exempt(path, None):
            return False
        left = MOST_ENTRIES
        for folder, folders, files in os.walk(path):
            left -= len(folders) + len(files)
            if left < 0 or any(self.old(os.path.join(folder, name)) for name in folders + files):
                return True
        return False

    def _exempt(self, path: Any, dir_fd: Optional[int]) -> bool:
        text = os.fsdecode(path)
        if dir_fd is not None and not os.path.isabs(text):
            text = os.path.join(os.readlink("/proc/self/fd/%d" % dir_fd), text)
        folder, name = os.path.split(os.path.abspath(text))
        real = os.path.join(os.path.realpath(folder), name)
        return real.startswith(self._roots) or any(
            part in EXEMPT_PARTS or part.startswith(EXEMPT_BEGINNING) for part in real.split(os.sep)
        )
