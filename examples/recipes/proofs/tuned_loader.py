"""The loader delivers what a plain one does, and its arguments are what the machine allows."""

import inspect
import math
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset

import proofs
from tuned_loader import ahead, each, quota, tuned, usable_cores, worker_count


class Squares(Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return index, index * index


class Worker(Dataset):
    """Tells of the worker that it runs in: process, threads, cores."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return os.getpid(), OpenCV.threads, len(os.sched_getaffinity(0))


class OpenCV:
    """Stands for the library, which takes a thread for each core unless it is told."""

    threads = 8

    @classmethod
    def setNumThreads(cls, threads):
        cls.threads = threads


def prove(folder):
    plain = proofs.samples(proofs.ranks(Squares(24), 1, 0))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for world, workers in proofs.WAYS:
        parts = [range(rank, 24, world) for rank in range(world)]
        loaders = (ahead(tuned(Squares(24), workers, batch_size=4, sampler=part), device) for part in parts)
        there = [[each(batch, torch.Tensor.cpu) for batch in loader] for loader in loaders]
        proofs.holds("each sample once, %d ranks of %d workers" % (world, workers), proofs.samples(there) == plain)
    of_workers()
    of_order()
    of_cgroups(folder)
    proofs.holds("what is built on the CPU takes no more workers than cores", worker_count(2, 0.04, 0.04, 0.01) == 2)
    proofs.holds("what waits for storage takes as many as it needs", worker_count(2, 0.10, 0.001, 0.01) == 11)
    proofs.holds("what is built in less than a step takes two", worker_count(8, 0.009, 0.009, 0.01) == 2)


def of_order():
    if "in_order" in inspect.signature(DataLoader).parameters:  # PyTorch 2.6
        got = proofs.samples([tuned(Squares(24), 2, any_order=True, batch_size=4)])
        proofs.holds("in any order each sample comes once", got == proofs.samples(proofs.ranks(Squares(24), 1, 0)))


def of_workers():
    sys.modules["cv2"] = OpenCV
    loader = tuned(Worker(), 2, batch_size=2, multiprocessing_context="fork")
    first, second = ([batch for batch in loader] for _ in range(2))
    processes = [{int(pid) for pids, _, _ in epoch for pid in pids} for epoch in (first, second)]
    proofs.holds("the same workers build the second epoch", len(processes[0]) == 2 and processes[0] == processes[1])
    proofs.holds("and OpenCV has no threads there", all(int(n) == 0 for _, threads, _ in first for n in threads))
    everything = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everything)})
    proofs.holds("a rank that is pinned to one core has one", usable_cores(1) <= 1)
    _, _, cores = next(iter(tuned(Worker(), 1, unpin=True, batch_size=8)))
    os.sched_setaffinity(0, everything)
    proofs.holds("unless its workers are let go", int(cores[0]) >= len(everything))


def of_cgroups(folder):
    def write(name, text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("2/proc/self/cgroup", "0::/pod/job\n")
    write("2/sys/fs/cgroup/pod/job/cpu.max", "max 100000\n")
    proofs.holds("no limit is none", quota(folder / "2") == math.inf)
    write("2/sys/fs/cgroup/pod/cpu.max", "250000 100000\n")
    proofs.holds("the limit of a pod holds for what is in it", quota(folder / "2") == 2.5)
    write("1/proc/self/cgroup", "5:memory:/m\n4:cpuacct,cpu:/docker/0123\n")
    write("1/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n")
    write("1/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    proofs.holds("as does that of a container, in version 1", quota(folder / "1") == 1.5)
