"""A job that is watched for long: its loader keeps up until the file SLOW appears, and does again when it is gone.

    DATAWAIT_SPOOL=/run/datawait/spool DATAWAIT_JOB=alpha python3 train.py --seconds 60

Prints, when it ends, what its own clock says: steps, seconds in the loop, seconds inside next().
"""

import argparse
import json
import os
import time

import torch
from datawait import emulated
from torch.utils.data import DataLoader, Dataset

STEP_SECONDS = 0.030


class Samples(Dataset):
    def __init__(self, slow):
        self.slow = slow

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        time.sleep(0.020 if os.path.exists(self.slow) else 0.001)  # four of them a batch, and one worker
        return torch.zeros(16)


def main():
    options = parse()
    while options.after and not os.path.exists(options.after):
        time.sleep(0.05)
    gpu = emulated.Gpu(index=options.gpu)
    weights = torch.zeros(16, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.1)
    loader = iter(DataLoader(Samples(options.slow), batch_size=4, num_workers=1))
    began = time.perf_counter()
    steps, wait = 0, 0.0
    while time.perf_counter() - began < options.seconds and not os.path.exists(options.until):
        asked = time.perf_counter()
        batch = next(loader)
        wait += time.perf_counter() - asked
        gpu.launch(STEP_SECONDS, sm=0.9, tensor=0.4)
        (batch.mean() * weights.sum()).backward()
        optimizer.step()
        optimizer.zero_grad()
        gpu.synchronize()
        steps += 1
    print(json.dumps({"steps": steps, "seconds": time.perf_counter() - began, "wait": wait}), flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--slow", default="SLOW", help="while this file is there, the loader does not keep up")
    parser.add_argument("--after", default="", help="wait for this file")
    parser.add_argument("--until", default="", help="end when this file is there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
