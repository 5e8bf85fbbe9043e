"""Stack sampling in real workers: what it finds is held against the script's own clock, and it leaves no trace."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

DATASET = """
import json, os, sys, threading, time, zlib
import torch
from torch.utils.data import DataLoader, Dataset

BLOB = os.urandom(30000)
spent = {"read": 0, "decode": 0, "augment": 0}

def read():
    time.sleep(0.004)

def decode():  # C without a frame, and without the interpreter's lock
    zlib.compress(BLOB, 6)

def augment():  # nothing but Python: never lets the lock go
    end, x = time.thread_time_ns() + 3_000_000, 0
    while time.thread_time_ns() < end:
        for i in range(100):
            x += i

class Photos(Dataset):
    def __len__(self):
        return LENGTH

    def __getitem__(self, i):
        times = []
        for work in (read, decode, decode, augment):
            begin, cpu = time.perf_counter_ns(), time.thread_time_ns()
            work()
            cpu = time.thread_time_ns() - cpu
            times.append(time.perf_counter_ns() - begin)
        return torch.tensor([times[0], times[1] + times[2], times[3], cpu, i, int(torch.randint(1 << 30, ()))])

if __name__ == "__main__":
    seen = torch.zeros(6, dtype=torch.long)
    rows = []
    torch.manual_seed(11)
    for number, batch in enumerate(DataLoader(Photos(), batch_size=4, num_workers=1, shuffle=True)):
        if number > 0:
            seen += batch.sum(0)
        rows += batch[:, 4:].tolist()
        EACH
    told = {"truth": seen[:3].tolist(), "computed": seen[3].item(), "rows": rows, "torch": torch.rand(1).item()}
    print(json.dumps(told))
"""


def script(length, each="pass"):
    return DATASET.replace("LENGTH", str(length)).replace("EACH", each)


class Found:
    """The newest sums of each call of a worker, by the names on its path."""

    def __init__(self, ring):
        self.ring = ring
        functions = {n["first"] + i: name for n in ring.note("functions") for i, name in enumerate(n["names"])}
        calls = {n["first"] + i: pair for n in ring.note("calls") for i, pair in enumerate(n["calls"])}
        newest = {record["call"]: record for record in ring.all("STACK")}

        def path(call):
            return [*path(calls[call][0]), functions[calls[call][1]]] if call else []

        self.sums = {tuple(path(call)): record for call, record in newest.items()}

    def below(self, function):
        """(on, off) of all calls with this function on their path."""
        mine = [record for path, record in self.sums.items() if function in path]
        return sum(r["on"] for r in mine), sum(r["off"] for r in mine)

    def share(self, function):
        return sum(self.below(function)) / sum(r["on"] + r["off"] + r["unclear"] for r in self.sums.values())

    def off(self, function):
        """The share of its time in which it waits, and by how much that may err: some samples stand for more."""
        on, off = self.below(function)
        samples = sum(record["samples"] for path, record in self.sums.items() if function in path)
        share = off / (on + off)

        def error(true):
            assumed = min(max(true, 0.1), 0.9)  # a look may come late, and see where it was and what it then did
            return 3 * (assumed * (1 - assumed) / (samples / 2)) ** 0.5 + 0.1

        return share, error

    @property
    def samples(self):
        return sum(record["samples"] for record in self.sums.values())


@pytest.fixture(scope="module")
def sampled(torch_python, tmp_path_factory):
    import shutil
    import tempfile

    from conftest import Job

    spool = tempfile.mkdtemp(prefix="datawait-test-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    job = Job(str(tmp_path_factory.mktemp("job")), spool)
    done = job(script(400), python=torch_python)
    assert done.returncode == 0, done.stderr
    (worker,) = job.workers()
    yield json.loads(done.stdout), Found(worker), done
    shutil.rmtree(spool, ignore_errors=True)


def test_shares_are_those_of_the_scripts_own_clock(sampled):
    said, found, _ = sampled
    whole = sum(said["truth"])
    assert found.samples > 30
    for name, ns in zip(("read", "decode", "augment"), said["truth"]):
        true = ns / whole
        spread = (true * (1 - true) / (found.samples / 2)) ** 0.5  # some stand for more than others
        assert abs(found.share("train.py:" + name) - true) < 3 * spread + 0.05, (name, found.samples)


def test_waiting_is_told_from_computing(sampled):
    """Held against the script's own clocks: on a busy machine what computes waits for a core and for the lock, and what
    has slept is ready to run and kept waiting, which is not off."""
    said, found, _ = sampled
    read, _, augment = said["truth"]
    waited = 1 - said["computed"] / augment
    off, error = found.off("train.py:augment")
    assert off < min(waited + error(waited), 0.5)
    slept = 4_000_000 * (len(said["rows"]) - 4) / read  # the first batch is not in the sums
    off, error = found.off("train.py:read")
    assert off > max(slept - error(slept), 0)


def test_the_batches_are_those_of_an_unobserved_run(sampled, job, torch_python):
    said, _, done = sampled
    bare = job(script(400), python=torch_python, hook=False)
    assert said["rows"] == json.loads(bare.stdout)["rows"] and said["torch"] == json.loads(bare.stdout)["torch"]
    assert done.stderr == bare.stderr


def test_the_sampler_tells_what_it_took(sampled):
    _, found, _ = sampled
    told = [record for record in found.ring.all("SAMPLER") if record["cpu"] is not None]
    assert told[-1]["samples"] <= told[-1]["looks"] and told[-1]["outside"] == 0
    assert 0 < told[-1]["cpu"] < 0.05 * told[-1]["wall"]
    assert not found.ring.note("hook-error")


def test_what_a_killed_worker_was_seen_at_is_kept(job, torch_python):
    each = "number == 100 and os.kill(next(iter(torch.multiprocessing.active_children())).pid, 9)"
    done = job(script(700, each), python=torch_python)
    assert done.returncode != 0 and ("killed by signal" in done.stderr or "exited unexpectedly" in done.stderr)
    (worker,) = job.workers()
    found = Found(worker)
    assert found.samples > 15 and found.share("train.py:Photos.__getitem__") > 0.75


def test_off_means_no_record(job, torch_python):
    done = job(script(24), python=torch_python, DATAWAIT_STACKS="off")
    assert done.returncode == 0, done.stderr
    (worker,) = job.workers()
    assert not worker.all("STACK") and not worker.all("SAMPLER") and worker.all("BATCH")


def test_workers_that_are_spawned_are_sampled(job, torch_python):
    done = job(script(80).replace("shuffle=True", "multiprocessing_context='spawn'"), python=torch_python)
    assert done.returncode == 0 and not done.stderr, done.stderr
    (worker,) = job.workers()
    assert Found(worker).samples > 3 and worker.state == 2


SIGNALS = """
import signal
hits = []
signal.signal(signal.SIGALRM, lambda *_: hits.append(threading.get_ident()))
"""


def test_an_alarm_still_wakes_the_thread_that_builds(job, torch_python):
    """It ends a read of the main thread's, which a signal taken by another thread would not."""
    text = script(24).replace("class Photos", SIGNALS + "\nclass Photos").replace(
        "times = []",
        "times = []\n"
        "        a, b = os.pipe()\n"
        "        def end(*_): raise TimeoutError\n"
        "        signal.signal(signal.SIGALRM, end)\n"
        "        signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
        "        try: os.read(a, 1)\n"
        "        except TimeoutError: pass\n"
        "        os.close(a); os.close(b)", 1)  # fmt: skip
    done = job(text, python=torch_python, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_fork_inside_a_worker_has_the_usual_switch_interval(job, torch_python):
    text = script(80).replace(
        "times = []",
        "times = []\n"
        "        pid = os.fork()\n"
        "        if pid == 0: os._exit(sys.getswitchinterval() != 0.005)\n"
        "        assert os.waitpid(pid, 0)[1] == 0", 1)  # fmt: skip
    done = job(text, python=torch_python)
    assert done.returncode == 0, done.stderr


def test_a_training_process_that_builds_its_batches_is_sampled_on_request(job, torch_python):
    text = script(240).replace("num_workers=1", "num_workers=0")
    assert job(text, python=torch_python).returncode == 0
    assert not job.main().all("STACK")
    os.remove(job.main().path)
    assert job(text, python=torch_python, DATAWAIT_STACKS="all").returncode == 0
    found = Found(job.main())
    assert found.samples > 10 and found.share("train.py:Photos.__getitem__") > 0.75
    assert {record["ref"] for record in found.sums.values()} == {0}


TORCHVISION = """
import json, os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2
import torchvision.transforms as T

class Slow(torch.nn.Module):
    def forward(self, x):
        begin = time.perf_counter()
        time.sleep(0.003)
        return x + (time.perf_counter() - begin)

class Photos(Dataset):
    pipelines = [kind.Compose([kind.RandomCrop(6), Slow(), kind.RandomHorizontalFlip()]) for kind in (T, v2)]

    def __len__(self):
        return 160

    def __getitem__(self, i):
        first = torch.full((1, 8, 8), float(i))
        done = [pipeline(first) for pipeline in self.pipelines]
        return sum(float(x[0, 0, 0]) - i for x in done), torch.stack([torch.round(x) for x in done])

if __name__ == "__main__":
    torch.manual_seed(11)
    spent, rows = 0.0, []
    for times, photos in DataLoader(Photos(), batch_size=8, num_workers=1, shuffle=True):
        spent += times.sum().item()
        rows.append(photos.sum().item())
    print(json.dumps({"truth": spent, "rows": rows}))
"""


def test_transforms_of_torchvision_are_timed_and_do_what_they_did(job, torch_python):
    find = "import importlib.util as u, sys; sys.exit(u.find_spec('torchvision') is None)"
    if subprocess.run([torch_python, "-c", find], check=False).returncode:
        pytest.skip("NOT TESTED: no torchvision beside this PyTorch (make test-latest-torch has one)")
    bare = job(TORCHVISION, python=torch_python, hook=False)
    done = job(TORCHVISION, python=torch_python)
    assert done.returncode == 0 and done.stderr == bare.stderr, done.stderr
    said = json.loads(done.stdout)
    assert said["rows"] == json.loads(bare.stdout)["rows"]
    (worker,) = job.workers()
    names = worker.note("transforms")[0]["names"]
    last = {record["transform"]: record for record in worker.all("TRANSFORM")}
    calls = {name.rpartition(":")[2]: last[number]["calls"] for number, name in enumerate(names)}
    assert calls["Slow"] == 320 and set(calls) == {"RandomCrop", "Slow", "RandomHorizontalFlip"}
    slow = next(last[number]["ns"] for number, name in enumerate(names) if name.endswith(":Slow"))
    assert said["truth"] <= slow / 1e9 <= said["truth"] * 1.2
