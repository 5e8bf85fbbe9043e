"""S09: workers pinned to one core.

worker_init_fn pins every worker to the same core; every sample burns 3 ms: B = 24 ms, W = 2, C = 13 ms. step 24,
share 0.46, for any W. Right: cpu-capped, by affinity; first fix the affinity. Wrong first: more workers, storage.
"""

import os

import lab


def pin(worker):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("cpu-affinity",)).parse_args()
    samples = lab.Samples(length=100000, burn_chunks=lab.chunks_for(0.003))
    batches = lab.loader(samples, chosen.workers, worker_init_fn=None if chosen.repair else pin)
    lab.Training(chosen, compute=0.013).run(batches)
