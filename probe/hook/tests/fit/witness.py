"""Runs on the side of the job: what one training did, by its own account and its own clock.

``same`` has to come out alike with and without the hook, to the last bit. ``fetches`` and ``steps`` are what the ring
is held against: every next() and every optimizer step as the script saw them.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import threading
import time
from typing import Any, Dict, Iterator, List, Optional

import numpy
import torch

now = time.perf_counter_ns


class Witness:
    def __init__(self) -> None:
        torch.manual_seed(11)
        random.seed(12)
        numpy.random.seed(13)
        self.same: Dict[str, Any] = {"losses": [], "order": [], "ahead": [], "iterators": []}
        self.fetches: List[Dict[str, Any]] = []
        self.steps: List[Dict[str, Any]] = []
        self.count = 0  # steps of the optimizer that counts
        self.training = threading.get_native_id()  # the thread that trains now
        self.loose = False  # what workers built ahead depends on when they were stopped
        self._epochs: Dict[str, int] = {}
        self._open: Dict[int, Dict[str, Any]] = {}  # id of an iterator -> what is known of it
        self._depth = threading.local()

    # --- what the script does ---------------------------------------------------------------------------------

    def iter(self, loader: Any, name: str = "train", ahead: Any = None, numbered: bool = True) -> Any:
        """``iter(loader)``. ahead() tells how far the loader has gone; numbered: its k-th batch is its k-th task."""
        it = iter(loader)
        epoch = self._epochs.get(name, 0)
        self._epochs[name] = epoch + 1
        self._open[id(it)] = {"name": name, "epoch": epoch, "batch": 0, "ahead": ahead, "numbered": numbered}
        self.same["iterators"].append([name, type(it).__module__, type(it).__qualname__, iter(it) is it])
        return it

    def next(self, it: Any, *default: Any) -> Any:
        """``next(it)``, timed."""
        known = self._open[id(it)]
        depth = getattr(self._depth, "now", 0)
        thread = threading.get_native_id()
        row = {
            "loader": known["name"], "epoch": known["epoch"], "batch": known["batch"] if known["numbered"] else None,
            "first": known["batch"] == 0, "grad": torch.is_grad_enabled(), "thread": thread,
            "trains": thread == self.training, "nested": depth > 0, "step": self.count, "outcome": "error",
        }  # fmt: skip
        self._depth.now = depth + 1
        begin = now()
        try:
            batch = next(it, *default)
            end = now()
            row["outcome"] = "end" if default and batch is default[0] else "delivered"
            return batch
        except StopIteration:
            end = now()
            row["outcome"] = "end"
            raise
        except BaseException as error:
            end = now()
            row["error"] = type(error).__name__
            raise
        finally:
            self._depth.now = depth
            known["batch"] += row["outcome"] != "end"
            row.update(begin=begin, end=end)
            self.fetches.append(row)
            if known["ahead"] is not None:
                self.same["ahead"].append(known["ahead"]())

    def each(self, loader: Any, name: str = "train", ahead: Any = None, numbered: bool = True) -> Iterator[Any]:
        """``for batch in loader``."""
        it = self.iter(loader, name, ahead, numbered)
        while True:
            try:
                batch = self.next(it)
            except StopIteration:
                return
            yield batch

    def step(self, optimizer: Any, *args: Any, counts: bool = True, call: Any = None) -> Any:
        """``optimizer.step()``, timed. counts: it is the optimizer whose steps are the training's."""
        begin = now()
        result = (call or optimizer.step)(*args)
        self.count += counts
        self.steps.append({"begin": begin, "end": now(), "step": self.count, "thread": threading.get_native_id()})
        return result

    def saw(self, batch: Any, loss: Any = None) -> None:
        """A batch that arrived, and the loss it gave."""
        self.same["order"].append(digest(batch))
        if loss is not None:
            self.same["losses"].append(float(loss).hex())

    def note(self, name: str, value: Any) -> None:
        self.same.setdefault(name, []).append(value)

    # --- what is left of it -----------------------------------------------------------------------------------

    def testify(self) -> None:
        """Writes the account down; called when the cell is over, however it ended."""
        self.same["rng"] = generators()
        account = {
            "pid": os.getpid(), "same": self.same, "fetches": self.fetches, "steps": self.steps, "count": self.count,
            "loose": self.loose,
        }  # fmt: skip
        with open("witness.json", "w", encoding="utf-8") as file:
            json.dump(account, file)


def digest(batch: Any) -> Any:
    """A batch in a form that is equal only if every bit of it is."""
    if isinstance(batch, torch.Tensor):
        return [str(batch.dtype), list(batch.shape), batch.detach().contiguous().numpy().tobytes().hex()]
    if isinstance(batch, (list, tuple)):
        return [type(batch).__name__, [digest(part) for part in batch]]
    if isinstance(batch, dict):
        return {str(key): digest(part) for key, part in batch.items()}
    return repr(batch)


def generators() -> List[str]:
    """The state of each random generator of this process."""
    state = numpy.random.get_state()
    states = repr(random.getstate()).encode(), repr(state).encode() + state[1].tobytes(), torch.get_rng_state().numpy()
    return [hashlib.sha256(bytes(state)).hexdigest()[:16] for state in states]


class Work:
    """A model, its optimizer, and the training of one batch."""

    def __init__(self, witness: Witness, make: Optional[Any] = None) -> None:
        self.witness = witness
        self.model = torch.nn.Linear(4, 1)
        make = make or (lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9))
        self.optimizer = make(self.model.parameters())

    def loss(self, batch: Any) -> Any:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        return self.model(x.reshape(-1, 4)).pow(2).mean()

    def train(self, batch: Any) -> None:
        loss = self.loss(batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.witness.step(self.optimizer)
        self.witness.saw(batch, loss.item())
