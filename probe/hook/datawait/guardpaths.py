"""Which files the save-guard protects: those that were there when the run began to train on repeated batches.

A file's age is the earlier of its modification and change times: a checkpoint that was renamed, or unpacked with its
old date, counts as old. Two things may be rewritten or removed although they are older than the first cached batch,
as long as they are not older than the run: what lies where temporary files and caches lie, and what is called like a
log or a lock.

File systems stamp a file with the last tick of a coarse clock, up to 10 ms ago; newer kernels at times with a fine one
(multigrain timestamps, Linux 6.13). So the limit is the fine clock when the guard is armed, and arming takes until the
coarse clock is past it: whatever is written later is later. A file server has a clock of its own; there a file counts
as old until its time is SKEW past the limit.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from . import guardnames, place
from .foreign import own
from .identity import start_ticks

COARSE = 5  # CLOCK_REALTIME_COARSE of linux/time.h
SKEW = 5_000_000_000  # ns
LOCAL = (*place.IN_PLACE, "btrfs", "zfs", "bcachefs", "f2fs", "jfs", "reiserfs", "vfat", "exfat", "ntfs3", "squashfs")

# Kernel files and shared memory (PyTorch's and multiprocessing's segments and semaphores) are no checkpoints.
EXEMPT_ROOTS = ("/dev", "/proc", "/sys")
# Caches of compilers are rewritten by whatever compiles next.
EXEMPT_PARTS = ("__pycache__", ".triton")
EXEMPT_BEGINNING = "torchinductor_"
# Where temporary files and caches lie, and folders of trackers wherever they are.
SCRATCH_ROOTS = ("/tmp", "/var/tmp", "/usr/tmp", "~/.cache")
SCRATCH_VARIABLES = (
    "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "HF_HOME", "HF_DATASETS_CACHE", "TORCH_HOME", "MPLCONFIGDIR",
    "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "NUMBA_CACHE_DIR", "PYTHONPYCACHEPREFIX",
)  # fmt: skip
SCRATCH_PARTS = ("wandb", "mlruns")
MOST_ENTRIES = 20_000  # of a tree: about half a second of looking; a larger one counts as old
SMALL = 4096  # bytes: what a lock file holds at most


def process_start() -> float:
    """When this process started, on the wall clock that file times use."""
    seconds = start_ticks() / os.sysconf("SC_CLK_TCK")
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - seconds)


def past_now() -> int:
    """The time until now, in ns; returns when every file written from now on is stamped later."""
    now = time.time_ns()
    while time.clock_gettime_ns(COARSE) <= now:
        time.sleep(0.001)
    return now


class Ages:
    """Tells old from new; ``spool`` is the hook's own folder and always exempt. ``limit`` is when the first cached
    batch was served, in ns."""

    def __init__(self, spool: str, limit: int, started: Callable[[], float] = process_start) -> None:
        self.limit = limit
        self.started = min(int(started() * 1e9), limit)
        self._exempt_roots = tuple(os.path.realpath(root) + os.sep for root in (*EXEMPT_ROOTS, spool))
        self._roots = _roots()
        self._remote: Dict[int, bool] = {}  # device number -> whether its clock may be another's
        self._kept: Set[Tuple[int, int]] = set()  # (device, inode) of files that are old whatever their times say

    # --- asked of one path ------------------------------------------------------------------------------------------

    def old(self, path: Any, dir_fd: Optional[int] = None, follow: bool = False) -> bool:
        """Whether path exists and is to be protected. A link is looked at itself unless followed."""
        if isinstance(path, int):
            return False
        try:
            info = os.stat(path, dir_fd=dir_fd, follow_symlinks=follow)
        except (OSError, ValueError) as error:
            own(error)
            return False
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode) or stat.S_ISDIR(info.st_mode)):
            return False  # devices, pipes and sockets
        real = self._real(path, dir_fd)
        return not self._exempt(real) and self._aged(info, real)

    def old_content(self, path: Any, dir_fd: Optional[int] = None) -> bool:
        """Whether opening path for writing would throw away bytes that are to be protected."""
        try:
            info = os.stat(path, dir_fd=dir_fd)
        except (OSError, ValueError) as error:
            own(error)
            return False
        if not stat.S_ISREG(info.st_mode) or info.st_size == 0:
            return False
        if info.st_size <= SMALL and guardnames.lock(os.fsdecode(path)):
            return False
        return self.old(path, dir_fd, follow=True)

    def old_descriptor(self, fd: int) -> bool:
        """The same for an open file. One without a name is nobody's checkpoint."""
        try:
            info = os.fstat(fd)
            path = os.readlink("/proc/self/fd/%d" % fd)
        except OSError as error:
            own(error)
            return False
        return info.st_nlink > 0 and os.path.isabs(path) and self.old_content(path)

    def old_tree(self, path: Any, dir_fd: Optional[int] = None) -> bool:
        """Whether a file is to be protected, or a folder or anything in it."""
        if self.old(path, dir_fd):
            return True
        if isinstance(path, int) or dir_fd is not None or self._exempt(self._real(path, None)):
            return False
        left = MOST_ENTRIES
        for folder, folders, files in os.walk(path):
            left -= len(folders) + len(files)
            if left < 0 or any(self.old(os.path.join(folder, name)) for name in folders + files):
                return True
        return False

    def keep(self, path: Any) -> None:
        """Path is about to be touched: if it is old, it stays so."""
        try:
            if self.old(path, follow=True):
                info = os.stat(path)
                self._kept.add((info.st_dev, info.st_ino))
        except (OSError, ValueError, TypeError) as error:
            own(error)

    def new_model(self, path: Any, dir_fd: Optional[int] = None) -> bool:
        """Whether path is called like a model's state and lies where such a thing would be kept."""
        if isinstance(path, int) or not guardnames.model(os.fsdecode(path)):
            return False
        return self._lasting(self._real(path, dir_fd))

    def new_folder(self, path: Any, dir_fd: Optional[int] = None) -> bool:
        """Whether path, a folder to be made, is called like one for a checkpoint."""
        real = self._real(path, dir_fd)
        return guardnames.model_folder(real) and self._lasting(real) and not os.path.lexists(real)

    # --- how old is too old -----------------------------------------------------------------------------------------

    def _aged(self, info: os.stat_result, real: str) -> bool:
        if (info.st_dev, info.st_ino) in self._kept:
            return True
        written = min(info.st_mtime_ns, info.st_ctime_ns)
        if self._scratch(real) or guardnames.log(real):
            return written < self.started
        return written <= self.limit + (SKEW if self._foreign(info.st_dev, real) else 0)

    def _foreign(self, device: int, real: str) -> bool:
        if device not in self._remote:
            self._remote[device] = place.filesystem(os.path.dirname(real)) not in LOCAL
        return self._remote[device]

    def _lasting(self, real: str) -> bool:
        return not (self._exempt(real) or self._scratch(real) or stat.S_ISCHR(_mode(real)))

    def _scratch(self, real: str) -> bool:
        """Whether real lies below a folder of temporary things, and not in a working folder further down."""
        if any(part in SCRATCH_PARTS for part in real.split(os.sep)):
            return True
        found = False
        for root, scratch in self._roots:  # the innermost last
            if real.startswith(root):
                found = scratch
        return found

    def _exempt(self, real: str) -> bool:
        return real.startswith(self._exempt_roots) or any(
            part in EXEMPT_PARTS or part.startswith(EXEMPT_BEGINNING) for part in real.split(os.sep)
        )

    def _real(self, path: Any, dir_fd: Optional[int]) -> str:
        text = os.fsdecode(path)
        if dir_fd is not None and not os.path.isabs(text):
            text = os.path.join(os.readlink("/proc/self/fd/%d" % dir_fd), text)
        folder, name = os.path.split(os.path.abspath(text))
        return os.path.join(os.path.realpath(folder), name)


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError as error:
        own(error)
        return 0


def _roots() -> List[Tuple[str, bool]]:
    """Folders of temporary things (True), and those the script works in: a job in /tmp keeps its checkpoints there."""
    chosen = getattr(sys.modules.get("tempfile"), "tempdir", None)
    scratch = [*SCRATCH_ROOTS, chosen, *(os.environ.get(name) for name in SCRATCH_VARIABLES)]
    work = [os.environ.get("PWD"), os.path.dirname(os.path.abspath(sys.argv[0])) if sys.argv and sys.argv[0] else None]
    try:
        work.append(os.getcwd())
    except OSError as error:
        own(error)
    roots = {}
    for folder in work:
        roots[_root(folder)] = False
    for folder in scratch:
        roots[_root(folder)] = True
    roots.pop(None, None)
    return sorted(((root, kind) for root, kind in roots.items() if root is not None), key=lambda entry: len(entry[0]))


def _root(folder: Any) -> Optional[str]:
    if not folder or not isinstance(folder, str):
        return None
    real = os.path.realpath(os.path.expanduser(folder))
    return None if real == os.sep else real + os.sep
