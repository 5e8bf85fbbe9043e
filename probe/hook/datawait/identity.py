"""Who this process is: what names it for good, on which boot of the machine, and in whose numbering its pid counts."""

from __future__ import annotations

import os

from .foreign import own


def start_ticks(pid: str = "self") -> int:
    """When the process started, in clock ticks since boot: with the pid it names a process for good."""
    with open("/proc/%s/stat" % pid, "rb") as stat:
        return int(stat.read().rpartition(b")")[2].split()[19])  # field 22; the name before it may hold anything


def boot_id() -> "str | None":
    try:
        # Bytes: "ascii" would be imported, and of an import in another thread a forked child inherits the lock.
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().decode().strip()
    except OSError as error:
        own(error)
        return None


def pid_namespace() -> "int | None":
    """Which processes this one's pids mean: the inode of its pid namespace (pid_namespaces(7))."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError as error:
        own(error)
        return None
