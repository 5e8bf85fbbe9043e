"""A small training that keeps its own account in a file, one write per change, so that the account survives SIGKILL.

    train.py LOADER --account FILE --save FILE --seconds S [--build S] [--compute S] [--workers N] [--gpu]

LOADER is plain (built in place), workers (processes of its own, datawait.building) or torch (PyTorch's DataLoader).
It ends by itself after the given seconds and then overwrites the file --save, as a training saves its model.
"""

import argparse
import multiprocessing
import os
import struct
import sys
import time

import datawait

RUNNING, FINISHED = 0, 1
clock = time.monotonic_ns


class Account:
    """What this process knows of itself: one small pwrite, which a SIGKILL does not tear."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.pid, self.state = os.getpid(), RUNNING
        self.begun = self.done = self.wait = self.last_begin = self.last_end = self.longest = self.inside = 0
        self.done_begin = 0  # begin of the last one that is done
        self.loader = 0  # ns inside the loader itself, whatever stands around it

    def write(self):
        fields = (self.pid, self.state, self.begun, self.done, self.wait, self.last_begin, self.last_end, self.longest)
        os.pwrite(self.fd, struct.pack("<10Q", *fields, self.inside, self.done_begin), 0)

    def fetch(self, iterator):
        """next(iterator), accounted for; None at its end."""
        begin = clock()
        self.begun += 1
        self.last_begin = begin
        self.write()
        batch = next(iterator, None)
        end = clock()
        self.wait += end - begin
        if batch is None:
            self.begun -= 1
        else:
            self.done += 1
        if self.last_end:
            self.longest = max(self.longest, end - self.last_end)
        self.last_end = end
        self.inside, self.done_begin = self.loader, begin
        self.write()
        return batch


class Timed:
    """A loader whose own time is accounted for: what an observer around it measures is this much at least."""

    def __init__(self, loader, account):
        self.loader, self.account = loader, account

    def __iter__(self):
        return TimedIterator(iter(self.loader), self.account)


class TimedIterator:
    def __init__(self, inner, account):
        self.inner, self.account = inner, account

    def __iter__(self):
        return self

    def __next__(self):
        begin = clock()
        try:
            return next(self.inner)
        finally:
            self.account.loader += clock() - begin


def pause(seconds):
    """Sleeps, or for less than 50 µs does nothing at all."""
    if seconds > 5e-5:
        time.sleep(seconds)


class Plain:
    def __init__(self, options):
        self.build = options.build

    def __iter__(self):
        for number in range(options.length):
            pause(self.build)
            yield [number] * 8


class Workers:
    """A pipe per worker; batches are dealt in turn and delivered in order. Workers live for one epoch."""

    def __init__(self, options):
        self.options = options

    def __iter__(self):
        fork = multiprocessing.get_context("fork")
        pipes, crew = [], []
        for number in range(self.options.workers):
            ours, theirs = fork.Pipe()
            worker = fork.Process(target=work, args=(theirs, self.options, os.getpid()), daemon=True)
            worker.start()
            pipes.append(ours)
            crew.append(worker)
        for number in range(self.options.length + 2 * len(crew)):
            at = number % len(crew)
            if number < self.options.length:
                send(pipes[at], number)
            if number >= 2 * len(crew):
                yield take(pipes[at], crew[at])
        for pipe in pipes:
            send(pipe, None)
        for worker in crew:
            worker.join()


def send(pipe, message):
    try:
        pipe.send(message)
    except OSError:
        raise SystemExit("a worker died")


def take(pipe, worker):
    while not pipe.poll(0.05):
        if not worker.is_alive() and not pipe.poll(0):
            raise SystemExit("a worker died")
    try:
        return pipe.recv()
    except (EOFError, OSError):
        raise SystemExit("a worker died")


def work(pipe, options, parent):
    """A worker that ends with its parent, as PyTorch's does. It has an account of its own: batches begun, and built."""
    fd = os.open("%s-%d" % (options.account, os.getpid()), os.O_RDWR | os.O_CREAT, 0o600)
    begun = built = 0
    while True:
        while not pipe.poll(0.5):
            if os.getppid() != parent:
                os._exit(0)
        try:
            number = pipe.recv()
            if number is None:
                return
            begun += 1
            os.pwrite(fd, struct.pack("<2Q", begun, built), 0)
            with datawait.building(number, samples=8):
                pause(options.build)
                batch = [number] * 8
            built += 1
            os.pwrite(fd, struct.pack("<2Q", begun, built), 0)
            pipe.send(batch)
        except (EOFError, OSError):
            os._exit(0)


def torch_loader(options):
    import torch

    torch.set_num_threads(1)

    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return options.length * 4

        def __getitem__(self, index):
            pause(options.build / 4)
            return torch.full((16,), float(index))

    return torch.utils.data.DataLoader(Samples(), batch_size=4, num_workers=options.workers)


def loader_of(options, account):
    if options.loader == "torch":
        return torch_loader(options)
    if options.loader == "workers":
        inner = Timed(Workers(options), account)
        return datawait.watch(inner, workers=options.workers, prefetch=2, length=options.length, name="soak")
    return datawait.watch(Timed(Plain(options), account), workers=0, length=options.length, name="soak")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("loader", choices=["plain", "workers", "torch"])
    parser.add_argument("--account", required=True)
    parser.add_argument("--save", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--build", type=float, default=0.004)
    parser.add_argument("--compute", type=float, default=0.002)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--length", type=int, default=10**6, help="batches of an epoch")
    parser.add_argument("--epochs", type=int, default=10**6)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--replace", action="store_true", help="begin anew as another program instead of ending")
    return parser.parse_args()


def train(account, options):
    gpu = None
    if options.gpu:
        from datawait import emulated

        gpu = emulated.Gpu()
    loader = loader_of(options, account)
    until = time.monotonic() + options.seconds
    for _ in range(options.epochs):
        iterator = iter(loader)
        while True:
            if time.monotonic() > until:
                return
            if account.fetch(iterator) is None:
                break
            if gpu is None:
                pause(options.compute)
            else:
                gpu.launch(options.compute, sm=0.9)
                gpu.synchronize()


if __name__ == "__main__":
    options = parse()
    account = Account(options.account)
    account.write()
    print("began", flush=True)
    train(account, options)
    if options.replace:
        os.execv(sys.executable, [sys.executable] + sys.argv)
    with open(options.save, "w") as model:
        model.write("saved")
    account.state = FINISHED
    account.write()
    print("ended", flush=True)
    sys.exit(0)
