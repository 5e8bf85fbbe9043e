"""Accelerate: prepare() and accumulate(), gradients accumulated over two batches.

    datawait record -- python3 train_accelerate.py
    datawait diagnose --gpu emulated -- python3 train_accelerate.py --steps 100000
    datawait record -- torchrun --nproc_per_node 2 train_accelerate.py --dispatch

With --dispatch the first rank fetches for all and sends the others their part; they fetch nothing themselves.
"""

import argparse

import known
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader

ACCUMULATE = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dispatch", action="store_true", help="one rank fetches for all")
    parser.add_argument("--steps", type=int, default=120)
    chosen = parser.parse_args()
    accelerator = Accelerator(
        cpu=True,
        gradient_accumulation_steps=ACCUMULATE,
        dataloader_config=DataLoaderConfiguration(dispatch_batches=chosen.dispatch),
    )
    model = torch.nn.Linear(known.FEATURES, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    samples = known.Samples(chosen.steps * ACCUMULATE * known.BATCH * accelerator.num_processes)
    loader = DataLoader(samples, known.BATCH, num_workers=known.WORKERS)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    compute, clock = known.Compute(), known.Clock()
    for features, labels in loader:
        clock.arrived()
        with accelerator.accumulate(model):
            compute()
            loss = torch.nn.functional.cross_entropy(model(features), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        clock.done()
    accelerator.end_training()


if __name__ == "__main__":
    main()
