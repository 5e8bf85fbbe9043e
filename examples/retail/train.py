"""Trains a product classifier of a retailer on an emulated A100, from the catalogue as it grew or as it should be.

    datawait diagnose --gpu emulated -- python3 train.py --store URL --data objects --workers 2 --prefetch 1
    datawait diagnose --gpu emulated -- python3 train.py --store URL --data shards  --workers 2 --prefetch 4 --cache DIR

The loader is PyTorch's where torch is installed, else loader.py. Everything before the device is real: HTTP requests,
decoding, processes and queues. The device is emulated.
"""

import argparse
import os
import random
import tempfile

from datasets import Shards, SmallObjects
from store import Store

try:
    if os.environ.get("RETAIL_TORCH") == "off":
        raise ImportError
    import torch
except ImportError:
    torch = None

import datawait
from datawait import emulated

FORWARD_SECONDS = 0.010
BACKWARD_SECONDS = 0.018
SM_ACTIVITY = 0.92
TENSOR_ACTIVITY = 0.45


def main():
    options = parse()
    if torch is not None:
        torch.set_num_threads(1)
    store = Store(options.store)
    if options.data == "objects":
        dataset = SmallObjects(store, options.products)
    else:
        cache = options.cache or tempfile.mkdtemp(prefix="retail-cache-")
        dataset = Shards(store, options.products, options.per_shard, cache)
    train(torch_loader(dataset, options) if torch else plain_loader(dataset, options), options)


def train(loader, options):
    gpu = emulated.Gpu()
    model = Model()
    steps = 0
    for _ in range(options.epochs):
        for batch in loader:
            gpu.copy(0.0002)
            gpu.launch(FORWARD_SECONDS, sm=SM_ACTIVITY, tensor=TENSOR_ACTIVITY)
            gpu.launch(BACKWARD_SECONDS, sm=SM_ACTIVITY, tensor=TENSOR_ACTIVITY)
            model.step(batch)
            gpu.synchronize()  # what loss.item() does
            steps += 1
            if steps == options.steps:
                return


class Model:
    """The optimizer's step is PyTorch's where torch is there; the weight of the work is on the emulated device."""

    def __init__(self):
        if torch is not None:
            self.layer = torch.nn.Linear(64, 8)
            self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=1e-3)

    def step(self, batch):
        if torch is None:
            return
        self.optimizer.zero_grad()
        self.layer(batch[1]).square().mean().backward()
        self.optimizer.step()


def plain_loader(dataset, options):
    from loader import Loader

    rng = random.Random(options.seed)

    def shuffled():
        return rng.sample(range(len(dataset)), len(dataset))

    loader = Loader(dataset, shuffled, options.batch, options.workers, options.prefetch, collate=join)
    return datawait.watch(
        loader,
        workers=options.workers,
        prefetch=options.prefetch,
        length=len(loader),
        ready=loader.ready,
        sent=loader.sent,
        name="catalogue",
    )


def join(samples):
    pixels, features, labels = zip(*samples)
    return b"".join(pixels), b"".join(features), list(labels)


def torch_loader(dataset, options):
    return torch.utils.data.DataLoader(
        dataset,
        batch_size=options.batch,
        shuffle=True,
        drop_last=True,
        num_workers=options.workers,
        prefetch_factor=options.prefetch,
        persistent_workers=True,
        collate_fn=collate,
        generator=torch.Generator().manual_seed(options.seed),
    )


def collate(samples):
    pixels, features, labels = zip(*samples)
    return (
        torch.frombuffer(bytearray(b"".join(pixels)), dtype=torch.uint8).view(len(samples), -1),
        torch.frombuffer(bytearray(b"".join(features)), dtype=torch.float32).view(len(samples), -1),
        torch.tensor(labels),
    )


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, metavar="URL", help="the object store, as `datawait demo` serves it")
    parser.add_argument("--data", choices=["objects", "shards"], default="objects")
    parser.add_argument("--products", type=int, default=1200)
    parser.add_argument("--per-shard", type=int, default=60)
    parser.add_argument("--cache", metavar="DIR", help="where shards are kept (default: a new temporary folder)")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--prefetch", type=int, default=1, help="batches asked ahead per worker")
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=0, help="stop after this many (0: run all epochs)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
