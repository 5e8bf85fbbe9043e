"""A loader that is not PyTorch's, made visible by two calls: a pool of processes behind a plain generator.

    datawait record -- python3 train_watch.py
"""

import argparse
import multiprocessing

import datawait
import known
import torch


def build(index):
    """Runs in a process of the pool."""
    with datawait.building(index, samples=known.BATCH):
        return torch.stack([known.build() for _ in range(known.BATCH)]), torch.zeros(known.BATCH, dtype=torch.long)


def batches(pool, count):
    yield from pool.imap(build, range(count))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    chosen = parser.parse_args()
    model = torch.nn.Linear(known.FEATURES, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    compute, clock = known.Compute(), known.Clock()
    with multiprocessing.Pool(known.WORKERS) as pool:
        loader = datawait.watch(batches(pool, chosen.steps), workers=known.WORKERS, length=chosen.steps)
        for features, labels in loader:
            clock.arrived()
            compute()
            torch.nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
            clock.done()


if __name__ == "__main__":
    main()
