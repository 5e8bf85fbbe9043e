"""S14: workers made anew every epoch.

Every sample sleeps 5 ms: L = 40 ms, W = 4, C = 20 ms: nothing waits in mid-epoch. worker_init_fn takes 0.3 s, an
epoch has 20 steps: 0.34 s of 0.74 s is the first batch, share 0.46 of the wall time. Right: epoch-start; first fix
persistent_workers. Wrong first: more workers (worse), storage.
"""

import time

import lab


def open_dataset(worker):
    time.sleep(0.3)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=4, repairs=("persistent-workers",)).parse_args()
    samples = lab.Samples(length=20 * lab.BATCH, sleep=0.005)
    batches = lab.loader(samples, chosen.workers, worker_init_fn=open_dataset, persistent_workers=bool(chosen.repair))
    lab.Training(chosen, compute=0.020).run(batches)
