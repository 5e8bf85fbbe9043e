"""Surroundings in which a process may have only so much, and in which its descriptors are not its own."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import sys
import threading
import time
from typing import Any, Callable, List

from trainings import Numbers, Training, rings, surrounding, three_epochs


@surrounding
def files_may_not_grow(folder: str) -> Any:
    """A process that goes beyond is sent a signal, and dies of it once the script has undone what Python does."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    return three_epochs(lambda: None)


@surrounding
def files_may_not_even_begin(folder: str) -> Any:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    train = Training()
    train.epoch(train.loader())
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return train.end()


@surrounding
def files_may_grow_a_little(folder: str) -> Any:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    return three_epochs(lambda: None)


@surrounding
def few_descriptors(folder: str) -> Any:
    """As many as the script itself needs: it keeps opening one file."""
    train = Training()
    for x, _i in train.loader(8):  # whatever is imported late
        train.step(x)
    with open(os.devnull) as last:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (last.fileno() + 1, most))

    def opens(i: int) -> None:
        os.close(os.open(os.devnull, os.O_RDONLY))
        time.sleep(0.0005)

    train.epoch(train.loader(dataset=Numbers(40, opens)))
    return train.end()


@surrounding
def no_descriptor_left(folder: str) -> Any:
    train = Training()
    train.epoch(train.loader(8))
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    train.epoch(train.loader())
    time.sleep(0.02)
    train.epoch(train.loader())
    for fd in taken:
        os.close(fd)
    return train.end()


@surrounding
def no_descriptor_from_the_start(folder: str) -> Any:
    taken = []
    train = Training()
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    train.epoch(train.loader())
    for fd in taken:
        os.close(fd)
    return train.end()


@surrounding
def no_address_space(folder: str) -> Any:
    train = Training()
    loader = train.loader()
    for x, _i in train.loader(8):
        train.model(x)  # what is allocated once
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 20), resource.RLIM_INFINITY))
    diary = []
    for x, i in loader:
        diary.append([x.sum().item(), i.tolist()])
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return diary


@surrounding
def umask_takes_all(folder: str) -> Any:
    os.umask(0o777)
    result = three_epochs(lambda: None)
    return result, sorted({oct(os.stat(path).st_mode & 0o777) for path in rings()} - {"0o600"})


def _in_the_deep(depth: int, act: Callable[[], Any]) -> Any:
    return act() if depth == 0 else _in_the_deep(depth - 1, act)


@surrounding
def near_the_recursion_limit(folder: str) -> Any:
    """With so many frames left, and all fewer, PyTorch cannot fetch; with all more it can."""
    train = Training()
    at = 0
    frame = sys._getframe()
    while frame is not None:
        at, frame = at + 1, frame.f_back  # type: ignore[assignment]
    fetched = []
    for left in range(1, 120):
        loader = train.loader(8)

        def act(loader: Any = loader) -> List[Any]:
            return [i.tolist() for _, i in loader]

        try:
            fetched.append(_in_the_deep(sys.getrecursionlimit() - at - left, act) == [[0, 1, 2, 3], [4, 5, 6, 7]])
        except RecursionError:
            fetched.append(False)
    train.torch.manual_seed(7)  # fetches that failed have drawn numbers
    train.epoch(train.loader())
    too_few = fetched.count(False)
    return too_few, not any(fetched[:too_few]), train.end()


@surrounding
def every_file_is_closed_and_others_opened(folder: str) -> Any:
    """The script's own files come to lie under the numbers that were the hook's."""
    train = Training()
    train.epoch(train.loader(200))
    os.closerange(3, 1024)
    texts = ["%d some words of the script %d 3\n" % (n, n) * 9 for n in range(40)]
    files = []
    for number, text in enumerate(texts):
        file = open(os.path.join(folder, "file-%d" % number), "w+")  # noqa: SIM115
        file.write(text)
        file.flush()
        files.append(file)
    time.sleep(0.02)
    for _ in range(2):
        train.epoch(train.loader(200))
        time.sleep(0.02)
    train.epoch(train.loader(16, workers=1))
    gc.collect()
    for file, text in zip(files, texts):
        file.seek(0)
        train.diary.append(file.read() == text)
        file.close()
    return train.end()


@surrounding
def standard_files_are_closed(folder: str) -> Any:
    for fd in (0, 1, 2):
        os.close(fd)
    train = Training()
    train.epoch(train.loader())
    time.sleep(0.02)
    train.epoch(train.loader(dataset=Numbers(40, lambda i: time.sleep(0.0004))))
    # A daemon opens others in their place, and they get the lowest numbers.
    opened = [os.open(os.path.join(folder, "std%d" % n), os.O_RDWR | os.O_CREAT) for n in range(3)]
    os.write(1, b"out")
    os.write(2, b"err")
    train.epoch(train.loader(16, workers=1))
    sizes = [os.stat(os.path.join(folder, "std%d" % n)).st_size for n in range(3)]
    return opened, sizes, train.end()


@surrounding
def threads_that_build_come_and_go(folder: str) -> Any:
    """No descriptor stays behind."""
    import datawait

    before = len(os.listdir("/proc/self/fd"))

    def build(n: int) -> None:
        for i in range(3):
            with datawait.building(i):
                time.sleep(0.001)

    for n in range(30):
        thread = threading.Thread(target=build, args=(n,))
        thread.start()
        thread.join()
    gc.collect()
    return len(os.listdir("/proc/self/fd")) - before <= 4
