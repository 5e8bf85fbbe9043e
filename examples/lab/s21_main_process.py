"""S21: work in the training process.

The loader is cheap (1 ms a sample, W = 2); 25 ms of CPU are burnt between next() and the launch, C = 15 ms. step
40, wait at its floor, device busy 0.375. Right: main-process, about 60 % of the step; first fix move the work
into workers, or let launches run ahead of it (25 ms without the synchronisation). Wrong first: more workers,
storage; wrong verdict: compute-bound.
"""

import lab

if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("move-off-main", "remove-sync")).parse_args()
    chunks = lab.chunks_for(0.025)
    training = lab.Training(chosen, compute=0.015)
    if chosen.repair == "move-off-main":
        moved = lab.Samples(length=100000, sleep=0.001, burn_chunks=round(chunks / lab.BATCH))
        training.run(lab.loader(moved, chosen.workers))
    else:
        samples = lab.Samples(length=100000, sleep=0.001)
        training.run(lab.loader(samples, chosen.workers), before_launch=lambda batch: lab.burn(chunks))
