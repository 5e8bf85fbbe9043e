"""One job with all that a report should tell apart: workers that wait and compute, a start, validation, a device.

    a batch    8 ms off the CPU, then hashing that the worker times by its own thread clock and sends along
    the start  each worker takes 300 ms before its first batch
    a step     6 ms on the (emulated) device
"""

import hashlib
import time

import torch
from datawait import emulated
from torch.utils.data import DataLoader, Dataset

from own import Own, arguments

CHUNK = bytes(1 << 20)


class Samples(Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        time.sleep(0.004)  # two samples are a batch
        begin = time.thread_time()
        hashlib.sha256(CHUNK)
        return torch.tensor(time.thread_time() - begin, dtype=torch.float64)


class HeldOut(Samples):
    pass


def begin_slowly(worker):
    time.sleep(0.3)


def main():
    chosen = arguments(__doc__)
    layer = torch.nn.Linear(2, 1).double()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    gpu = emulated.Gpu()
    own = Own(chosen.truth)
    cpu, waits, starts = 0.0, [], []
    for _ in range(2):
        begin = own.clock()
        iterator = iter(DataLoader(Samples(320), batch_size=2, num_workers=1, worker_init_fn=begin_slowly))
        for index in range(160):
            enter = own.clock()
            batch = own.next(iterator)
            waits.append(own.clock() - enter)
            if index == 0:
                starts.append(own.clock() - begin)
            gpu.launch(0.006, sm=0.8)
            layer(batch).sum().backward()
            optimizer.step()
            gpu.synchronize()
            own.step()
            cpu += float(batch.sum())
        with torch.no_grad():
            for batch in DataLoader(HeldOut(8), batch_size=2):
                layer(batch)
    own.write(cpu=cpu / own.steps, waits=waits, starts=starts)


if __name__ == "__main__":
    main()
