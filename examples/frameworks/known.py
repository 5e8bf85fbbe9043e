"""What the jobs share: samples of a known cost, a step of a known length, and the script's own clock.

A sample takes 20 ms to build, a batch of four 80 ms, so two workers deliver one every 40 ms. A batch is computed on for
12 ms. What is left of the 40 ms, less what the framework itself does, is spent waiting for data: 70 % at most.
"""

import os
import time

import torch
from torch.utils.data import Dataset

BATCH = 4
WORKERS = 2
SAMPLE_SECONDS = 0.020
COMPUTE_SECONDS = 0.012
FEATURES = 16

torch.set_num_threads(1)


def build():
    """What one sample costs."""
    time.sleep(SAMPLE_SECONDS)
    return torch.zeros(FEATURES)


class Samples(Dataset):
    """`length` samples and their labels."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return build(), index % 2


def quick(length):
    """Samples that cost nothing, to validate with."""
    return torch.utils.data.TensorDataset(torch.zeros(length, FEATURES), torch.zeros(length, dtype=torch.long))


class Compute:
    """What a model costs per batch: on the emulated device where datawait offers one, else on nothing at all."""

    def __init__(self):
        self.gpu = None
        if os.environ.get("DATAWAIT_GPU") == "emulated":
            from datawait import emulated

            self.gpu = emulated.Gpu()

    def __call__(self):
        if self.gpu is None:
            time.sleep(COMPUTE_SECONDS)
        else:
            self.gpu.launch(COMPUTE_SECONDS, sm=0.9)
            self.gpu.synchronize()


class Clock:
    """When batches arrived and when the loop was done with them, by the script itself.

    Written to the file named by TRUTH, a line a batch, so that a report can be checked against something datawait did
    not measure. Open as long as the process: a throw-away run is ended by SIGKILL, and every line before that counts.
    """

    def __init__(self):
        path, rank = os.environ.get("TRUTH"), os.environ.get("RANK", "0")
        self.file = open("%s.%s" % (path, rank), "w", buffering=1) if path else None  # noqa: SIM115
        self.at = 0

    def arrived(self):
        """The loop has its next batch."""
        self.at = time.perf_counter_ns()

    def done(self):
        """The loop will now ask for another one."""
        self._write("%d %d" % (self.at, time.perf_counter_ns()))

    def away(self):
        """What comes between this batch and the next is no ordinary step: a new epoch, a validation, a checkpoint."""
        self._write("away")

    def _write(self, line):
        if self.file is not None:
            self.file.write(line + "\n")
