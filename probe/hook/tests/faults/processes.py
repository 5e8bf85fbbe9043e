"""Surroundings in which processes fork in the middle of something."""

from __future__ import annotations

import sys
import threading
from typing import Any, List

from trainings import Numbers, Training, child, surrounding


@surrounding
def forks_while_a_sample_is_built(folder: str) -> Any:
    statuses: List[int] = []

    def fork(i: int) -> None:
        if i % 5 == 0:
            statuses.append(child(lambda: None))

    train = Training()
    train.epoch(train.loader(dataset=Numbers(40, fork)))
    train.epoch(train.loader(dataset=Numbers(40, fork), workers=1))
    return train.end(), statuses


@surrounding
def forks_that_train_on(folder: str) -> Any:
    """The child of a fork in the middle of a sample, of a step and between batches goes on by itself."""
    train = Training()

    def trains() -> None:
        inner = Training()
        inner.epoch(inner.loader(16))
        inner.epoch(inner.loader(16, workers=1))
        assert len(inner.diary) == 16

    def fork(i: int) -> None:
        if i == 7:
            train.diary.append(child(trains))

    train.epoch(train.loader(dataset=Numbers(12, fork)), 1, lambda: train.diary.append(child(trains)))
    weight = next(train.model.parameters())

    class Forking(train.torch.optim.SGD):  # type: ignore[name-defined,misc]
        def step(self, closure: Any = None) -> Any:
            train.diary.append(child(trains))
            return super().step(closure)

    weight.grad = None
    forking = Forking(train.model.parameters(), lr=0.01)
    for x, _i in train.loader(8):
        train.model(x).sum().backward()
        forking.step()
    return train.end()


@surrounding
def forks_beside_threads_that_fetch(folder: str) -> Any:
    """A fork may find every lock of the other threads taken. PyTorch's own are kept out of it: each loader draws from
    a generator of its own."""
    train = Training()
    stop = threading.Event()
    counts = [0] * 3

    def batches(length: int) -> List[List[int]]:
        generator = train.torch.Generator()
        return list(train.loader(dataset=list(range(length)), collate_fn=list, generator=generator))

    def fetch(n: int) -> None:
        while not stop.is_set():
            counts[n] += sum(map(len, batches(40))) == 40

    threads = [threading.Thread(target=fetch, args=(n,)) for n in range(len(counts))]
    for thread in threads:
        thread.start()
    statuses = {child(lambda: batches(24)) for _ in range(25)}
    stop.set()
    for thread in threads:
        thread.join()
    return sorted(statuses), all(counts)


@surrounding
def in_a_subinterpreter(folder: str) -> Any:
    try:
        import _xxsubinterpreters as interpreters  # 3.8 to 3.12
    except ImportError:
        return None
    code = "import sys; sys.path[:] = %r\nimport datawait\nassert list(datawait.watch([1, 2])) == [1, 2]" % sys.path
    interpreters.run_string(interpreters.create(), code)
    return [x.tolist() for x, _ in Training().loader()]
