"""The shortest training there is: import PyTorch, make a loader and an optimizer, take one step."""

import torch
from torch.utils.data import DataLoader

from own import Own, arguments

chosen = arguments(__doc__)
own = Own(chosen.truth)
layer = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
batch = own.next(iter(DataLoader(torch.ones(8, 4), batch_size=2)))
layer(batch).sum().backward()
optimizer.step()
own.step()
own.write()
