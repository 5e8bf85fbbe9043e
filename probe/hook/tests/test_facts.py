"""Facts about kernels and Pythons that the hook is built around. Where one of them stops being so, these tests tell."""

from __future__ import annotations

import ast
import json
import os
import socket
import threading
import time
import zlib

import pytest
import ringreader

from datawait import meter
from datawait.ring import Ring


def costs(spool, work, rounds=1, thread=False):
    """COST and IO of batches that do this, one after another, each in a look of its own; on a thread if asked to."""
    ring = Ring(spool, 4096, {})

    def build():
        counters = meter.Meter()
        for _ in range(rounds):
            counters.begin(time.perf_counter_ns())
            work()
            counters.write(ring, 0, counters.end(), None, False)
            time.sleep(0.002)

    if thread:
        builder = threading.Thread(target=build)
        builder.start()
        builder.join()
    else:
        build()
    ring.flush(0)
    read = ringreader.Ring(ring.path)
    os.unlink(ring.path)
    return read.all("COST"), read.all("IO")


def test_cpu_of_short_batches_is_that_of_the_thread_clock(spool):
    """Field 1 of schedstat moves on a tick or a switch only: a batch that computes for 1.5 ms shows a quarter there.

    Between the batches the thread sleeps, as one that waits for its next index does: what one misses is no other's.
    The test's own clock is read around all of them, for reading it brings field 1 up to date.
    """
    data = os.urandom(1 << 15)

    def work():
        zlib.compress(data, 6)
        zlib.compress(data, 6)

    def all_of(work):
        begin = time.thread_time_ns()
        measured, _ = costs(spool, work, rounds=60)
        return time.thread_time_ns() - begin, sum(cost.cpu for cost in measured)

    idle, _ = all_of(lambda: None)
    spent, measured = all_of(work)
    assert 0.75 * (spent - idle) < measured < 1.1 * spent


def field(path, number):
    with open(path, "rb") as file:
        return int(file.read().split()[number])


@pytest.mark.skipif(not os.path.exists("/proc/thread-self/schedstat"), reason="this kernel has no schedstat")
def test_run_queue_is_that_of_the_building_thread(spool):
    """/proc/self/schedstat is the leader thread's alone."""
    seen = []

    def look():
        path = "/proc/self/task/%d/schedstat" % threading.get_native_id()
        before = field(path, 1)
        own = meter.Meter().run_queue()
        seen.append((before, own, field(path, 1), threading.get_native_id()))

    burners = [threading.Thread(target=compress_for, args=(0.05,)) for _ in range(4)]  # so that threads queue up
    for burner in burners:
        burner.start()
    builder = threading.Thread(target=lambda: (compress_for(0.05), look()))
    builder.start()
    for thread in [*burners, builder]:
        thread.join()
    ((before, own, after, ident),) = seen
    assert ident != os.getpid() and before <= own <= after
    assert own != field("/proc/self/schedstat", 1)


def compress_for(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        zlib.compress(bytes(1 << 18))


def test_what_comes_over_a_socket_moves_no_read_counter(spool):
    """So the read counters are no measure of a batch unless the read path is known to be read()."""
    ours, theirs = socket.socketpair()

    def feed():
        for _ in range(20):
            theirs.sendall(bytes(1 << 20))
        theirs.close()

    threading.Thread(target=feed).start()
    got = []

    def work():
        while True:
            data = ours.recv(1 << 20)
            if not data:
                return
            got.append(len(data))

    _, (io,) = costs(spool, work)
    assert sum(got) == 20 << 20
    assert io.rchar < 4096


AUDIT_PROBE = """
# Runs before the hook is armed, in every Python of the job: reports each audit hook that is added after it.
import os, sys
def probe(event, args):
    if event == "sys.addaudithook":
        with open(os.environ["AUDITS"], "a") as file:
            file.write("%d\\n" % os.getpid())
sys.addaudithook(probe)
"""

AUDITED = """
import json, os, subprocess, sys, torch
from torch.utils.data import DataLoader, Dataset
class Pids(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return os.getpid()
p = [torch.nn.Parameter(torch.zeros(2))]
optimizer = torch.optim.SGD(p, lr=0.1)
for x in DataLoader(torch.ones(8, 2), batch_size=2):
    (x * p[0]).sum().backward(); optimizer.step()
workers = {int(x) for x in DataLoader(Pids(), num_workers=2)}
other = subprocess.check_output([sys.executable, "-c", "import os; print(os.getpid())"], text=True)
print(json.dumps({"main": os.getpid(), "workers": sorted(workers), "other": int(other)}))
"""


def test_only_workers_are_audited(job, torch_python, tmp_path):
    """An audit hook makes id() and open() dearer and can never be taken off: workers alone bear it."""
    import conftest

    (tmp_path / "sitecustomize.py").write_text(AUDIT_PROBE)
    path = os.pathsep.join([conftest.ATTACH, conftest.HOOK, str(tmp_path)])  # ours lets the one it hides run first
    environment = {"PYTHONPATH": path, "DATAWAIT_SPOOL": job.spool, "AUDITS": str(tmp_path / "audits")}
    done = job(AUDITED, python=torch_python, hook=False, **environment)
    assert done.returncode == 0, done.stderr
    pids = json.loads(done.stdout)
    with open(tmp_path / "audits", encoding="ascii") as file:
        audited = [int(line) for line in file]
    assert sorted(audited) == pids["workers"] and len(audited) == 2
    assert pids["main"] not in audited and pids["other"] not in audited


WINDOW = """
import itertools, torch
from torch.utils.data import DataLoader
p = [torch.nn.Parameter(torch.zeros(2))]
optimizer = torch.optim.SGD(p, lr=0.1)
it = iter(DataLoader(torch.ones(48, 2), batch_size=2))
while True:
    window = list(itertools.islice(it, 4))  # as transformers' Trainer fetches
    if not window: break
    for x in window: (x * p[0]).sum().backward()
    optimizer.step()
"""


def test_a_window_fetched_at_once_belongs_to_one_step(job, torch_python):
    assert job(WINDOW, python=torch_python).stderr == ""
    ring = job.main()
    fetches = [f for f in ring.all("FETCH") if f.kind == "FETCH" and not f.flags & 8]
    assert len(fetches) == 24 and ring.step == 6
    assert [f.step for f in fetches[4:]] == [n // 4 for n in range(4, 24)]  # the first window's are counted in fetches


def test_the_emulated_device_needs_no_thread(monkeypatch):
    """A thread that played a device drifted: while the main thread burned Python, a launch of 3.0 ms took 8.2 ms."""
    from datawait import emulated

    monkeypatch.delenv("DATAWAIT_SPOOL", raising=False)
    monkeypatch.delenv("DATAWAIT_BUSY_DIR", raising=False)
    before = len(os.listdir("/proc/self/task"))
    gpu = emulated.Gpu(index=7)
    for _ in range(10):
        gpu.launch(0.003)
    assert len(os.listdir("/proc/self/task")) == before
    end = time.thread_time() + 0.02
    while time.thread_time() < end:  # burns Python while the device is at work
        pass
    gpu.synchronize()
    assert gpu.busy_seconds == 0.030




WALL_CLOCKS = {"time", "time_ns", "localtime", "gmtime", "ctime", "strftime", "clock_gettime", "clock_gettime_ns"}


def wall_clocks(source):
    """The functions that name a wall clock of module time, once for each name; datetime is not to be named at all."""
    found = []

    def visit(node, function):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            function = node.name
        if isinstance(node, ast.Attribute) and ast.dump(node.value) == ast.dump(ast.Name("time", ast.Load())):
            found.extend([function] * (node.attr in WALL_CLOCKS))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {getattr(node, "module", None), *(name.name for name in node.names)}
            if "datetime" in names or (getattr(node, "module", None) == "time" and names & WALL_CLOCKS):
                found.append(function)
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(ast.parse(source), "")
    return found


def test_no_interval_comes_from_the_wall_clock():
    """It is read for the pair that ties the monotonic clock to it, and for nothing else."""
    import conftest

    places = []
    for folder in (os.path.join(conftest.HOOK, "datawait"), conftest.ATTACH):
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py") and name != "guardpaths.py":  # compares the ages of files, which are wall times
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    places += [(name, function) for function in wall_clocks(file.read())]
    assert places == [("ring.py", "clock_pair")]
