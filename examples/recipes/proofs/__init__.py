"""What proves the recipes: made-up data, and what loaders deliver to all ranks together. No recipe needs it to work."""

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from torch.utils.data import DataLoader, DistributedSampler

# Ranks and workers that a data set must serve alike.
WAYS = [(world, workers) for world in (1, 2) for workers in (0, 2)]


def options(description, **defaults):
    """The arguments of a recipe. With --check its claims are proven first, by the module of its name here."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument("--" + name, default=default, type=str if default is None else type(default))
    parser.add_argument("--check", action="store_true", help="prove what is claimed, on made-up data")
    chosen = parser.parse_args()
    if chosen.check:
        with tempfile.TemporaryDirectory() as folder:
            importlib.import_module("proofs." + Path(sys.argv[0]).stem).prove(Path(folder))
    return chosen


def holds(claim, truth):
    """Says that a claim holds; ends the script where it does not."""
    if not truth:
        raise SystemExit("fails: " + claim)
    print("holds: " + claim)


def photos(folder, count, size=(96, 72)):
    """So many different pictures as JPEG files; returns their names."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    names = ["%05d.jpg" % index for index in range(count)]
    for index, name in enumerate(names):
        blocks = np.random.default_rng(index).integers(0, 256, (6, 8, 3), np.uint8)
        Image.fromarray(blocks).resize(size, Image.BICUBIC).save(Path(folder) / name, quality=90)
    return names


def ranks(dataset, world, workers, **arguments):
    """A loader for every rank, each with its share of a map-style data set."""
    for rank in range(world):
        sampler = DistributedSampler(dataset, world, rank)
        yield DataLoader(dataset, batch_size=4, sampler=sampler, num_workers=workers, **arguments)


def samples(loaders):
    """All samples that the loaders deliver, each as bytes, sorted."""
    return sorted(
        b"".join(np.asarray(column).tobytes() for column in sample)
        for loader in loaders
        for batch in loader
        for sample in zip(*batch)
    )


def rate(loader, count):
    """Samples per second over an epoch."""
    begin = time.perf_counter()
    for _ in loader:
        pass
    return count / (time.perf_counter() - begin)
