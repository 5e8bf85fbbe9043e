"""Runs on the side of the job: two ranks that average their gradients over gloo, each in a folder of its own.

Started with a folder it launches itself twice: by torchrun, or where that does not work (PyTorch 1.13 on Python 3.11)
by setting what torchrun sets.
"""

from __future__ import annotations

import os
import subprocess
import sys

import torch


def main(folder: str) -> int:
    here = os.path.abspath(__file__)
    if torch.__version__ >= "2":
        from torch.distributed.run import main as torchrun

        torchrun(["--standalone", "--nproc_per_node=2", here, folder, "rank"])
        return 0
    ranks = [
        subprocess.Popen([sys.executable, here, folder, "rank"], env=dict(os.environ, RANK=str(rank), WORLD_SIZE="2"))
        for rank in range(2)
    ]
    return max(rank.wait() for rank in ranks)


def train(folder: str) -> None:
    import data
    import torch.distributed as dist
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler
    from witness import Witness, Work

    rank = int(os.environ["RANK"])
    store = "env://" if "MASTER_ADDR" in os.environ else "file://%s/store" % folder
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    os.mkdir(os.path.join(folder, "rank%d" % rank))
    os.chdir(os.path.join(folder, "rank%d" % rank))
    witness = Witness()
    work = Work(witness)
    work.model = torch.nn.parallel.DistributedDataParallel(work.model)
    dataset = data.Items(24)
    sampler = DistributedSampler(dataset, shuffle=True, seed=5)
    loader = DataLoader(dataset, batch_size=3, sampler=sampler, num_workers=rank)  # not the same on each
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for batch in witness.each(loader):
            work.train(batch)
    if rank == 0:
        torch.save(work.model.module.state_dict(), "final.pt")
    witness.note("weights", [parameter.tolist() for parameter in work.model.parameters()])
    dist.barrier()
    dist.destroy_process_group()
    witness.testify()


if __name__ == "__main__":
    if sys.argv[2:] == ["rank"]:
        train(sys.argv[1])
    else:
        sys.exit(main(sys.argv[1]))
