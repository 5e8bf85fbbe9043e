"""S25: launching takes longer than running.

40 kernels of 0.1 ms a step, and the host works 0.5 ms before each. The loader is cheap. step 24, device busy 0.17 of
it; a look at "any kernel lately" reads near 100 %. Right: launch-bound, or the training process holds the device up
(kernels are not counted). First fix larger batch, graphs, compile. Wrong first: anything about data.
"""

import lab

KERNELS = 40


class Launching(lab.Training):
    def step(self, batch):
        for _ in range(self.kernels):
            lab.burn(self.chunks)
            self.gpu.launch(self.compute, sm=0.9)
        self.learn(batch)
        if self.synchronises:
            self.gpu.synchronize()


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("larger-batch", "compile", "remove-sync")).parse_args()
    training = Launching(chosen, compute=0.0001)
    training.kernels, training.chunks = KERNELS, lab.chunks_for(0.0005)
    if chosen.repair == "compile":  # one graph: the kernels are launched as one
        training.kernels, training.compute = 1, KERNELS * training.compute
    elif chosen.repair == "larger-batch":  # twice the work per kernel, so half of the launches per sample
        training.kernels, training.compute = KERNELS // 2, 2 * training.compute
    training.run(lab.loader(lab.Samples(length=100000, sleep=0.0005), chosen.workers))
