"""What the scenarios share: samples of a known cost, work that is real, a training loop that keeps its own truth.

A scenario states its arithmetic in its docstring. The device is emulated; loaders, processes and clocks are real. The
loop writes what it saw with its own clock to the file named by --truth, one line a step, so that a report can be
checked against something datawait did not measure. With --repair the fix of that name is made for real.
"""

import argparse
import hashlib
import os
import tempfile
import time

import torch
from datawait import emulated
from torch.utils.data import DataLoader, Dataset

BATCH = 8
_CHUNK = bytes(16384)


def burn(chunks):
    """Real work: hashes this many 16 KiB chunks. It polls no clock, so a wrong CPU split has nothing to hide behind."""
    digest = hashlib.sha256()
    for _ in range(chunks):
        digest.update(_CHUNK)
    return digest.digest()


def chunks_for(seconds):
    """How many chunks cost this much CPU here: the fastest of several tries, which is the least disturbed one."""
    tried = []
    for _ in range(7):
        begin = time.thread_time()
        burn(200)
        tried.append(time.thread_time() - begin)
    return max(1, round(seconds * 200 / min(tried)))


class Samples(Dataset):
    """`length` samples; each sleeps (storage latency) and then burns (decoding)."""

    def __init__(self, length, sleep=0.0, burn_chunks=0, lock=None):
        self.length, self.sleep, self.chunks, self.lock = length, sleep, burn_chunks, lock

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.sleep and self.lock is not None:
            with self.lock:
                time.sleep(self.sleep)
        elif self.sleep:
            time.sleep(self.sleep)
        if self.chunks:
            burn(self.chunks)
        return torch.zeros(16)


def options(description, workers, steps=100000, repairs=()):
    """The arguments every scenario takes. `repairs` are the fixes it can make for real, by their names in reports."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=workers)
    parser.add_argument("--steps", type=int, default=steps, help="stop after this many")
    parser.add_argument("--truth", metavar="FILE", help="write the loop's own clock here")
    parser.add_argument("--repair", metavar="FIX", choices=repairs, help="one of: %s" % (", ".join(repairs) or "none"))
    return parser


def folder(chosen):
    """Where a script may leave files: beside its truth, which whoever asked for that cleans up."""
    return tempfile.mkdtemp(dir=os.path.dirname(chosen.truth) if chosen.truth else None)


def loader(dataset, workers, **arguments):
    if workers:
        arguments.setdefault("prefetch_factor", 2)
        arguments.setdefault("persistent_workers", True)
    return DataLoader(dataset, batch_size=BATCH, num_workers=workers, **arguments)


class Training:
    """A loop over one loader: an optimizer step, `compute` seconds on the device, one synchronisation a step."""

    def __init__(self, chosen, compute, device=0):
        torch.set_num_threads(1)
        self.steps, self.compute, self.done = chosen.steps, compute, 0
        self.synchronises = chosen.repair != "remove-sync"
        # Open as long as the process: the run is ended by SIGKILL, and every line before that counts.
        self.truth = open(chosen.truth, "w", buffering=1) if chosen.truth else None  # noqa: SIM115
        self.gpu = emulated.Gpu(index=device)
        self.layer = torch.nn.Linear(16, 2)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=1e-3)

    def run(self, batches, before_launch=None, after_step=None, after_epoch=None):
        """Trains until `steps` are done, epoch after epoch."""
        while self.done < self.steps:
            iterator = iter(batches)
            while self.done < self.steps:
                enter = time.perf_counter_ns()
                try:
                    batch = next(iterator)
                except StopIteration:
                    break
                leave = time.perf_counter_ns()
                if before_launch is not None:
                    before_launch(batch)
                self.step(batch)
                self.done += 1
                if after_step is not None:
                    after_step()
                if self.truth is not None:
                    end = time.perf_counter_ns()
                    self.truth.write("%d %d %d %.9f\n" % (enter, leave, end, self.gpu.busy_seconds))
            if after_epoch is not None:
                after_epoch()

    def step(self, batch):
        self.launch()
        self.learn(batch)
        if self.synchronises:
            self.gpu.synchronize()

    def launch(self):
        self.gpu.launch(self.compute, sm=0.9, tensor=0.4)

    def learn(self, batch):
        self.optimizer.zero_grad()
        self.layer(batch[:, :16].float()).sum().backward()
        self.optimizer.step()
