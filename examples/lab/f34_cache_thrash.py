"""F34: a dataset larger than memory.

Every sample is 64 KiB of a file that is dropped from the page cache as soon as it was read, as it is when the
dataset is larger than memory; the disk takes 4 ms for it. L = 33 ms, W = 2, C = 10 ms, 60 batches an epoch: step
17, share 0.4, in every epoch. Right: cache-thrash, beside too-few-workers, which one argument hides. Wrong first:
the decoder, prefetch_factor; wrong verdict: a cold cache.
"""

import os
import time

import torch

import lab

SIZE, SAMPLES = 64 * 1024, 60 * lab.BATCH


class Dropped(lab.Samples):
    def __init__(self, path, cached):
        super().__init__(SAMPLES)
        self.path, self.cached, self.file = path, cached, None

    def __getitem__(self, index):
        if self.file is None:
            self.file = open(self.path, "rb", buffering=0)  # noqa: SIM115
            os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        self.file.seek(index * SIZE)
        read = self.file.read(SIZE)
        if not self.cached:
            time.sleep(0.004)
            os.posix_fadvise(self.file.fileno(), index * SIZE, SIZE, os.POSIX_FADV_DONTNEED)
        return torch.frombuffer(bytearray(read), dtype=torch.uint8)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("more-ram", "nvme-cache")).parse_args()
    path = os.path.join(lab.folder(chosen), "samples")
    with open(path, "wb") as file:
        for _ in range(SAMPLES):
            file.write(os.urandom(SIZE))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    samples = Dropped(path, cached=bool(chosen.repair))
    lab.Training(chosen, compute=0.010).run(lab.loader(samples, chosen.workers))
