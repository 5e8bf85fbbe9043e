"""Batches are those of the loop, for a fraction of the CPU time and without growing memory."""

import re
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import proofs
from vectorized_collate import Texts, at_once, one_by_one, pack, packed_at_once, unpack


def make_up(count):
    """Texts of different lengths, some empty, not all of them English."""
    dice = np.random.default_rng(0)
    return ["Grüße, %d! " % index * length for index, length in enumerate(dice.integers(0, 12, count))]


def delivered(loaders):
    """Each sample's label and tokens, without padding."""
    out = []
    for loader in loaders:
        for batch in map(unpack, loader):
            rows = zip(batch["tokens"], batch["lengths"], batch["labels"])
            out += [(int(label), row[:length].tolist()) for row, length, label in rows]
    return sorted(out)


def looped(samples):
    return pack(one_by_one(samples))


def prove(folder):
    texts = Texts(make_up(32))
    plain = delivered(proofs.ranks(texts, 1, 0, collate_fn=looped))
    proofs.holds("tokens stand for the texts", [len(row) for _, row in plain] == [len(t.encode()) for t in make_up(32)])
    for world, workers in proofs.WAYS:
        got = delivered(proofs.ranks(texts, world, workers, collate_fn=packed_at_once))
        proofs.holds("the samples of the loop, each once, %d ranks of %d workers" % (world, workers), got == plain)
    samples = [texts[index] for index in range(32)]
    loop, once = one_by_one(samples), at_once(samples)
    proofs.holds("and its batches, padding and all", all(torch.equal(loop[name], once[name]) for name in loop))

    columns = {"column %d" % n: torch.full((4, n), n / 2 if n % 3 else n) for n in range(30)}
    shapes, flat = pack(columns)
    back = unpack((shapes, flat))
    proofs.holds("30 tensors are handed over as 2", len(flat) == 2)
    same = all(torch.equal(back[name], columns[name]) and back[name].dtype == columns[name].dtype for name in columns)
    proofs.holds("and are what they were", same and list(back) == list(columns))
    cheaper(samples)
    memory([text + "." for text in make_up(60000)])


def cheaper(samples):
    costs = {}
    for collate in (one_by_one, at_once):
        tries = []
        for _ in range(5):
            begin = time.thread_time()
            collate(samples)
            tries.append(time.thread_time() - begin)
        costs[collate] = min(tries)
    proofs.holds("the CPU time is less than a fifth", costs[at_once] < costs[one_by_one] / 5)


class Reads(Dataset):
    """How much memory becomes a worker's own when it looks at all samples once."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return 1

    def __getitem__(self, index):
        before = own()
        for position in range(len(self.samples)):
            self.samples[position]
        return own() - before


def own():
    """Bytes that this process shares with no other."""
    return 1024 * int(re.search(r"Private_Dirty:\s*(\d+)", Path("/proc/self/smaps_rollup").read_text()).group(1))


def memory(texts):
    size = sum(len(text.encode()) for text in texts)
    grown = [
        int(next(iter(DataLoader(Reads(kept), num_workers=1, multiprocessing_context="fork"))))
        for kept in (texts, Texts(texts))
    ]
    proofs.holds("a worker that reads a list copies all of it", grown[0] > size)
    proofs.holds("and of arrays next to nothing", grown[1] < grown[0] / 10)
