"""DistributedDataParallel over gloo, one process per rank.

    datawait record -- torchrun --nproc_per_node 2 train_ddp.py
    torchrun --nproc_per_node 2 --no-python datawait record -- python3 train_ddp.py

In the second form every rank starts through its own datawait; one of them observes for all.
"""

import argparse

import known
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    chosen = parser.parse_args()
    torch.distributed.init_process_group("gloo")
    ranks = torch.distributed.get_world_size()
    samples = known.Samples(chosen.steps * known.BATCH * ranks)
    loader = DataLoader(samples, known.BATCH, num_workers=known.WORKERS, sampler=DistributedSampler(samples))
    model = DistributedDataParallel(torch.nn.Linear(known.FEATURES, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    compute, clock = known.Compute(), known.Clock()
    for features, labels in loader:
        clock.arrived()
        compute()
        torch.nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        clock.done()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
