"""torch.compile: the model is compiled, on request the optimizer's step too.

    datawait record -- python3 train_compile.py
"""

import argparse

import known
import torch
from torch.utils.data import DataLoader


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--optimizer", action="store_true", help="compile the optimizer's step too")
    chosen = parser.parse_args()
    loader = DataLoader(known.Samples(chosen.steps * known.BATCH), known.BATCH, num_workers=known.WORKERS)
    model = torch.nn.Linear(known.FEATURES, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    compiled = torch.compile(model)
    step = torch.compile(optimizer.step) if chosen.optimizer else optimizer.step

    compute, clock = known.Compute(), known.Clock()
    for features, labels in loader:
        clock.arrived()
        compute()
        torch.nn.functional.cross_entropy(compiled(features), labels).backward()
        step()
        optimizer.zero_grad()
        clock.done()


if __name__ == "__main__":
    main()
