"""timm: create_loader() with its PrefetchLoader, a small vision transformer, random images.

    datawait record -- python3 train_timm.py
"""

import argparse

import known
import timm
import torch
from PIL import Image
from timm.data import create_loader

SIDE = 32


class Images(torch.utils.data.Dataset):
    """Blank images that cost what a sample costs; create_loader() sets the transform."""

    def __init__(self, length):
        self.length, self.transform = length, None

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        known.build()
        return self.transform(Image.new("RGB", (SIDE, SIDE))), index % 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    chosen = parser.parse_args()
    model = timm.create_model(
        "vit_tiny_patch16_224", img_size=SIDE, patch_size=16, embed_dim=12, depth=1, num_heads=1, num_classes=2
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = create_loader(
        Images(chosen.steps * known.BATCH),
        input_size=(3, SIDE, SIDE),
        batch_size=known.BATCH,
        is_training=True,
        num_workers=known.WORKERS,
        device=torch.device("cpu"),
    )
    compute, clock = known.Compute(), known.Clock()
    model.train()
    for images, labels in loader:
        clock.arrived()
        compute()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        clock.done()


if __name__ == "__main__":
    main()
