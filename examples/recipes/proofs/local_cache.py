"""What is read is what the store holds, whoever reads at once and whatever happens to the drive."""

import resource
import time
from pathlib import Path

from torch.utils.data import DataLoader, Dataset

import proofs
from local_cache import LocalCache


class Store:
    """Files that are far away."""

    def __init__(self, folder, latency=0.0, made=0):
        self.folder, self.latency = Path(folder), latency
        if made:
            proofs.photos(folder, made)
        self.names = sorted(path.relative_to(folder).as_posix() for path in self.folder.rglob("*") if path.is_file())

    def fetch(self, name):
        time.sleep(self.latency)
        return (self.folder / name).read_bytes()


class Files(Dataset):
    def __init__(self, names, read):
        self.names, self.read = names, read

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return self.names[index], self.read(self.names[index]).hex()


def gone(name):
    raise RuntimeError("%s was fetched again" % name)


def prove(folder):
    store = Store(folder / "store", made=12)
    truth = proofs.samples([DataLoader(Files(store.names, store.fetch))])
    size = sum((store.folder / name).stat().st_size for name in store.names)

    def reads(cache, world=1, workers=0):
        return proofs.samples(proofs.ranks(Files(store.names, cache.read), world, workers)) == truth

    for world, workers in proofs.WAYS:
        cache = LocalCache(folder / ("%d-%d" % (world, workers)), "1", 1e9, store.fetch)
        proofs.holds("every byte of the store, %d ranks of %d workers" % (world, workers), reads(cache, world, workers))
        cache.fetch = gone
        proofs.holds("and again without the store", reads(cache, world, workers))
    at_once(folder / "at-once", store, truth)
    full(folder, store, size, reads)
    cache = LocalCache(folder / "1-0", "1", 1e9, store.fetch)
    for path in cache.folder.iterdir():
        path.write_bytes(path.read_bytes()[:-9])
    proofs.holds("files cut short are fetched again", reads(cache))
    cache.fetch = gone
    proofs.holds("and kept anew", reads(cache))
    proofs.holds("another version begins empty", not any(LocalCache(folder / "1-0", "2", 1e9, gone).folder.iterdir()))


def at_once(folder, store, truth):
    """Two workers read the same files at the same time."""
    cache = LocalCache(folder, "1", 1e9, store.fetch)
    twice = Files(store.names * 2, cache.read)
    got = proofs.samples([DataLoader(twice, batch_size=len(store.names), num_workers=2)])
    kept = len(list(cache.folder.iterdir()))
    proofs.holds("two workers that fetch the same both get it", got == sorted(truth * 2))
    proofs.holds("and it is kept once", kept == len(truth))


def full(folder, store, size, reads):
    """The limit, and a drive that is full before it."""
    cache = LocalCache(folder / "small", "1", size // 2, store.fetch)
    proofs.holds("what the limit leaves out is read from the store", reads(cache, workers=2))
    kept = sum(path.stat().st_size for path in cache.folder.iterdir())
    proofs.holds("the rest is kept, and no more", size // 4 < kept <= size // 2)

    cache = LocalCache(folder / "full", "1", 1e9, store.fetch)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # writing fails half-way, as on a full drive
    right = reads(cache)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    proofs.holds("on a full drive all is read from the store", right and not cache.writing)
    proofs.holds("and nothing is left behind", not any(cache.folder.iterdir()))
