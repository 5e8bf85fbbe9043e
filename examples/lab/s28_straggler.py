"""S28: one rank's loader holds up the other.

Two ranks over gloo, C = 20 ms, gradients are averaged every step. Rank 1's samples take 10 ms (L/W = 40 ms), rank 0's
2 ms (8 ms). step 40 on both: rank 0 spends half of it in the exchange, rank 1 half of it waiting. Right: rank-
straggler, rank 1, its input; first fix its loader or store. Wrong first: the network, rank 0, the model. With
--control both take 2 ms: 20 ms, no wait.
"""

import os
import socket
import subprocess
import sys

import torch
from torch.nn.parallel import DistributedDataParallel

import lab

RANKS = 2


def launch():
    """Starts this script once for each rank."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(RANKS))
    ranks = [
        subprocess.Popen([sys.executable, *sys.argv], env=dict(shared, RANK=str(rank), LOCAL_RANK=str(rank)))
        for rank in range(RANKS)
    ]
    return max(rank.wait() for rank in ranks)


def train(chosen):
    rank = int(os.environ["RANK"])
    if rank != 0:
        chosen.truth = None
    torch.distributed.init_process_group("gloo")
    slow = rank == 1 and not chosen.control and not chosen.repair
    training = lab.Training(chosen, compute=0.020, device=rank)
    training.layer = DistributedDataParallel(training.layer)
    training.run(lab.loader(lab.Samples(length=100000, sleep=0.010 if slow else 0.002), chosen.workers))


if __name__ == "__main__":
    parser = lab.options(__doc__, workers=2, repairs=("fix-straggler", "nvme-cache"))
    parser.add_argument("--control", action="store_true")
    chosen = parser.parse_args()
    if "RANK" in os.environ:
        train(chosen)
    else:
        sys.exit(launch())
