"""Nearly the same pixels for less CPU time, and what is no JPEG is left alone."""

import numpy as np
from PIL import Image

import proofs
from cheaper_decode import Photos, cost, reduced, whole


def prove(folder):
    proofs.photos(folder, 6, size=(1024, 768))
    before, after = Photos(folder, 64, whole), Photos(folder, 64)
    apart = [np.abs(before[i][0].numpy().astype(int) - after[i][0].numpy()) for i in range(len(after))]
    proofs.holds("pixels are one level of 256 apart at most, on average", np.mean(apart) < 1)
    proofs.holds("and none by more than a dozen", np.max(apart) <= 12)
    costs = [min(cost(photos) for _ in range(3)) for photos in (before, after)]
    proofs.holds("the CPU time is less than half", costs[1] < costs[0] / 2)
    plain = proofs.samples(proofs.ranks(after, 1, 0))
    for world, workers in proofs.WAYS:
        got = proofs.samples(proofs.ranks(after, world, workers))
        proofs.holds("each photo once, %d ranks of %d workers" % (world, workers), got == plain)
    for path in (folder / "small.jpg", folder / "drawing.png"):
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 90, 3), np.uint8)).save(path)
        proofs.holds("%s is as it was" % path.name, np.array_equal(whole(path, 64), reduced(path, 64)))
