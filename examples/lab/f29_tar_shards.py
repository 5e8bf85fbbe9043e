"""F29: tar shards on a slow disk.

Samples of 64 KiB lie in tar shards that workers read in order, as WebDataset does; all of them together get 16 MB/s
from one disk (a lock held for the time). 8 × 4.1 ms = 33 ms a batch for any W, C = 12 ms, W = 4: step 33, share 0.63.
Right: storage-bandwidth; first fix a faster disk or a local copy. Wrong first: more workers, prefetch_factor, shards
(they are shards).
"""

import contextlib
import io
import multiprocessing
import os
import tarfile
import time

import torch
from torch.utils.data import IterableDataset, get_worker_info

import lab

SHARDS, EACH, SIZE = 8, 64, 64 * 1024
RATE = 16e6


def write(folder):
    paths = []
    for shard in range(SHARDS):
        paths.append(os.path.join(folder, "%06d.tar" % shard))
        with tarfile.open(paths[-1], "w") as tar:
            for n in range(EACH):
                member = tarfile.TarInfo("%06d.bin" % n)
                member.size = SIZE
                tar.addfile(member, io.BytesIO(os.urandom(SIZE)))
        with open(paths[-1], "rb+") as written:  # only what is on the disk can leave the page cache
            os.fsync(written.fileno())
            os.posix_fadvise(written.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return paths


class Disk(io.FileIO):
    """A file on a disk that serves one reader at a time."""

    lock = None
    local = False  # as fast as the page cache

    def readinto(self, buffer):
        if self.local:
            return super().readinto(buffer)
        os.posix_fadvise(self.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        n = super().readinto(buffer)
        os.posix_fadvise(self.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # the next epoch reads from the disk again
        with self.lock or contextlib.nullcontext():
            time.sleep(n / RATE)
        return n


class Shards(IterableDataset):
    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        worker = get_worker_info()
        mine = self.paths[worker.id :: worker.num_workers]
        while True:
            for path in mine:
                with tarfile.open(fileobj=io.BufferedReader(Disk(path), SIZE), mode="r|") as tar:
                    for member in tar:
                        content = tar.extractfile(member).read()
                        yield torch.frombuffer(bytearray(content), dtype=torch.uint8)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=4, repairs=("nvme-cache", "parallel-filesystem")).parse_args()
    Disk.lock = None if chosen.repair else multiprocessing.Lock()
    Disk.local = chosen.repair == "nvme-cache"
    lab.Training(chosen, compute=0.012).run(lab.loader(Shards(write(lab.folder(chosen))), chosen.workers))
