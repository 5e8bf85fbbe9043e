"""What surroundings are made of. Each returns what must not depend on the hook; PyTorch is imported when it runs.

``SURROUNDINGS`` are those of all modules that were imported, by name.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List

Surrounding = Callable[[str], Any]
SURROUNDINGS: Dict[str, Surrounding] = {}


def surrounding(function: Surrounding) -> Surrounding:
    SURROUNDINGS[function.__name__] = function
    return function


class Training:
    """A model on numbers; everything it sees goes into a diary."""

    def __init__(self) -> None:
        import torch

        torch.manual_seed(7)
        self.torch = torch
        self.model = torch.nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.diary: List[Any] = []

    def loader(self, length: int = 40, workers: int = 0, dataset: Any = None, **options: Any) -> Any:
        data = Numbers(length) if dataset is None else dataset
        return self.torch.utils.data.DataLoader(data, batch_size=4, num_workers=workers, **options)

    def step(self, x: Any) -> None:
        loss = self.model(x).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.diary.append(loss.item())

    def epoch(self, loader: Any, after: int = -1, then: Callable[[], None] = lambda: None) -> None:
        """One pass; ``then`` happens after that many batches."""
        for count, (x, i) in enumerate(loader):
            self.step(x)
            self.diary.append(i.tolist())
            if count == after:
                then()

    def end(self) -> Dict[str, Any]:
        rng = hashlib.sha256(self.torch.get_rng_state().numpy().tobytes()).hexdigest()
        return {"diary": self.diary, "weights": [p.tolist() for p in self.model.parameters()], "rng": rng}


class Numbers:
    """A data set; ``each(i)`` happens while a sample is built."""

    def __init__(self, length: int, each: Callable[[int], None] = lambda i: None) -> None:
        self.length = length
        self.each = each

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> Any:
        import torch

        self.each(i)
        return torch.full((3,), float(i)) + torch.rand(1) * 1e-3, i


def spool() -> str:
    """The hook's folder; a bare run has one too, with nothing in it."""
    return os.environ.get("DATAWAIT_SPOOL") or os.path.join(os.path.dirname(os.getcwd()), "spool")


def rings() -> List[str]:
    return [os.path.join(spool(), name) for name in sorted(os.listdir(spool())) if name.endswith(".dwr")]


def three_epochs(then: Callable[[], None]) -> Any:
    """Something happens in the middle of the first of three, the last two with workers."""
    train = Training()
    train.epoch(train.loader(), 4, then)
    time.sleep(0.12)  # the hook looks around
    for _ in range(2):
        train.epoch(train.loader(16, workers=1))
    return train.end()


def as_nobody() -> None:
    """Root may write everywhere."""
    if os.geteuid() == 0:
        for path in (os.path.dirname(spool()), spool(), os.getcwd()):
            os.chown(path, 65534, 65534)
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        tempfile.tempdir = os.getcwd()  # root's, found before, may be closed to others


def stand_in(module: str, name: str, value: Any) -> None:
    """In a hooked run, value in the place of what the hook's module has there."""
    if module in sys.modules:
        setattr(sys.modules[module], name, value)


def child(act: Callable[[], Any]) -> int:
    """Runs act in a fork that leaves at once; its exit status."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]
