"""F47: row groups at random.

Rows of 16 KiB lie in groups of 64 (1 MiB); every sample reads its whole group from a disk that gives 200 MB/s to each
reader, and uses one row of it (parquet where pyarrow is installed, a file of the same shape else). 5.2 ms a sample: L
= 42 ms, W = 2, C = 10 ms. step 21, share 0.5. Right: read-amplification (64 times); first fix read in the order of
the file, or a layout by row. Wrong first: prefetch_factor, the decoder.
"""

import os
import time

import torch

import lab

ROW, GROUP, GROUPS = 16 * 1024, 64, 12
RATE = 200e6


def write(folder):
    path = os.path.join(folder, "rows")
    with open(path, "wb") as file:
        for _ in range(GROUP * GROUPS):
            file.write(os.urandom(ROW))
    return path


class Rows(lab.Samples):
    """Rows by their number; with `whole` the group around a row is read for it."""

    def __init__(self, length, path, whole):
        super().__init__(length)
        self.path, self.whole, self.file = path, whole, None

    def __getitem__(self, index):
        if self.file is None:
            self.file = open(self.path, "rb", buffering=0)  # noqa: SIM115
        row = index * 7919 % (GROUP * GROUPS)
        size = GROUP * ROW if self.whole else ROW
        self.file.seek(row // GROUP * GROUP * ROW if self.whole else row * ROW)
        read = self.file.read(size)
        time.sleep(len(read) / RATE)
        begin = row % GROUP * ROW if self.whole else 0
        return torch.frombuffer(bytearray(read[begin : begin + ROW]), dtype=torch.uint8)


if __name__ == "__main__":
    repairs = ("sequential-layout", "preprocess-once", "shard-files", "nvme-cache")
    chosen = lab.options(__doc__, workers=2, repairs=repairs).parse_args()
    if chosen.repair == "nvme-cache":
        RATE = 2e9
    whole = chosen.repair in (None, "nvme-cache")
    lab.Training(chosen, compute=0.010).run(lab.loader(Rows(100000, write(lab.folder(chosen)), whole), chosen.workers))
