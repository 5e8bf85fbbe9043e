"""S23: a copy that everything waits for.

The loader is cheap (0.5 ms a sample, W = 4); each batch is copied to the device for 20 ms before C = 20 ms of
kernels. step 40, wait at its floor. Right: copy; first fix overlap it, or pinned memory. Wrong first: more workers, a
cache.
"""

import time

import lab


class CopyEngine:
    """Copies the next batch while the device computes: a second engine, not on the device's one stream."""

    def __init__(self, seconds):
        self.seconds, self.ready = seconds, 0.0

    def take(self, batch):
        """Waits for the batch that was asked for a step ago, and asks for the next."""
        time.sleep(max(0.0, self.ready - time.perf_counter()))
        self.ready = time.perf_counter() + self.seconds


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=4, repairs=("overlap-copy", "pin-memory")).parse_args()
    training = lab.Training(chosen, compute=0.020)
    seconds = 0.010 if chosen.repair == "pin-memory" else 0.020
    copy = CopyEngine(seconds).take if chosen.repair == "overlap-copy" else lambda batch: training.gpu.copy(seconds)
    samples = lab.Samples(length=100000, sleep=0.0005)
    training.run(lab.loader(samples, chosen.workers), before_launch=copy)
