"""Trainings in hostile surroundings. Each returns what must not depend on the hook; PyTorch is imported when it runs.

``SURROUNDINGS`` are the names; the program runs each bare and hooked, and prints what both showed.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

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


# --- the spool ---------------------------------------------------------------------------------------------------


@surrounding
def spool_vanishes(folder: str) -> Any:
    return three_epochs(lambda: shutil.rmtree(spool()))


@surrounding
def spool_is_made_anew(folder: str) -> Any:
    def then() -> None:
        shutil.rmtree(spool())
        os.mkdir(spool(), 0o700)

    return three_epochs(then)


@surrounding
def spool_opens_to_everybody(folder: str) -> Any:
    return three_epochs(lambda: os.chmod(spool(), 0o777))


@surrounding
def spool_becomes_a_file(folder: str) -> Any:
    def then() -> None:
        shutil.rmtree(spool())
        open(spool(), "w").close()

    return three_epochs(then)


@surrounding
def ring_is_unlinked(folder: str) -> Any:
    return three_epochs(lambda: [os.unlink(path) for path in rings()] and None)


@surrounding
def ring_is_replaced(folder: str) -> Any:
    """By a file of the script's, into which nothing of the hook's may go."""
    mine = os.path.join(folder, "mine")

    def then() -> None:
        with open(mine, "wb") as file:
            file.write(b"mine" * 50000)
        for path in rings():
            os.unlink(path)
            os.link(mine, path)

    result = three_epochs(then)
    with open(mine, "rb") as file:
        return result, file.read() == b"mine" * 50000


@surrounding
def ring_closes_to_everybody(folder: str) -> Any:
    return three_epochs(lambda: [os.chmod(path, 0) for path in rings()] and None)


def as_nobody() -> None:
    """Root may write everywhere."""
    if os.geteuid() == 0:
        for path in (os.path.dirname(spool()), spool(), os.getcwd()):
            os.chown(path, 65534, 65534)
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)


@surrounding
def spool_is_read_only(folder: str) -> Any:
    os.chmod(spool(), 0o500)
    as_nobody()
    return three_epochs(lambda: None)


@surrounding
def spool_becomes_read_only(folder: str) -> Any:
    as_nobody()
    return three_epochs(lambda: os.chmod(spool(), 0o500))


# --- file systems ------------------------------------------------------------------------------------------------


def stand_in(module: str, name: str, value: Any) -> None:
    """In a hooked run, value in the place of what the hook's module has there."""
    if module in sys.modules:
        setattr(sys.modules[module], name, value)


@surrounding
def no_room_at_allocation(folder: str) -> Any:
    def full(fd: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    os.posix_fallocate = full  # type: ignore[assignment]
    return three_epochs(lambda: None)


@surrounding
def file_system_is_full(folder: str) -> Any:
    blocks = os.statvfs(spool())
    os.statvfs = lambda path: os.statvfs_result((*blocks[:3], 3, 3, *blocks[5:]))  # type: ignore[assignment,misc]
    return three_epochs(lambda: None)


@surrounding
def file_system_is_small(folder: str) -> Any:
    """A tmpfs of its own where one may be mounted: its last pages go to the script, and nobody gets SIGBUS."""
    small = spool()
    mounted = os.system("mount -t tmpfs -o size=600k,mode=700 none %s 2>/dev/null" % small) == 0
    if mounted:
        with open(os.path.join(small, "mine"), "wb") as file, contextlib.suppress(OSError):
            file.write(b"mine" * 148_000)
    result = three_epochs(lambda: None)
    if mounted:
        left = {name: os.path.join(small, name) for name in os.listdir(small) if name != "mine"}
        kept = {name: open(path, "rb").read() for name, path in left.items()}  # noqa: SIM115
        os.system("umount -l %s" % small)
        for name, path in left.items():
            with open(path, "wb") as file:
                file.write(kept[name])
    return result, mounted or None


@surrounding
def spool_is_on_nfs(folder: str) -> Any:
    stand_in("datawait.place", "filesystem", lambda folder: "nfs4")
    return three_epochs(lambda: None)


# --- limits ------------------------------------------------------------------------------------------------------


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


NEED = 20


@surrounding
def near_the_recursion_limit(folder: str) -> Any:
    """From so many frames on as the hook and PyTorch need together."""
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
    return fetched[NEED:], train.end()


# --- descriptors -------------------------------------------------------------------------------------------------


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


# --- signals, tracing, shutdown ----------------------------------------------------------------------------------


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


# --- forks and threads -------------------------------------------------------------------------------------------


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


# --- the clock ---------------------------------------------------------------------------------------------------


def false_clock(clock: Callable[[], int]) -> None:
    stream = sys.modules.get("datawait.stream")
    if stream is not None:
        stream.core.clock = clock  # type: ignore[attr-defined]


@surrounding
def the_clock_stands_still(folder: str) -> Any:
    now = time.perf_counter_ns()
    false_clock(lambda: now)
    return three_epochs(lambda: None)


@surrounding
def the_clock_goes_back(folder: str) -> Any:
    begin = time.perf_counter_ns()
    false_clock(lambda: 2 * begin - time.perf_counter_ns())
    return three_epochs(lambda: None)


@surrounding
def the_clock_jumps(folder: str) -> Any:
    looks = [0]

    def clock() -> int:
        looks[0] += 1
        return time.perf_counter_ns() + (looks[0] % 7 - 3) * 10**12

    false_clock(clock)
    return three_epochs(lambda: None)


# --- the program -------------------------------------------------------------------------------------------------


def main() -> None:
    import crowds
    import forks

    SURROUNDINGS.update(crowds.SURROUNDINGS)
    hook, folder, options = forks.torch_process()
    import torch.utils.data  # noqa: F401

    import datawait.fetch
    import datawait.optimizer
    import datawait.torchhook
    import datawait.worker  # noqa: F401

    site = os.path.join(hook, "attach", "sitecustomize.py")
    with open(site, encoding="utf-8") as file:
        code = compile(file.read(), site, "exec")
    names = options or list(SURROUNDINGS)
    tasks = []
    for name in names:
        tasks.append(forks.Task(SURROUNDINGS[name], None))
        tasks.append(forks.Task(SURROUNDINGS[name], lambda spool: forks.sitecustomize(code, site)))

    def done(number: int, fork: Any, outcome: Any) -> Any:
        told = forks.told(fork.spool)
        rings = [_summary(ring) for ring in told.rings]
        return {"outcome": outcome, "errors": told.errors, "wrong": told.wrong, "rings": rings}

    results = forks.run(tasks, folder, done)
    report = {}
    for at, name in enumerate(names):
        bare, hooked = results[2 * at], results[2 * at + 1]
        report[name] = {**hooked, "differences": forks.differences(bare["outcome"], hooked["outcome"]),
                        "bare": bare["outcome"]}  # fmt: skip
    print(json.dumps(report))


def _summary(ring: Any) -> Dict[str, Any]:
    return {
        "producer": ring.declaration["producer"], "fetches": ring.fetches, "step": ring.step, "hook": ring.hook,
        "state": ring.state, "capacity": ring.capacity, "notes_lost": ring.notes_lost, "head": ring.head,
        "notes": sorted({note["note"] for note in ring.notes}),
        "longest": max((f.exit - f.enter for f in ring.all("FETCH")), default=0),
        "shortest": min((f.exit - f.enter for f in ring.all("FETCH")), default=0),
        "wait": [ring.totals(n)["wait"] for n in range(32)],
    }  # fmt: skip


if __name__ == "__main__":
    main()
