"""Stored samples are those of before, and a version stands for all that they depend on."""

import json
import os

from torch.utils.data import DataLoader

import proofs
from preprocess_once import Source, Stored, prepare


def make_up(folder, count):
    """Photos and the records that are joined to them."""
    names = proofs.photos(folder, count)
    records = {name: {"features": [index / 7] * 4, "label": index} for index, name in enumerate(names)}
    (folder / "records.json").write_text(json.dumps(records))
    return folder


def prove(folder):
    photos, out = make_up(folder / "photos", 12), folder / "versions"
    source = Source(photos, 32)
    version = prepare(source, out, workers=2)
    before = proofs.samples([DataLoader(source, batch_size=4)])
    for world, workers in proofs.WAYS:
        after = proofs.samples(proofs.ranks(Stored(version), world, workers))
        proofs.holds("the samples of before, each once, for %d ranks of %d workers" % (world, workers), before == after)
    made = os.stat(version).st_mtime_ns
    proofs.holds("a version is made once", prepare(source, out) == version and os.stat(version).st_mtime_ns == made)
    proofs.holds("another size is another version", Source(photos, 33).version() != source.version())
    os.utime(photos / source.names[0], (0, 0))
    proofs.holds("a photo that changed makes another version", source.version() != version.name)
