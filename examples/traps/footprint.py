"""What the training process consists of, halfway through: threads, children, sockets."""

import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

from own import Own, arguments


class Samples(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.ones(4)


def links(folder):
    for name in os.listdir(folder):
        try:
            yield os.readlink(os.path.join(folder, name))
        except OSError:  # the descriptor that lists the folder
            pass


def state():
    with open("/proc/self/task/%d/children" % os.getpid(), encoding="ascii") as file:
        children = len(file.read().split())
    threads = len(os.listdir("/proc/self/task"))
    sockets = sum(link.startswith("socket:") for link in links("/proc/self/fd"))
    return "%d threads, %d children, %d sockets" % (threads, children, sockets)


chosen = arguments(__doc__)
layer = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
own = Own(chosen.truth)
seen = []
for workers in (0, 2):
    iterator = iter(DataLoader(Samples(), num_workers=workers))
    for step in range(60):
        batch = own.next(iterator)
        layer(batch).sum().backward()
        optimizer.step()
        own.step()
        if step == 30:
            seen.append("%d workers: %s" % (workers, state()))
    del iterator
own.write(footprint="; ".join(seen))
