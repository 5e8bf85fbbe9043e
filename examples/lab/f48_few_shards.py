"""F48: fewer shards than workers.

A stream of two shards, W = 4: two workers have nothing to read. 5 ms an item: L = 40 ms, and two workers at work give
one batch every 20 ms. C = 11 ms: step 20, share 0.45. Right: starved-workers; first fix more shards. Wrong first:
more workers.
"""

import time

import torch
from torch.utils.data import IterableDataset, get_worker_info

import lab


class Shards(IterableDataset):
    def __init__(self, shards):
        self.shards = shards

    def __iter__(self):
        worker = get_worker_info()
        mine = range(self.shards)[worker.id :: worker.num_workers]
        for _ in range(100000 if mine else 0):
            time.sleep(0.005)
            yield torch.zeros(16)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=4, repairs=("more-shards",)).parse_args()
    stream = Shards(4 if chosen.repair else 2)
    lab.Training(chosen, compute=0.011).run(lab.loader(stream, chosen.workers))
