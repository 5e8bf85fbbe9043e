"""S07: threads inside workers.

Every worker takes 32 threads for its matrix work on two cores, and threads that wait spin. W = 2, C = 10 ms. There is
no closed form; with one thread per worker a step takes half of the time or less. Right: thread-oversubscription;
first fix one thread per worker. Wrong first: more workers, storage, the decoder.
"""

import os

os.environ["OMP_WAIT_POLICY"] = "ACTIVE"  # read when the library is loaded, so before torch is

import torch

import lab

THREADS = 32


class Products(lab.Samples):
    """Six tanh of a 256 × 256 matrix for each sample."""

    def __getitem__(self, index):
        values = torch.full((256, 256), 0.5)
        for _ in range(6):
            values = torch.tanh(values)
        return values[0, :16].clone()


def many_threads(worker):
    torch.set_num_threads(THREADS)


def one_thread(worker):
    torch.set_num_threads(1)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("worker-threads",)).parse_args()
    start = one_thread if chosen.repair else many_threads
    lab.Training(chosen, compute=0.010).run(lab.loader(Products(100000), chosen.workers, worker_init_fn=start))
