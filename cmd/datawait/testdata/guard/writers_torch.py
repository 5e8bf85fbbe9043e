"""A training loop of PyTorch that saves in every step, in one of the ways scripts do; the way is the first argument.

Runs with PyTorch 1.13 and newer.
"""

import io
import multiprocessing
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils.data import DataLoader, Dataset
from witness import Witness

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)


class Data(Dataset):
    def __len__(self):
        return 4 * 10**6

    def __getitem__(self, index):
        return torch.full((8,), float(index % 7))


def file_object(step):
    with open("model", "wb") as file:
        torch.save(model.state_dict(), file)


def buffer(step):
    """As Lightning does, for object stores."""
    written = io.BytesIO()
    torch.save(model.state_dict(), written)
    with open("model", "wb") as file:
        file.write(written.getvalue())


def script_module(step):
    torch.jit.script(model).save("model.pt")


POOL = ThreadPoolExecutor(1)


def thread(step):
    """Saves while training goes on; the next save waits for this one."""
    if thread.under_way is not None:
        thread.under_way.result()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    thread.under_way = POOL.submit(torch.save, state, "model.pt")


thread.under_way = None


class Saver:
    """A process that was there before: it gets the weights through a pipe."""

    def __init__(self):
        self.ours, theirs = multiprocessing.Pipe()
        multiprocessing.get_context("fork").Process(target=self.serve, args=(theirs,), daemon=True).start()

    def serve(self, pipe):
        while True:
            torch.save(pipe.recv(), "model.pt")
            pipe.send("done")

    def save(self, step):
        self.ours.send({name: tensor.numpy() for name, tensor in model.state_dict().items()})
        self.ours.recv()


WRITERS = {
    "a path": lambda step: torch.save(model.state_dict(), "model.pt"),
    "a file object": file_object,
    "a buffer": buffer,
    "a thread": thread,
    "a process from before": None,
    "a ScriptModule": script_module,
}


def main(writer):
    save = Saver().save if writer == "a process from before" else WRITERS[writer]
    witness = Witness()
    loader = DataLoader(Data(), batch_size=4, num_workers=1 if writer == "a buffer" else 0)
    for step, batch in enumerate(loader):
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        witness.save(step, save)


if __name__ == "__main__":
    main(sys.argv[1])
