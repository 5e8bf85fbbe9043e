"""S12: a cold first epoch.

A sample takes 20 ms the first time anybody reads it and 0.5 ms from then on. 25 batches an epoch, W = 2, C = 15 ms.
Epoch 0: L/W = 80 ms, share 0.81; later epochs: the hand-off floor. Right: cold-cache, one-off seconds and nothing to
fix for a long run. Wrong first: more workers.
"""

import multiprocessing
import time

import torch

import lab

SAMPLES = 25 * lab.BATCH


class Cached(lab.Samples):
    """What was read once, by any worker, is in the page cache."""

    def __init__(self, warm):
        super().__init__(SAMPLES)
        self.touched = multiprocessing.Array("b", [warm] * SAMPLES, lock=False)

    def __getitem__(self, index):
        time.sleep(0.0005 if self.touched[index] else 0.020)
        self.touched[index] = 1
        return torch.zeros(16)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("nvme-cache",)).parse_args()
    lab.Training(chosen, compute=0.015).run(lab.loader(Cached(warm=int(bool(chosen.repair))), chosen.workers))
