"""Optimizers by the several, scheduled, scaled, by hand, and none at all."""

from __future__ import annotations

from typing import Any

import torch
from witness import Witness, Work

from .common import built, loader


def closures(witness: Witness) -> None:
    """LBFGS evaluates the loss as often as it likes within one step."""
    work = Work(witness, lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=4))
    for batch in witness.each(loader(), ahead=built):

        def closure(batch: Any = batch) -> Any:
            work.optimizer.zero_grad()
            loss = work.loss(batch)
            loss.backward()
            witness.note("evaluated", float(loss).hex())
            return loss

        witness.saw(batch, witness.step(work.optimizer, closure))


def several_optimizers(witness: Witness, count: int = 3) -> None:
    """One for each part of the model; the first is the one that counts."""
    work = Work(witness)
    work.model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(count)))
    optimizers = [torch.optim.AdamW(part.parameters(), lr=0.01) for part in work.model]
    for batch in witness.each(loader()):
        loss = work.loss(batch)
        loss.backward()
        for number, optimizer in enumerate(optimizers):
            if number < 16:
                witness.step(optimizer, counts=number == 0)
            else:
                optimizer.step()  # the ring leaves these out
            optimizer.zero_grad()
        witness.saw(batch, loss)


def scheduled(witness: Witness) -> None:
    """Learning-rate schedulers wrap step() as well."""
    work = Work(witness)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(work.optimizer, 0.1, total_steps=20)
    for batch in witness.each(loader()):
        work.train(batch)
        scheduler.step()
        witness.note("rate", scheduler.get_last_lr()[0].hex())


def scaled(witness: Witness) -> None:
    """A gradient scaler that skips the steps of two batches."""
    work = Work(witness)
    scaler = make_scaler(work)
    for number, batch in enumerate(witness.each(loader())):
        loss = work.loss(batch) * (float("inf") if number in (2, 5) else 1.0)
        work.optimizer.zero_grad()
        scaler.scale(loss).backward()
        if number in (2, 5):
            scaler.step(work.optimizer)
        else:
            witness.step(work.optimizer, call=lambda: scaler.step(work.optimizer))
        scaler.update()
        witness.saw(batch, loss)
    witness.note("scale", scaler.get_scale())
    witness.note("weights", work.model.weight.flatten().tolist())


def make_scaler(work: Work) -> Any:
    """PyTorch's for the CPU (2.3 and newer); before that there is none, and this stands in for it."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cpu", init_scale=16.0)

    class Scaler:
        factor = 16.0
        found = False

        def scale(self, loss: Any) -> Any:
            return loss * self.factor

        def step(self, optimizer: Any) -> Any:
            gradients = [parameter.grad for group in optimizer.param_groups for parameter in group["params"]]
            for gradient in gradients:
                gradient.div_(self.factor)
            self.found = not all(torch.isfinite(gradient).all() for gradient in gradients)
            return None if self.found else optimizer.step()

        def update(self) -> None:
            self.factor *= 0.5 if self.found else 1.0

        def get_scale(self) -> float:
            return self.factor

    return Scaler()


def by_hand(witness: Witness) -> None:
    """No optimizer: the weights are moved by hand."""
    work = Work(witness)
    for _ in range(2):
        for batch in witness.each(loader(), ahead=built):
            loss = work.loss(batch)
            work.model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in work.model.parameters():
                    parameter -= 0.01 * parameter.grad
            witness.saw(batch, loss)


def inference(witness: Witness, workers: int = 0) -> None:
    work = Work(witness)
    with torch.no_grad():
        for batch in witness.each(loader(24, workers)):
            witness.saw(batch, work.loss(batch))


def sweep(witness: Witness) -> None:
    """More trainings in one process than there are optimizers whose steps the ring takes in any case."""
    for _ in range(18):
        work = Work(witness)
        for batch in witness.each(loader(6)):
            work.train(batch)


def saves(witness: Witness) -> None:
    """A checkpoint every third step, resumed from in mid-run."""
    work = Work(witness)
    for number, batch in enumerate(witness.each(loader())):
        work.train(batch)
        if number % 3 == 2:
            state = {"model": work.model.state_dict(), "optimizer": work.optimizer.state_dict(), "step": number}
            torch.save(state, "step-%d.pt" % number)
    state = torch.load("step-2.pt")
    work.model.load_state_dict(state["model"])
    work.optimizer.load_state_dict(state["optimizer"])
    for batch in witness.each(loader()):
        work.train(batch)
