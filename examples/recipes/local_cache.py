"""Keep what a slow store sends on a local drive, from its first read on.

The cache grows up to its limit and then stays: an epoch reads everything once, in a new order, so throwing out the
oldest would leave next to nothing to find. What does not fit, or cannot be written, is read from the store as before.
Data that change need another version: asking the store whether a file changed costs what the cache is there to save.

    python3 local_cache.py                       # on files it makes up, 5 ms away
    python3 local_cache.py --source DIR --folder /local/cache --limit 200e9
"""

import contextlib
import fcntl
import hashlib
import os
import tempfile
import uuid
import zlib
from pathlib import Path


def checksum(data):
    return zlib.crc32(data).to_bytes(4, "little")


class LocalCache:
    """One for a data set; its workers, and all ranks of the node, share the folder. `fetch(name)` reads the store."""

    def __init__(self, folder, version, limit, fetch):
        self.folder, self.limit, self.fetch = Path(folder) / version, limit, fetch
        self.folder.mkdir(parents=True, exist_ok=True)
        self.writing = True

    def read(self, name):
        path = self.folder / hashlib.sha256(name.encode()).hexdigest()
        with contextlib.suppress(OSError):
            data = path.read_bytes()
            if data[-4:] == checksum(data[:-4]):  # a power cut leaves files whose end never got to the drive
                return data[:-4]
        data = self.fetch(name)
        if self.writing:
            self.keep(path, data)
        return data

    def keep(self, path, data):
        partial = path.with_name("partial-" + uuid.uuid4().hex)
        try:
            if not self.book(len(data) + 4):
                return
            with partial.open("wb") as file:
                file.write(data)
                file.write(checksum(data))
            partial.replace(path)  # whole or not there, whoever else fetched it too
        except OSError:  # the drive is full: training goes on without it
            self.writing = False
            with contextlib.suppress(OSError):
                partial.unlink()
                self.book(-len(data) - 4)

    def book(self, size):
        """Takes room from what is left for all who share the folder. What killed workers took stays taken: the cache
        is smaller then, never larger. To begin anew, delete the folder."""
        with open(os.open(self.folder.parent / "booked", os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            booked = int(file.read() or 0) + size
            if booked > self.limit:
                return False
            file.seek(0)
            file.write(b"%020d" % booked)
            return True


def main():
    from torch.utils.data import DataLoader

    import proofs
    from proofs.local_cache import Files, Store

    chosen = proofs.options(__doc__, source=None, folder=None, limit=1e9, version="1", workers=0, latency=0.005)
    with tempfile.TemporaryDirectory() as own:
        store = Store(chosen.source or Path(own) / "files", chosen.latency, made=0 if chosen.source else 48)
        cache = LocalCache(chosen.folder or Path(own) / "cache", chosen.version, chosen.limit, store.fetch)
        loader = DataLoader(Files(store.names, cache.read), batch_size=8, num_workers=chosen.workers)
        for epoch in ("first epoch, from the store", "second, from the local drive"):
            print("%s: %.0f samples/s" % (epoch, proofs.rate(loader, len(store.names))))


if __name__ == "__main__":
    main()
