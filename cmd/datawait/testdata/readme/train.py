"""A short training job, as the README speaks of: one epoch, a DataLoader, an optimizer. Any number of ranks runs it."""

import argparse
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
options = parser.parse_args()

torch.set_num_threads(1)


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 1600

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.zeros(16)


model = torch.nn.Linear(16, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(options.epochs):
    for batch in torch.utils.data.DataLoader(Samples(), batch_size=8, num_workers=2):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
