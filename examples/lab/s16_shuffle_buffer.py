"""S16: a shuffle buffer that is filled before the first batch of every epoch.

A stream of items of 4 ms, a buffer of 100 in each of W = 2 workers, C = 20 ms, 60 steps an epoch. The fill takes 0.4
s and the first batch 0.03 s more; a worker then needs 32 ms for a batch, 16 of each step. 0.43 s of 1.63 s is the
first batch. Right: epoch-start; first fix a smaller buffer. Wrong first: more workers, persistent_workers, storage.
"""

import random
import time

import torch
from torch.utils.data import IterableDataset

import lab

STEPS = 60


class Shuffled(IterableDataset):
    """Keeps `buffer` items back and gives a random one of them for every new one."""

    def __init__(self, buffer):
        self.buffer = buffer

    def __iter__(self):
        share = STEPS * lab.BATCH // torch.utils.data.get_worker_info().num_workers
        kept = []
        for item in self.read(share + self.buffer):
            kept.append(item)
            if len(kept) > self.buffer:
                yield kept.pop(random.randrange(len(kept)))

    def read(self, items):
        for _ in range(items):
            time.sleep(0.004)
            yield torch.zeros(16)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("smaller-shuffle-buffer",)).parse_args()
    stream = Shuffled(buffer=25 if chosen.repair else 100)
    lab.Training(chosen, compute=0.020).run(lab.loader(stream, chosen.workers, persistent_workers=False))
