"""A sample of what is read while batches are built: which files are opened and which objects asked for, as hashes.

A name is taken whose hash is below a limit, so all processes take the same names, and of a name every time it is read.
How often a file is read again, by whom, and how much lies in between is then known without bias for a part of the
files, whatever their number (spatially hashed sampling: Waldspurger et al., "Efficient MRC Construction with SHARDS",
FAST 2015). The limit halves for good when there are too many names, or readings in a second, to keep up
with.
"""

from __future__ import annotations

import os
from binascii import crc32
from typing import Any, List, Optional, Set, Tuple

from . import layout
from .ring import Ring
from .stream import IN_WORKER, complain, core

MOST_NAMES = 4096
MOST_A_SECOND = 256
MOST_HALVINGS = 31
SECOND = 1_000_000_000

Reading = Tuple[int, int, int, int]  # flags, time, hash, how often the limit was halved


class Reads:
    """The sample of one process."""

    __slots__ = ("taken", "limit", "halvings", "names", "second", "readings", "trouble")

    def __init__(self) -> None:
        self.taken: Optional[List[Reading]] = None  # while the current batch is built; None between batches
        self.halvings = 0
        self.limit = 1 << 32
        self.names: Set[int] = set()
        self.second = 0
        self.readings = 0  # taken in this second
        self.trouble: Optional[Exception] = None  # what kept a name from being looked at

    def begin(self) -> None:
        """A batch is about to be built."""
        if self.trouble is not None:
            error, self.trouble = self.trouble, None
            self._give_up(error)
        self.taken = [] if self.limit else None

    def opened(self, path: Any, flags: Any) -> None:
        """A file is opened; one that is written is nobody's input. A path that is neither text nor bytes would have to
        run code of its own to say what it is."""
        try:
            if type(flags) is not int or flags & os.O_ACCMODE != os.O_RDONLY:
                return
            if type(path) is str:
                self._take(0, path.encode("utf-8", "surrogatepass"))
            elif type(path) is bytes:
                self._take(0, path)
        except Exception as error:
            self._give_up(error)

    def asked(self, head: bytes) -> None:
        """An HTTP request is sent: its object is what stands before the query, where signatures are, and the part of it
        that is asked for."""
        try:
            target = head[: head.find(b"\r\n")].split(b"?", 1)[0].split(b" HTTP/", 1)[0]
            at = head.find(b"\r\nRange: ")
            part = head[at : head.find(b"\r\n", at + 2)] if at >= 0 else b""
            self._take(layout.REQUEST, target + part)
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """What is raised in an audit hook would be raised by the script's own open()."""
        self.taken, self.limit = None, 0
        complain(IN_WORKER, "sampling what is read", error)

    def _take(self, flags: int, name: bytes) -> None:
        """CRC-32 of names that differ in a few digits fills its range in steps, which the product breaks up."""
        digest = crc32(name) * 2654435769 & 0xFFFFFFFF
        taken = self.taken
        if digest >= self.limit or taken is None:
            return
        now = core.clock()
        taken.append((flags, now, digest, self.halvings))
        self.names.add(digest)
        if now - self.second > SECOND:
            self.second, self.readings = now, 0
        self.readings += 1
        if self.readings > MOST_A_SECOND or len(self.names) > MOST_NAMES:
            self._halve()

    def _halve(self) -> None:
        self.readings //= 2
        if self.halvings < MOST_HALVINGS:
            self.halvings += 1
            self.limit >>= 1
            limit = self.limit
            self.names = {name for name in list(self.names) if name < limit}

    def end(self) -> Optional[List[Reading]]:
        """The batch is built: what was taken meanwhile."""
        taken, self.taken = self.taken, None
        return taken


def put(ring: Ring, ref: int, taken: List[Reading]) -> None:
    """Puts what was taken with what the ring has pending, behind the batch it was read for."""
    for flags, *what in taken:
        ring.pending.append((layout.READ, flags, ref, *what))
