"""Preprocess once per data version: what is the same every epoch is done before training.

Decoding, resizing and joining run once and end in memory-mapped arrays; a sample is then a copy of bytes. The folder
is named after all that the arrays depend on (the parameters, the code of transform(), size and time of every source
file): a change of any makes a new version, and an old one is never read by mistake. Put your own transform() in; random
augmentation stays in training.

    python3 preprocess_once.py                   # on photos it makes up
    python3 preprocess_once.py --source DIR --out CACHE --size 224 --workers 8
"""

import hashlib
import inspect
import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import PIL
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


def transform(photo, record, size):
    """What is the same every epoch."""
    with Image.open(photo) as image:
        pixels = np.array(image.convert("RGB").resize((size, size), Image.BILINEAR))
    return torch.from_numpy(pixels), torch.tensor(record["features"]), record["label"]


class Source(Dataset):
    """As it was: every epoch decodes each photo, and joins the record that records.json beside it has of it."""

    def __init__(self, folder, size):
        self.folder, self.size = Path(folder), size
        self.records = json.loads((self.folder / "records.json").read_text())
        self.names = sorted(self.records)

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        name = self.names[index]
        return transform(self.folder / name, self.records[name], self.size)

    def version(self):
        """Changes with anything that the samples depend on."""
        files = [(name, os.stat(self.folder / name)) for name in [*self.names, "records.json"]]
        sources = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in files]
        parts = [self.size, inspect.getsource(transform), PIL.__version__, sources]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def prepare(source, out, workers=0):
    """Returns the folder of this version, made if it is not there. One process calls it, before training."""
    folder = Path(out) / source.version()
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix="partial-"))
    first, arrays = 0, []
    for batch in DataLoader(source, batch_size=64, num_workers=workers):
        for column, values in enumerate(map(np.asarray, batch)):
            if first == 0:
                shape = (len(source), *values.shape[1:])
                arrays.append(np.lib.format.open_memmap(partial / ("%d.npy" % column), "w+", values.dtype, shape))
            arrays[column][first : first + len(values)] = values
        first += len(batch[0])
    for array in arrays:
        array.flush()
    try:
        partial.rename(folder)  # a version is whole or not there
    except OSError:
        shutil.rmtree(partial)  # somebody else was first
    return folder


class Stored(Dataset):
    """The same samples in the same order, copied out of the arrays."""

    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.npy"))
        self.length = len(np.load(self.paths[0], mmap_mode="r"))
        self.arrays = None  # each worker opens them for itself, so that one which starts is sent paths and no data

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.arrays is None:
            self.arrays = [np.load(path, mmap_mode="r") for path in self.paths]
        return tuple(torch.from_numpy(np.array(array[index])) for array in self.arrays)

    def __getstate__(self):
        return {**self.__dict__, "arrays": None}


def main():
    import proofs
    from proofs.preprocess_once import make_up

    chosen = proofs.options(__doc__, source=None, out=None, size=64, workers=0)
    with tempfile.TemporaryDirectory() as folder:
        source = Source(chosen.source or make_up(Path(folder), 48), chosen.size)
        stored = Stored(prepare(source, chosen.out or folder, chosen.workers))
        for name, dataset in ("decoded and joined every epoch", source), ("read from arrays", stored):
            loader = DataLoader(dataset, batch_size=16, num_workers=chosen.workers)
            print("%s: %.0f samples/s" % (name, proofs.rate(loader, len(dataset))))


if __name__ == "__main__":
    main()
