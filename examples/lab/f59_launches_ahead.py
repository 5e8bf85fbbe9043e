"""F59: the host waits, the device never starves.

One worker, L = 40 ms; C = 48 ms, and nothing synchronises: launches run ahead. The training thread spends nearly all
of a step inside next(), and the device is never idle, for what it has queued grows by 8 ms a step. Right: compute-
bound, a loss of 0, no fix to the data. Wrong: any verdict that takes the host's wait for the device's.
"""

import lab


class Ahead(lab.Training):
    def step(self, batch):
        self.launch()
        self.learn(batch)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=1).parse_args()
    training = Ahead(chosen, compute=0.048)
    training.gpu.depth = 1000  # as CUDA's launch queue is
    training.run(lab.loader(lab.Samples(length=100000, sleep=0.005), chosen.workers))
