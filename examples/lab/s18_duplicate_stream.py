"""S18: every worker reads the whole stream.

A stream of 160 items of 2 ms that says its length when asked and does not look at get_worker_info(): with W = 4 an
epoch has 640 samples, each four times. C = 15 ms; nothing waits. Right: duplicate-data; first fix split the stream.
Wrong first: anything that makes it faster.
"""

import itertools
import time

import torch
from torch.utils.data import IterableDataset, get_worker_info

import lab


class Stream(IterableDataset):
    def __init__(self, split):
        self.split = split

    def __len__(self):
        return 160

    def __iter__(self):
        worker = get_worker_info()
        items = range(len(self))
        if self.split:
            items = itertools.islice(items, worker.id, None, worker.num_workers)
        for _ in items:
            time.sleep(0.002)
            yield torch.zeros(16)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=4, repairs=("split-stream",)).parse_args()
    batches = lab.loader(Stream(split=bool(chosen.repair)), chosen.workers)
    print("an epoch has %d batches" % len(batches))  # as a progress bar does
    lab.Training(chosen, compute=0.015).run(batches)
