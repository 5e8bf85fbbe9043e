"""Each sample exactly once whatever the shards, ranks and workers, with the bytes of its files."""

import functools
from itertools import chain

from torch.utils.data import DataLoader

import proofs
from pack_shards import Shards, pack


def make_up(folder, count):
    """Photos, each with its label in a file beside it."""
    for index, name in enumerate(proofs.photos(folder / "a", count)):
        (folder / "a" / name).with_suffix(".cls").write_text(str(index % 3))
    return folder


def flat(sample):
    """A sample as text, so that batches of it are compared with the files."""
    return sample["__key__"], sample["cls"].decode(), sample["jpg"].hex()


def epoch(world, workers, folder, number=0, **arguments):
    """What each rank gets, in order."""
    out = []
    for rank in range(world):
        shards = Shards(folder, flat, buffer=8, rank=rank, world=world, **arguments)
        shards.set_epoch(number)
        loader = DataLoader(shards, batch_size=4, num_workers=workers)
        out.append([sample for batch in loader for sample in zip(*batch)])
    return out


def prove(folder):
    source = make_up(folder / "files", 41)
    truth = [
        ("a/" + photo.stem, photo.with_suffix(".cls").read_text(), photo.read_bytes().hex())
        for photo in sorted((source / "a").glob("*.jpg"))
    ]
    for kind, megabytes in ("several", 0.02), ("single", 100):
        out = folder / kind
        pack(source, out, megabytes)
        tars = len(list(out.glob("*.tar")))
        proofs.holds("%s tars hold %d samples" % (kind, len(truth)), tars == 1 if kind == "single" else tars > 3)
        for world, workers in proofs.WAYS:
            got = sorted(chain(*epoch(world, workers, out)))
            proofs.holds("each once, as its files: %s tars, %d ranks of %d" % (kind, world, workers), got == truth)
    again = functools.partial(epoch, 2, 2, folder / "several")
    proofs.holds("an epoch comes again as it was", again() == again())
    proofs.holds("another epoch has another order", again() != again(1) and sorted(chain(*again(1))) == truth)
    first, second = again(even=True)
    proofs.holds("even=True: ranks get equally many", len(first) == len(second) == len(truth) // 4 * 2)
    proofs.holds("and none twice", len(set(first + second)) == len(first + second))
    live_on(folder / "several")


def live_on(folder):
    """Workers that live on must be told of the next epoch."""
    shards = Shards(folder, flat, buffer=8)
    loader = DataLoader(shards, batch_size=4, num_workers=2, persistent_workers=True)
    orders = []
    for number in range(2):
        shards.set_epoch(number)
        orders.append([key for keys, _, _ in loader for key in keys])
    proofs.holds("workers that live on see the next epoch", orders[0] != orders[1] and set(orders[0]) == set(orders[1]))
