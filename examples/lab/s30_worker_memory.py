"""S30: workers that grow.

Every worker keeps what it decoded, 256 KiB a batch, for ever. L = 8 ms, W = 2, C = 20 ms: nothing waits, and a worker
grows by 6 MB/s. Right: memory-growth, with the time to the limit; the wait is not blamed. First fix arrays, or keep
less. Wrong first: more workers.
"""

import time

import lab


class Remembering(lab.Samples):
    """Keeps every sample it ever decoded."""

    def __init__(self, length):
        super().__init__(length)
        self.kept = []

    def __getitem__(self, index):
        time.sleep(0.001)
        self.kept.append(bytearray(b"\1") * (1 << 15))
        return super().__getitem__(index)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("array-dataset",)).parse_args()
    samples = lab.Samples(100000, sleep=0.001) if chosen.repair else Remembering(100000)
    lab.Training(chosen, compute=0.020).run(lab.loader(samples, chosen.workers))
