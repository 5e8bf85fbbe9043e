"""Surroundings in which something happens to the spool, or the file system under it is no place for one."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from typing import Any

from trainings import as_nobody, rings, spool, stand_in, surrounding, three_epochs


@surrounding
def spool_vanishes(folder: str) -> Any:
    return three_epochs(lambda: shutil.rmtree(spool()))


@surrounding
def spool_is_made_anew(folder: str) -> Any:
    def then() -> None:
        shutil.rmtree(spool())
        os.mkdir(spool(), 0o700)

    return three_epochs(then)


@surrounding
def spool_opens_to_everybody(folder: str) -> Any:
    as_nobody()  # in a folder of root's own, all may write because that is meant
    return three_epochs(lambda: os.chmod(spool(), 0o777))


@surrounding
def spool_becomes_shared(folder: str) -> Any:
    return three_epochs(lambda: os.chmod(spool(), 0o1777))


@surrounding
def spool_becomes_a_file(folder: str) -> Any:
    def then() -> None:
        shutil.rmtree(spool())
        open(spool(), "w").close()

    return three_epochs(then)


@surrounding
def ring_is_unlinked(folder: str) -> Any:
    return three_epochs(lambda: [os.unlink(path) for path in rings()] and None)


@surrounding
def ring_is_replaced(folder: str) -> Any:
    """By a file of the script's, into which nothing of the hook's may go."""
    mine = os.path.join(folder, "mine")

    def then() -> None:
        with open(mine, "wb") as file:
            file.write(b"mine" * 50000)
        for path in rings():
            os.unlink(path)
            os.link(mine, path)

    result = three_epochs(then)
    with open(mine, "rb") as file:
        return result, file.read() == b"mine" * 50000


@surrounding
def ring_closes_to_everybody(folder: str) -> Any:
    return three_epochs(lambda: [os.chmod(path, 0) for path in rings()] and None)


@surrounding
def spool_is_read_only(folder: str) -> Any:
    os.chmod(spool(), 0o500)
    as_nobody()
    return three_epochs(lambda: None)


@surrounding
def spool_becomes_read_only(folder: str) -> Any:
    as_nobody()
    return three_epochs(lambda: os.chmod(spool(), 0o500))


@surrounding
def no_room_at_allocation(folder: str) -> Any:
    def full(fd: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    os.posix_fallocate = full  # type: ignore[assignment]
    return three_epochs(lambda: None)


@surrounding
def file_system_is_full(folder: str) -> Any:
    blocks = os.statvfs(spool())
    os.statvfs = lambda path: os.statvfs_result((*blocks[:3], 3, 3, *blocks[5:]))  # type: ignore[assignment,misc]
    return three_epochs(lambda: None)


@surrounding
def file_system_is_small(folder: str) -> Any:
    """A tmpfs of its own where one may be mounted: its last pages go to the script, and nobody gets SIGBUS."""
    small = spool()
    mounted = os.system("mount -t tmpfs -o size=600k,mode=700 none %s 2>/dev/null" % small) == 0
    if mounted:
        with open(os.path.join(small, "mine"), "wb") as file, contextlib.suppress(OSError):
            file.write(b"mine" * 148_000)
    result = three_epochs(lambda: None)
    if mounted:
        left = {name: os.path.join(small, name) for name in os.listdir(small) if name != "mine"}
        kept = {name: open(path, "rb").read() for name, path in left.items()}  # noqa: SIM115
        os.system("umount -l %s" % small)
        for name, path in left.items():
            with open(path, "wb") as file:
                file.write(kept[name])
    return result, mounted or None


@surrounding
def spool_is_on_nfs(folder: str) -> Any:
    stand_in("datawait.place", "filesystem", lambda folder: "nfs4")
    return three_epochs(lambda: None)
