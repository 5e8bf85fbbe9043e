"""torchdata.nodes: a loader made of nodes, which does not come through PyTorch's; made visible by one call.

    datawait record -- python3 train_nodes.py
    datawait record -- python3 train_nodes.py --watch

The report of the first line says that the loader was not seen, and how it would be. The second does what it says.
"""

import argparse

import known
import torch
from torchdata.nodes import Batcher, IterableWrapper, Loader, ParallelMapper


def sample(index):
    return known.build(), index % 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--watch", action="store_true", help="let datawait see the loader")
    chosen = parser.parse_args()
    indexes = IterableWrapper(range(chosen.steps * known.BATCH))
    samples = ParallelMapper(indexes, sample, num_workers=known.WORKERS, method="thread")
    loader = Loader(Batcher(samples, known.BATCH))
    if chosen.watch:
        import datawait

        loader = datawait.watch(loader, workers=known.WORKERS)
    model = torch.nn.Linear(known.FEATURES, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    compute, clock = known.Compute(), known.Clock()
    for batch in loader:
        clock.arrived()
        compute()
        features, labels = torch.utils.data.default_collate(batch)
        torch.nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        clock.done()


if __name__ == "__main__":
    main()
