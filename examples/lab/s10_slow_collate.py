"""S10: a slow collate function.

Every sample sleeps 0.5 ms, collate_fn burns 40 ms: L = 44 ms, W = 2, C = 12 ms. step max(12, 22) = 22, share 0.45.
Right: cpu-transform, in collate; first fix vectorize it. Wrong first: more workers, storage, augmentation.
"""

import functools

import torch

import lab


def slow_collate(chunks, samples):
    lab.burn(chunks)
    return torch.stack(samples)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("vectorize-collate",)).parse_args()
    collate = functools.partial(slow_collate, lab.chunks_for(0.004 if chosen.repair else 0.040))
    samples = lab.Samples(length=100000, sleep=0.0005)
    lab.Training(chosen, compute=0.012).run(lab.loader(samples, chosen.workers, collate_fn=collate))
