"""F38, F50: a heavy tail, as videos have it.

A clip takes 1 ms, one in 160 takes 0.4 s: L = 8 ms usually, 408 ms in one batch of 20, 28 ms on average. W = 3, C =
20 ms. L/W is 9 ms, so three workers have time to spare on average; but batches are delivered in order, and behind a
slow one the queue (two a worker) runs empty: a wait of about 0.4 − 5 × 0.02 = 0.3 s in 20 steps of 20 ms. Right:
slow-tail; first fix the slow samples, delivery out of order, or a longer queue. Wrong first: more workers, a faster
disk.
"""

import time

import torch

import lab


class Clips(lab.Samples):
    def __init__(self, length, split):
        super().__init__(length)
        self.split = split

    def __getitem__(self, index):
        slow = index % 160 == 37
        time.sleep(0.4 if slow and not self.split else 0.0035 if self.split else 0.001)
        return torch.zeros(16)


if __name__ == "__main__":
    parser = lab.options(__doc__, workers=3, repairs=("slow-samples", "prefetch-factor"))
    parser.add_argument("--prefetch", type=int, default=2)
    chosen = parser.parse_args()
    clips = Clips(100000, split=chosen.repair == "slow-samples")
    lab.Training(chosen, compute=0.020).run(lab.loader(clips, chosen.workers, prefetch_factor=chosen.prefetch))
