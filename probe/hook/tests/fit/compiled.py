"""Runs on the side of the job: training through torch.compile."""

from __future__ import annotations

from typing import Any

import data
import torch
from torch.utils.data import DataLoader
from witness import Witness, Work


def train(witness: Witness, backend: str = "inductor", whole: bool = False, workers: int = 0) -> None:
    """A compiled model; with whole, a compiled function that makes the optimizer's step as well."""
    work = Work(witness, lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False))
    model = torch.compile(work.model, backend=backend)

    def loss_of(batch: Any) -> Any:
        return model(batch).pow(2).mean()

    def step() -> None:
        work.optimizer.step()

    if whole:
        step = torch.compile(step, backend=backend)
    loader = DataLoader(data.Items(24), batch_size=3, num_workers=workers)
    for _ in range(2):
        for batch, _ in witness.each(loader):
            loss = loss_of(batch)
            work.optimizer.zero_grad()
            loss.backward()
            witness.step(work.optimizer, call=step)
            witness.saw(batch, loss.item())
    counters = torch._dynamo.utils.counters
    for name in ("graph_break", "stats", "unimplemented"):  # "frames" also counts those it looked at and left alone
        witness.note(name, dict(counters[name]))
    witness.note("weights", [parameter.tolist() for parameter in work.model.parameters()])
