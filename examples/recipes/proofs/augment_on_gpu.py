"""What is done to a batch at once is what would be done to each picture alone, and workers draw nothing."""

import numpy as np
import torch
from PIL import Image, ImageOps

import proofs
from augment_on_gpu import Augment, Photos


def alone(picture, top, left, flip, factors, size):
    """The same in Pillow and plain arithmetic, for one picture."""
    image = Image.fromarray(picture.permute(1, 2, 0).numpy()).crop((left, top, left + size, top + size))
    pixels = np.asarray(ImageOps.mirror(image) if flip else image, dtype=np.float64) / 255
    brightness, contrast, saturation = factors
    pixels = np.clip(pixels * brightness, 0, 1)
    mean = (pixels @ [0.299, 0.587, 0.114]).mean()
    pixels = np.clip(mean + (pixels - mean) * contrast, 0, 1)
    grey = (pixels @ [0.299, 0.587, 0.114])[..., None]
    return np.clip(grey + (pixels - grey) * saturation, 0, 1).transpose(2, 0, 1)


def prove(folder):
    proofs.photos(folder, 12)
    photos = Photos(folder, 40)
    plain = proofs.samples(proofs.ranks(photos, 1, 0))
    for world, workers in proofs.WAYS:
        got = proofs.samples(proofs.ranks(photos, world, workers))
        proofs.holds("workers deliver the same bytes, %d ranks of %d workers" % (world, workers), got == plain)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    pixels = torch.stack([photos[index][0] for index in range(len(photos))]).to(device)
    batch = Augment(32, device, seed=3)(pixels)
    (tops, lefts), flips, factors = Augment(32, device, seed=3).draw(len(pixels), 8)
    for index, picture in enumerate(pixels.cpu()):
        drawn = int(tops[index]), int(lefts[index]), bool(flips[index]), factors[:, index].flatten().tolist()
        if not np.allclose(batch[index].cpu(), alone(picture, *drawn, 32), atol=1e-5):
            proofs.holds("picture %d of the batch is as it would be alone" % index, False)
    proofs.holds("each picture of a batch is as it would be alone", True)

    augment = Augment(32, device, seed=0)
    offsets, flips, factors = augment.draw(20000, 8)
    often = torch.bincount(offsets.flatten()) / offsets.numel()
    proofs.holds("every window is drawn, about as often", len(often) == 9 and (often - 1 / 9).abs().max() < 0.01)
    proofs.holds("half of them are mirrored", abs(flips.float().mean() - 0.5) < 0.02)
    proofs.holds("colours are evenly around what they were", abs(factors.mean() - 1) < 0.01 and factors.min() >= 0.6)
    proofs.holds("a seed draws again what it drew", torch.equal(Augment(32, device, seed=3)(pixels), batch))
    other = Augment(32, device, seed=4)(pixels)
    proofs.holds("and another seed, for another rank, does not", not torch.equal(other, batch))
