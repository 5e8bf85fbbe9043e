"""Pack small files into tar shards, and read those as a stream.

Files of one name but for their suffix are a sample (a/7.jpg, a/7.json), as WebDataset has it, which reads these shards
too. Every rank and worker reads its part of one row of shards, shuffled anew each epoch; parts are cut by samples, so a
sample comes exactly once whatever the number of shards, and no worker is left without. Ranks may then differ by a
batch: train inside DDP's join(), or pass even=True, which leaves out fewer samples than there are workers, others each
epoch.

    python3 pack_shards.py                       # on files it makes up
    python3 pack_shards.py --source DIR --out SHARDS --megabytes 256
"""

import itertools
import json
import os
import random
import tarfile
import tempfile
from pathlib import Path

import torch
from torch.utils.data import IterableDataset, get_worker_info


def split(name):
    """What a file's name says: which sample, and what of it."""
    folder, slash, file = name.rpartition("/")
    stem, _, suffix = file.partition(".")
    return folder + slash + stem, suffix


def pack(source, out, megabytes, seed=0):
    """Writes tars of about this size, and last the list of them: without it there is nothing to read."""
    samples = {}
    for path in sorted(Path(source).rglob("[!.]*")):
        if path.is_file():
            name = path.relative_to(source).as_posix()
            samples.setdefault(split(name)[0], []).append(name)
    keys = list(samples)
    random.Random(seed).shuffle(keys)  # a shard must not be all of one class
    Path(out).mkdir(parents=True, exist_ok=True)
    shards, tar = [], None
    for key in keys:
        if tar is None or tar.offset >= megabytes * 1e6:
            if tar is not None:
                tar.close()
            shards.append(("%06d.tar" % len(shards), 0))
            tar = tarfile.open(Path(out) / shards[-1][0], "w", dereference=True)  # noqa: SIM115
        for name in samples[key]:
            tar.add(Path(source) / name, name)
        shards[-1] = (shards[-1][0], shards[-1][1] + 1)
    if tar is not None:
        tar.close()
    (Path(out) / "shards.json").write_text(json.dumps(shards))


def read(path, first, last):
    """The samples of a shard from first up to last, each {"__key__": name, suffix: bytes}."""
    with tarfile.open(path) as tar:
        for position, (key, files) in enumerate(itertools.groupby(tar, lambda info: split(info.name)[0])):
            if position >= last:
                return
            if position >= first:
                yield {"__key__": key, **{split(info.name)[1]: tar.extractfile(info).read() for info in files}}


def shuffled(samples, size, dice):
    """A buffer to draw from. It yields from a tenth on, while it fills: no epoch begins with waiting for all of it."""
    kept = []
    for turn, sample in enumerate(samples):
        kept.append(sample)
        if len(kept) > size or (len(kept) > size // 10 and turn % 2):
            drawn = dice.randrange(len(kept))
            kept[drawn], kept[-1] = kept[-1], kept[drawn]
            yield kept.pop()
    dice.shuffle(kept)
    yield from kept


class Shards(IterableDataset):
    def __init__(self, folder, decode, buffer=1000, seed=0, even=False, rank=None, world=None):
        self.folder, self.decode, self.buffer, self.seed, self.even = Path(folder), decode, buffer, seed, even
        self.shards = json.loads((self.folder / "shards.json").read_text())
        self.rank = int(os.environ.get("RANK", 0)) if rank is None else rank
        self.world = int(os.environ.get("WORLD_SIZE", 1)) if world is None else world
        self.epoch = torch.zeros((), dtype=torch.int64).share_memory_()  # persistent workers see it change

    def set_epoch(self, epoch):
        self.epoch.fill_(epoch)

    def __iter__(self):
        worker = get_worker_info()
        mine, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        part, parts = self.rank * workers + mine, self.world * workers
        dice = "%d %d" % (self.seed, self.epoch)
        row = random.Random(dice).sample(self.shards, len(self.shards))  # the same in all ranks
        total = sum(count for _, count in row)
        first, last = total * part // parts, total * (part + 1) // parts
        if self.even:
            last = first + total // parts
        samples = shuffled(self.part(row, first, last), self.buffer, random.Random("%s %d" % (dice, part)))
        return map(self.decode, samples)  # after the buffer: files take less memory than what they decode to

    def part(self, row, first, last):
        for name, count in row:
            if first < count and last > 0:
                yield from read(self.folder / name, max(first, 0), last)
            first, last = first - count, last - count


def main():
    import proofs
    from proofs.pack_shards import make_up

    chosen = proofs.options(__doc__, source=None, out=None, megabytes=0.05)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(chosen.source or make_up(Path(folder) / "files", 40)), Path(chosen.out or folder)
        pack(source, out, chosen.megabytes)
        shards = Shards(out, decode=len)
        files = sum(path.is_file() for path in source.rglob("*"))
        samples = sum(1 for _ in shards)
        print("an epoch of %d samples opens %d files instead of %d" % (samples, len(shards.shards), files))


if __name__ == "__main__":
    main()
