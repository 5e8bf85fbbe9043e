"""Every 20 steps a validation loop fetches four slow batches. What it waits for is no wait of the training.

    a step       wait 0.6 ms | compute 10 ms                6 % of it is data wait
    validation   4 × 30 ms, as much as the waits of 200 steps

Whoever charges those fetches to the training step that follows calls this loop a third input-bound.
"""

import time

import torch
from torch.utils.data import DataLoader, Dataset

from own import Own, arguments


class Samples(Dataset):
    def __init__(self, length, seconds):
        self.length, self.seconds = length, seconds

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.ones(4)


class HeldOut(Samples):
    """Tells the validation loader from the other in a report."""


chosen = arguments(__doc__, grad="off")
layer = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
held_out = DataLoader(HeldOut(4, 0.03))
own = Own(chosen.truth)
waited = 0.0


def validate():
    global waited
    begin = own.clock()
    with torch.set_grad_enabled(chosen.grad == "on"):
        iterator = iter(held_out)
        while True:
            enter = own.clock()
            batch = next(iterator, None)
            waited += own.clock() - enter
            if batch is None:
                break
            layer(batch)
    own.apart(own.clock() - begin)


iterator = iter(DataLoader(Samples(200, 0.0006)))
while own.steps < 200:
    batch = own.next(iterator)
    layer(batch).sum().backward()
    time.sleep(0.010)
    optimizer.step()
    optimizer.zero_grad()
    own.step()
    if own.steps % 20 == 0:
        validate()
own.write(validated=waited)
