"""Surroundings in which signals, tracers and the end of the process come between."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import time
from typing import Any, Callable, Iterator, List

from trainings import Numbers, Training, surrounding, three_epochs


@contextlib.contextmanager
def alarms(handler: Callable[..., None], every: float = 0.001) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, every, every)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@surrounding
def a_storm_of_signals(folder: str) -> Any:
    rung: List[int] = []
    train = Training()
    with alarms(lambda number, frame: rung.append(number)):
        for _ in range(3):
            train.epoch(train.loader(200))
        train.epoch(train.loader(40, workers=1))
    return train.end(), len(rung) > 10


@surrounding
def signals_that_fetch(folder: str) -> Any:
    """A handler that itself iterates over a loader."""
    train = Training()
    fetched: List[bool] = []
    loader = train.loader(8, shuffle=False)

    def handler(number: int, frame: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        fetched.append(len(list(loader)) == 2)
        signal.setitimer(signal.ITIMER_REAL, 0.0007)

    with alarms(handler, 0.0003):
        total = sum(i.sum().item() for _ in range(30) for _, i in train.loader(80))
    return total, all(fetched) and len(fetched) > 10


@surrounding
def signals_that_raise(folder: str) -> Any:
    class Late(Exception):
        pass

    return _raising(Late)


@surrounding
def signals_that_raise_what_system_calls_raise(folder: str) -> Any:
    """As a time limit does."""
    return _raising(TimeoutError)


def _raising(late: Any) -> Any:
    """Wherever the signal comes, the exception arrives in the script. The first fetches apart: in them modules are
    imported and paths resolved, and the standard library takes what is raised there for its own."""
    train = Training()
    train.epoch(train.loader(), 5, lambda: time.sleep(0.12))
    train.epoch(train.loader())
    raised = [0]
    caught = 0

    def handler(number: int, frame: Any) -> None:
        raised[0] += 1
        raise late("too slow")

    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        loader = train.loader(400)
        previous = signal.signal(signal.SIGALRM, handler)
        before = raised[0]
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0002 + 0.00013 * (caught % 17))
            for _x, _i in loader:
                if raised[0] != before:
                    break
        except late:
            caught += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
    return caught == raised[0], raised[0] > 20


@surrounding
def traced(folder: str) -> Any:
    calls = [0]

    def trace(frame: Any, event: str, arg: Any) -> Any:
        calls[0] += 1
        return trace

    sys.settrace(trace)
    threading.settrace(trace)
    result = three_epochs(lambda: None)
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type]
    return result, calls[0] > 100


@surrounding
def profiled(folder: str) -> Any:
    calls = [0]

    def profile(frame: Any, event: str, arg: Any) -> None:
        calls[0] += 1

    sys.setprofile(profile)
    result = three_epochs(lambda: None)
    sys.setprofile(None)
    return result, calls[0] > 100


@surrounding
def collected_all_the_time(folder: str) -> Any:
    collected = [0]
    gc.callbacks.append(lambda phase, info: collected.__setitem__(0, collected[0] + 1))
    gc.set_threshold(3, 2, 2)
    result = three_epochs(gc.freeze)
    gc.set_threshold(700, 10, 10)
    gc.callbacks.pop()
    return result, collected[0] > 100


@surrounding
def left_by_os_exit(folder: str) -> Any:
    train = Training()
    train.epoch(train.loader(), 5, lambda: os._exit(5))


@surrounding
def left_by_sys_exit(folder: str) -> Any:
    train = Training()
    train.epoch(train.loader(40, workers=1), 5, lambda: sys.exit(5))


@surrounding
def left_by_an_exception(folder: str) -> Any:
    def then() -> None:
        raise ZeroDivisionError

    train = Training()
    try:
        train.epoch(train.loader(40, workers=1), 5, then)
    except ZeroDivisionError:
        sys.exit(6)


@surrounding
def a_thread_dies_in_its_batch(folder: str) -> Any:
    train = Training()

    def die(i: int) -> None:
        if i == 9 and threading.current_thread() is not threading.main_thread():
            raise SystemExit  # silent in a thread

    thread = threading.Thread(target=lambda: list(train.loader(dataset=Numbers(40, die))))
    thread.start()
    thread.join()
    train.epoch(train.loader())
    return train.end()


@surrounding
def the_working_folder_is_gone(folder: str) -> Any:
    """Relative entries of the path lead nowhere then; a spawned worker is told by one where the hook lies."""
    import pickle

    train = Training()
    sys.path.insert(0, "")
    os.mkdir(os.path.join(folder, "gone"))
    os.chdir(os.path.join(folder, "gone"))
    os.rmdir(os.path.join(folder, "gone"))
    loop = train.torch.utils.data._utils.worker._worker_loop
    train.diary.append(callable(pickle.loads(pickle.dumps(loop))))
    train.epoch(train.loader(16, workers=1))
    return train.end()
