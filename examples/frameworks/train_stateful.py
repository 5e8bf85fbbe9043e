"""torchdata's StatefulDataLoader: a loader that can be saved in the middle of an epoch, and is, every 50 steps.

    datawait record -- python3 train_stateful.py
"""

import argparse

import known
import torch
from torchdata.stateful_dataloader import StatefulDataLoader


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    chosen = parser.parse_args()
    loader = StatefulDataLoader(
        known.Samples(chosen.steps * known.BATCH), known.BATCH, num_workers=known.WORKERS
    )
    model = torch.nn.Linear(known.FEATURES, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    compute, clock = known.Compute(), known.Clock()
    for step, (features, labels) in enumerate(loader, 1):
        clock.arrived()
        compute()
        torch.nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            loader.state_dict()  # kept beside the checkpoint of the model
        clock.done()


if __name__ == "__main__":
    main()
