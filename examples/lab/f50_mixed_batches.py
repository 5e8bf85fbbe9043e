"""Batches of mixed sizes, as bucketing by length makes them.

Batches of 2, 8 and 14 samples in turn, 5 ms a sample: L = 10, 40 and 70 ms, 40 on average. W = 2, C = 12 ms. step 20,
share 0.4. Right: too-few-workers, nothing else; first fix 4 workers. Wrong first: prefetch_factor, out of order.
"""

import itertools

from torch.utils.data import DataLoader

import lab

SIZES = (2, 8, 14)


class Buckets:
    """Index lists of sizes that alternate."""

    def __init__(self, batches):
        self.batches = batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        first = 0
        for size in itertools.islice(itertools.cycle(SIZES), self.batches):
            yield range(first, first + size)
            first += size


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2).parse_args()
    samples = lab.Samples(length=200000, sleep=0.005)
    batches = DataLoader(samples, batch_sampler=Buckets(20000), num_workers=chosen.workers, persistent_workers=True)
    lab.Training(chosen, compute=0.012).run(batches)
