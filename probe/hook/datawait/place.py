"""Where a ring may lie: decides whether a folder is safe to map a file in, and how large that file may be.

Only file systems that write a changed page where it was allocated are taken. Those that copy on write want new space
for every page, so a full disk kills the process that touches the map by SIGBUS (seen on btrfs); a mapped file on NFS
or FUSE can stall it too. A full /dev/shm kills PyTorch's own workers, so the hook stays small there.

A folder that others may write to is taken where it is a *shared spool*, which the agent of a whole machine offers to
all users (mode 1777) or a kubelet mounts into a pod (root's, 0777): then a user's rings go into a folder of their own
in it, which is checked like any other. Nothing that lies in the shared folder itself is ever read or believed.
"""

from __future__ import annotations

import fcntl
import os
import resource
import stat
import struct
import sys
from typing import Optional

from . import layout
from .foreign import own
from .identity import start_ticks

IN_PLACE = ("tmpfs", "ramfs", "ext2", "ext3", "ext4", "xfs", "overlay")  # an overlay if what lies below does
MOST_BYTES = 1 << 30  # of all rings of a spool
WRITTEN_BY_OTHERS = 0o022
SET_FLAGS, NO_COPY = 0x40086602, 0x00800000  # FS_IOC_SETFLAGS and FS_NOCOW_FL of ioctl_iflags(2)


class Refused(OSError):
    """The folder exists, but no ring will be written there; the text says why."""


def filesystem(folder: str, mountinfo: str = "/proc/self/mountinfo") -> Optional[str]:
    """Type of the file system that holds folder (as mountinfo names it), None where that cannot be read."""
    try:
        with open(mountinfo, encoding="utf-8", errors="surrogateescape") as lines:
            mounts = lines.read().splitlines()
    except OSError as error:
        own(error)
        return None
    target = os.path.realpath(folder)
    best, found = -1, None
    for line in mounts:  # "36 35 98:0 /root /mount/point options … - type source superoptions" (proc(5))
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = _unescape(fields[4])
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # later lines are mounted over earlier ones
            best, found = len(point), right.split(" ", 1)[0]
    return found


def _unescape(path: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, char)
    return path


def own_in(folder: str) -> Optional[str]:
    """This user's own folder in a shared spool, which may not be there yet; None where the spool is not shared.

    Where all may write, but neither the sticky bit nor root as its owner says that this is meant, it is not."""
    info = os.lstat(folder)
    meant = info.st_mode & stat.S_ISVTX or info.st_uid == 0
    if stat.S_ISDIR(info.st_mode) and info.st_mode & WRITTEN_BY_OTHERS and meant:
        return os.path.join(folder, "uid-%d" % os.geteuid())
    return None


def for_rings(folder: str) -> str:
    """Where this process's rings go, checked: the spool, or this user's folder in a shared one, made if need be."""
    private = own_in(folder)
    if private is None:
        check(folder)
        return folder
    try:
        os.mkdir(private, 0o700)  # and no chmod: without a sticky bit, a link may have taken the name by then
    except FileExistsError as error:  # made by an earlier process of this user, or by somebody else
        own(error)
    check(private)
    return private


def if_made(folder: str) -> Optional[str]:
    """Where the rings of this user's processes go, None if that is a folder in a shared spool which is not there.

    Where it is somebody else's, it is not there: nothing may be written to it, and nothing in it believed."""
    private = own_in(folder)
    if private is None:
        return folder
    try:
        info = os.lstat(private)
    except FileNotFoundError as error:
        own(error)
        return None
    return private if stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() else None


def check(folder: str) -> None:
    """Raises unless folder is a real folder of this user, closed to others, on a local file system."""
    info = os.lstat(folder)
    if not stat.S_ISDIR(info.st_mode):
        raise Refused("spool %s is not a folder" % folder)
    if info.st_uid not in (os.geteuid(), 0):
        raise Refused("spool %s belongs to user %d" % (folder, info.st_uid))
    if info.st_mode & WRITTEN_BY_OTHERS:
        raise Refused("spool %s can be written by others" % folder)
    kind = filesystem(folder)
    if kind not in IN_PLACE:
        raise Refused("spool %s is on %s" % (folder, kind or "an unknown file system"))


def check_file(fd: int, folder: str) -> None:
    """Raises if a new, empty file of the folder is copied on write: only such a file can be told not to be.

    An overlay hides the kind of what lies below it."""
    try:
        fcntl.ioctl(fd, SET_FLAGS, struct.pack("l", NO_COPY))
    except OSError as error:
        own(error)
        return
    raise Refused("spool %s is on a file system that copies on write" % folder)


def capacity(folder: str, wanted: int) -> int:
    """Records that fit without crowding others out: the ring takes at most a sixteenth of the free space, and of what
    all rings of the spool may take together: with no agent to remove them, those of ended workers stay."""
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    rings = _rings(folder)
    room = min(free, min(space.f_blocks * space.f_frsize // 2, MOST_BYTES) - rings)
    largest = _largest_file()
    while wanted > layout.LEAST_CAPACITY and (ring_bytes(wanted) * 16 > room or ring_bytes(wanted) > largest):
        wanted //= 2
    if ring_bytes(wanted) * 4 > room:
        left = "room for %d bytes: %d bytes free, and %d bytes of rings" % (max(room, 0), free, rings)
        raise Refused("spool %s has %s" % (folder, left))
    if ring_bytes(wanted) > largest:
        raise Refused("files of this process may have only %d bytes" % largest)
    return wanted


def _rings(folder: str) -> int:
    """Bytes that the rings take which are there: a file with holes says that it is larger."""
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".dwr"):
                try:
                    count += entry.stat(follow_symlinks=False).st_blocks * 512
                except FileNotFoundError:  # removed meanwhile: its process ended
                    continue
    return count


def _largest_file() -> int:
    """Growing a file beyond the limit is a signal, of which a process dies that does not ignore it (setrlimit(2))."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def may_write(count: int) -> bool:
    return count <= _largest_file()


def ring_bytes(records: int) -> int:
    return layout.HEADER_BYTES + records * layout.RECORD_BYTES


def own_folder() -> str:
    """The folder of a run that nobody gave one: /dev/shm/datawait-<uid>/<pid>-<start ticks>, made here, mode 0700.

    A pid alone is no name: in a container every run's first process has the same one."""
    parent = "/dev/shm/datawait-%d" % os.geteuid()
    folder = "%s/%d-%d" % (parent, os.getpid(), start_ticks())
    for path in (parent, folder):
        try:
            os.mkdir(path, 0o700)
            os.chmod(path, 0o700)  # whatever the script's umask takes away
        except FileExistsError:
            pass
        check(path)
    return folder
