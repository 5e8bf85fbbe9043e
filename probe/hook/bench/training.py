"""Small trainings: loaders that do nearly nothing, and steps of a known length."""

from __future__ import annotations

import itertools
from typing import Any, Callable

import measure
import torch
from torch.utils.data import DataLoader

FAST, SLOW = "step-of-200us", "step-of-35ms"  # on the machine they were made on


def nothing(samples: Any) -> None:
    return None


def trivial(n: int, workers: int = 0) -> DataLoader:
    """n batches of four small tensors, collated: about the shortest fetches of a training that trains something."""
    return DataLoader([torch.zeros(4)] * (4 * n), batch_size=4, num_workers=workers)  # type: ignore[arg-type]


def empty(n: int) -> DataLoader:
    """n batches of nothing: PyTorch's own floor, met by no training."""
    return DataLoader([None] * n, batch_size=1, collate_fn=nothing)  # type: ignore[arg-type]


def fetching(loader: Callable[[int], Any]) -> measure.Loop:
    """A loop that only fetches. The first batch starts workers and is left out."""

    def run(n: int) -> float:
        it = iter(loader(n + 1))
        next(it)
        begin = measure.clock()
        for _ in it:
            pass
        return (measure.clock() - begin) / n

    return run


class Step:
    """One training step on one core: forward, backward, optimizer."""

    def __init__(self, width: int, depth: int, samples: int) -> None:
        torch.manual_seed(0)
        layers = [torch.nn.Linear(width, width) for _ in range(depth)]
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.input = torch.randn(samples, width)

    def __call__(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.model(self.input).square().mean().backward()
        self.optimizer.step()


def no_step() -> None:
    pass


def fast() -> Step:
    return Step(8, 1, 4)


def slow() -> Step:
    """Walks through sixteen megabytes more than once: what was in the caches before the step is gone after it."""
    return Step(1024, 2, 8)


def stepping(step: Step, loader: Callable[[int], Any]) -> measure.Loop:
    """Fetches and steps, all of it."""

    def run(n: int) -> float:
        it = iter(loader(n + 1))
        next(it)
        begin = measure.clock()
        for _ in it:
            step()
        return (measure.clock() - begin) / n

    return run


def fetching_one_by_one(loader: Callable[[int], Any], step: Callable[[], None] = no_step) -> measure.Loop:
    """The median fetch of a loop with steps, apart from them: beside one of tens of milliseconds, or where workers are
    waited for, the whole says nothing of a microsecond."""

    def run(n: int) -> float:
        it = iter(loader(n + 1))
        next(it)
        clock, took = measure.clock, []
        for _ in itertools.repeat(None, n):
            step()
            begin = clock()
            next(it)
            took.append(clock() - begin)
        return sorted(took)[n // 2]

    return run
