"""Random augmentation on the device, a batch at a time; what is the same every epoch stays in the worker.

A worker decodes and resizes to one size, as bytes: a quarter of what floats take to copy. Crop, flip and colour are
drawn for each sample on the device, in a few kernels for the whole batch. Workers draw nothing, so how many there are
changes no sample. The device's step gets longer: not where it is the limit.

    python3 augment_on_gpu.py                    # on photos it makes up, and the CPU where there is no GPU
    python3 augment_on_gpu.py --source DIR --size 224 --batch 256 --workers 8
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    """The part of a sample that is the same every epoch: bytes of shape 3 × size × size."""

    def __init__(self, folder, size):
        self.paths, self.size = sorted(Path(folder).rglob("*.jpg")), size

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            pixels = np.array(image.convert("RGB").resize((self.size, self.size), Image.BILINEAR))
        return torch.from_numpy(pixels).permute(2, 0, 1).contiguous(), index


class Augment:
    """Random crop, flip, brightness, contrast and saturation, drawn for each sample. Give each rank its own seed."""

    def __init__(self, size, device, seed, strength=0.4):
        self.size, self.strength = size, strength
        self.dice = torch.Generator(device).manual_seed(seed)

    def draw(self, count, most):
        """Offsets up to `most` in both directions, flips, and three factors around 1."""
        where = {"generator": self.dice, "device": self.dice.device}
        offsets = torch.randint(0, most + 1, (2, count), **where)
        flips = torch.rand(count, **where) < 0.5
        factors = 1 + self.strength * (2 * torch.rand(3, count, 1, 1, 1, **where) - 1)
        return offsets, flips, factors

    def __call__(self, pixels):
        (top, left), flips, factors = self.draw(len(pixels), pixels.shape[-1] - self.size)
        return colour(crop(pixels, top, left, flips, self.size).float() / 255, *factors)


def crop(pixels, top, left, flips, size):
    """A window of each picture, some of them mirrored: one gather, whatever the number of pictures."""
    line = torch.arange(size, device=pixels.device)
    rows, columns = top[:, None] + line, left[:, None] + torch.where(flips[:, None], line.flip(0), line)
    picture = torch.arange(len(pixels), device=pixels.device)[:, None, None]
    return pixels[picture, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def colour(pictures, brightness, contrast, saturation):
    grey = torch.tensor([0.299, 0.587, 0.114], device=pictures.device).view(3, 1, 1)
    pictures = (pictures * brightness).clamp(0, 1)
    mean = (pictures * grey).sum(1, keepdim=True).mean((2, 3), keepdim=True)
    pictures = torch.lerp(mean, pictures, contrast).clamp(0, 1)
    return torch.lerp((pictures * grey).sum(1, keepdim=True), pictures, saturation).clamp(0, 1)


def main():
    import proofs

    chosen = proofs.options(__doc__, source=None, size=56, batch=16, workers=0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        if not chosen.source:
            proofs.photos(folder, 48)
        photos = Photos(chosen.source or folder, chosen.size * 8 // 7)
        augment, spent = Augment(chosen.size, device, seed=0), 0.0
        for pixels, _ in DataLoader(photos, chosen.batch, num_workers=chosen.workers, pin_memory=device.type == "cuda"):
            begin = time.perf_counter()
            batch = augment(pixels.to(device, non_blocking=True))
            mean = float(batch.mean())  # waits for the device
            spent += time.perf_counter() - begin
        print("augmented on %s: %.3f ms a sample, mean %.2f" % (device, 1000 * spent / len(photos), mean))


if __name__ == "__main__":
    main()
