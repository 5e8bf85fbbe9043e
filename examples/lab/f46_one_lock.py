"""F46: one lock around reading.

Every worker takes the same file lock to read 64 KiB (from the page cache) and to unpack it, 4 ms a sample: 8 × 4 = 32
ms a batch for any W, W = 4, C = 12 ms. step 32, share 0.63. The bytes come from memory, so no store is slow. Right:
serial-read; first fix a handle for each worker. Wrong first: more workers, a cache, a parallel file system.
"""

import fcntl
import os
import time

import torch

import lab

SIZE = 64 * 1024


class Locked(lab.Samples):
    """An array file that one process at a time may read."""

    def __init__(self, length, path, shared):
        super().__init__(length)
        self.path, self.shared, self.file = path, shared, None

    def __getitem__(self, index):
        if self.file is None:
            self.file = open(self.path, "rb", buffering=0)  # noqa: SIM115
        if self.shared:
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.file.seek(index % 64 * SIZE)
        read = self.file.read(SIZE)
        time.sleep(0.004)
        if self.shared:
            fcntl.flock(self.file, fcntl.LOCK_UN)
        return torch.frombuffer(bytearray(read), dtype=torch.uint8)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=4, repairs=("per-worker-handles",)).parse_args()
    path = os.path.join(lab.folder(chosen), "rows")
    with open(path, "wb") as file:
        file.write(os.urandom(64 * SIZE))
    lab.Training(chosen, compute=0.012).run(lab.loader(Locked(100000, path, not chosen.repair), chosen.workers))
