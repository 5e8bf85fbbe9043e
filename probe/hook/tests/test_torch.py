"""Real PyTorch, in jobs of their own: what is seen under every way of making workers, and that nothing changes."""

from __future__ import annotations

import contextlib
import json
import subprocess

import pytest

from datawait import layout

TRAIN = """
import hashlib, json, random, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 26
    def __getitem__(self, i):
        time.sleep(0.0005)
        return torch.full((3,), float(i)) + torch.rand(1) * 1e-3, i

def main():
    workers, context = int(sys.argv[1]), sys.argv[2]
    torch.manual_seed(7); random.seed(7)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    loader = DataLoader(
        Squares(), batch_size=4, shuffle=True, num_workers=workers,
        multiprocessing_context=context if workers else None, persistent_workers=workers > 0,
    )
    out = {"order": [], "losses": []}
    for epoch in range(2):
        for x, i in loader:
            loss = model(x).pow(2).mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            out["order"] += i.tolist(); out["losses"].append(loss.item())
        scheduler.step()
    with torch.no_grad():
        for x, i in loader:
            out["order"] += i.tolist()
    out["rng"] = hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest(), random.random()
    out["class"] = type(iter(loader)).__name__
    print(json.dumps(out))

if __name__ == "__main__":
    main()
"""

WAYS = [(0, "fork"), (1, "fork"), (2, "fork"), (2, "spawn")]


@pytest.mark.parametrize("workers, context", WAYS)
def test_everything_is_seen_and_nothing_changed(job, torch_python, workers, context):
    done = job(TRAIN, str(workers), context, python=torch_python)
    # CPython's resource tracker may lose the race with an exiting main process, hook or no hook.
    said = [line for line in done.stderr.splitlines() if "resource_tracker" not in line and "warnings.warn" not in line]
    assert (done.returncode, said) == (0, [])
    bare = job(TRAIN, str(workers), context, python=torch_python, hook=False)
    assert json.loads(done.stdout) == json.loads(bare.stdout)

    ring = job.main()
    assert ring.state == layout.CLOSED and ring.errors == 0 and ring.hook == layout.OBSERVING
    assert ring.all("MARK")[-1].ref == layout.ENDED
    assert (ring.unit, ring.step) == (layout.BY_OPTIMIZER, 14)
    (loader,) = ring.note("loader")
    assert loader["arguments"]["num_workers"] == workers and loader["arguments"]["shuffle"] is True
    # A fix that sets in_order must know whether PyTorch has it.
    ask = "import inspect, torch.utils.data as d; print('in_order' in inspect.signature(d.DataLoader).parameters)"
    has = subprocess.check_output([torch_python, "-c", ask], text=True).strip()
    assert loader["arguments"]["in_order"] == {"True": True, "False": None}[has]
    assert (loader["length"], loader["dataset_length"], loader["iterable"]) == (7, 26, False)
    assert loader["dataset"].endswith("Squares")

    iterators = ring.all("ITERATOR")
    assert [(i.epoch, i.flags) for i in iterators] == [(e, layout.RESET if workers and e else 0) for e in range(4)]
    assert all((i.workers, i.length, i.prefetch) == (workers, 7, 2 if workers else None) for i in iterators)
    fetches = ring.all("FETCH")
    assert [(f.epoch, f.batch) for f in fetches] == [(e, b) for e in range(3) for b in range(8)]
    assert [f.flags for f in fetches[:8]] == [layout.FIRST, 0, 0, 0, 0, 0, 0, layout.END]
    assert {f.flags & layout.NO_GRAD for f in fetches[16:]} == {layout.NO_GRAD}
    assert [s.step for s in ring.all("STEP")] == list(range(1, 15))
    assert [f.step for f in fetches[:16] if not f.flags & layout.END] == list(range(14))
    totals = ring.totals(0)
    assert (totals["fetches"], totals["no_grad"]) == (21, 7)
    assert totals["wait"] == sum(f.exit - f.enter for f in fetches)
    assert totals["built"] == (0 if workers else 21)
    assert all(f.ready == 0 for f in fetches if not workers)

    built = job.workers()
    assert len(built) == workers == len(ring.all("WORKER"))
    assert {w.pid for w in ring.all("WORKER")} == {w.declaration["pid"] for w in built}
    assert all(w.declaration["parent"] == ring.declaration["pid"] and w.errors == 0 for w in built)
    assert all(w.declaration["start_method"] == context for w in built)
    assert all(w.state == layout.CLOSED for w in built)
    batches = {(b.resumes, b.batch): b for w in built for b in w.all("BATCH") if b.resumes < 3}
    if workers:
        assert set(batches) == {(e, b) for e in range(3) for b in range(7)}
        for f in fetches:
            if not f.flags & layout.END:
                batch = batches[f.epoch, f.batch]
                assert batch.received <= batch.begin < batch.end <= batch.sent < f.exit
                assert batch.samples == (4 if f.batch < 6 else 2)
        costs = [c for w in built for c in w.all("COST")]
        assert costs and {c.tensors for c in costs} == {2} and max(c.bytes for c in costs) == 4 * 3 * 4 + 4 * 8
        assert all(c.collate > 0 for c in costs)
    else:
        assert ring.all("COST") and ring.all("BATCH") == []


SPAWN_WITHOUT_SITE = """
import datawait, sys, torch
from torch.utils.data import DataLoader
def main():
    assert datawait.install()
    for _ in DataLoader(list(range(8)), batch_size=2, num_workers=1, multiprocessing_context="spawn"): pass
    from datawait import stream
    print(stream.core.folder)
if __name__ == "__main__":
    main()
"""


def test_spawned_workers_are_told_where_nothing_attached_them(job, torch_python):
    from conftest import HOOK

    done = job(SPAWN_WITHOUT_SITE, python=torch_python, hook=False, PYTHONPATH=HOOK, DATAWAIT_SPOOL=job.spool)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(job.workers()) == 1 and len(job.workers()[0].all("BATCH")) == 4


ITERABLE = """
import json, torch, warnings
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
class Stream(IterableDataset):
    calls = 0
    def __len__(self):
        Stream.calls += 1
        return 3
    def __iter__(self):
        w = get_worker_info()
        return iter(range(w.id * 10, w.id * 10 + 5 + 2 * w.id) if w else range(5))
out = []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for workers in (0, 2):
        loader = DataLoader(Stream(), batch_size=2, num_workers=workers)
        out.append([b.tolist() for b in loader])
    told = DataLoader(Stream(), batch_size=2)
    out.append([len(told), [b.tolist() for b in told]])  # the script asks, as a progress bar does
print(json.dumps([out, Stream.calls, [str(w.message) for w in caught]]))
"""


def test_iterable_datasets_are_not_asked_their_length(job, torch_python):
    done = job(ITERABLE, python=torch_python)
    bare = job(ITERABLE, python=torch_python, hook=False)
    assert done.stdout == bare.stdout and done.stderr == bare.stderr
    assert json.loads(done.stdout)[1:] == [1, []]
    ring = job.main()
    assert [i.length for i in ring.all("ITERATOR")] == [None, None, None]
    assert [n["dataset_length"] for n in ring.note("loader")] == [None, None, 3]
    assert ring.note("loader")[1]["iterable"] is True
    fetched = [f.batch for f in ring.all("FETCH") if f.ref == 1 and not f.flags & layout.END]
    built = sorted(b.batch for w in job.workers() for b in w.all("BATCH"))
    assert sorted(fetched) == built and len(built) == 7


SKIP_BAD = """
import torch
from torch.utils.data import DataLoader
class Bad(torch.utils.data.Dataset):
    def __len__(self): return 20
    def __getitem__(self, i):
        if i in (3, 11): raise ValueError("bad %d" % i)
        return i
for workers in (0, 2):
    it = iter(DataLoader(Bad(), batch_size=None, num_workers=workers))
    good, bad = [], 0
    while True:
        try: good.append(next(it))
        except StopIteration: break
        except ValueError as error:
            assert "bad" in str(error); bad += 1
    print(workers, len(good), bad)
"""


def test_a_loop_that_skips_bad_samples_still_can(job, torch_python):
    done = job(SKIP_BAD, python=torch_python)
    assert done.stdout == "0 18 2\n2 18 2\n" and done.stderr == ""
    assert sum(bool(f.flags & layout.ERROR) for f in job.main().all("FETCH")) == 4
    assert sum(b.flags & layout.RAISED for w in job.workers() for b in w.all("BATCH")) == 2


EARLY_STOP = """
import gc, os, sys, torch
from torch.utils.data import DataLoader
def children():
    return open("/proc/self/task/%d/children" % os.getpid()).read().split()
loader = DataLoader(list(range(100)), batch_size=2, num_workers=2)
gc.disable()
for batch in loader:
    break
print(len(children()), flush=True)
it = iter(loader); next(it); del it
print(len(children()), flush=True)
if sys.argv[1] == "exit": os._exit(3)
if sys.argv[1] == "raise": raise SystemExit("told to")
"""


@pytest.mark.parametrize("end, code", [("return", 0), ("exit", 3), ("raise", 1)])
def test_workers_stop_as_soon_as_the_iterator_is_dropped(job, torch_python, end, code):
    """Nothing of ours keeps an iterator alive; and exit codes stay what they are."""
    done = job(EARLY_STOP, end, python=torch_python)
    assert done.returncode == code
    assert done.stdout == "0\n0\n"
    assert done.stderr == ("told to\n" if end == "raise" else "")
    assert job.main().state == (layout.OPEN if end == "exit" else layout.CLOSED)


OPTIMIZERS = """
import torch
from torch.utils.data import DataLoader
class Mine(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
class Forwarding(torch.optim.Optimizer):  # like Accelerate's: an Optimizer that only passes on
    def __init__(self, inner): self.inner = inner
    def step(self, closure=None):
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls % 2 == 0: return self.inner.step(closure)
p = [torch.nn.Parameter(torch.zeros(2))]
inner = Mine(p, lr=0.1)
optimizer = Forwarding(inner)
for x in DataLoader(torch.ones(12, 2), batch_size=2):
    (x * p[0]).sum().backward()
    optimizer.step()
class Late(torch.optim.Optimizer):
    def __init__(self, params): super().__init__(params, {})
    def step(self, closure=None): return 42
late = Late(p)
assert late.step() == 42
import copy, pickle
pickle.loads(pickle.dumps(inner)).step(); copy.deepcopy(inner).step()
"""


def test_steps_are_counted_once_in_every_kind_of_optimizer(job, torch_python):
    done = job(OPTIMIZERS, python=torch_python)
    assert (done.returncode, done.stderr) == (0, "")
    steps = job.main().all("STEP")
    assert [s.step for s in steps][:3] == [1, 2, 3]
    assert len(steps) == 6 and len({s.ref for s in steps}) == 4


COMPILED = """
import time, torch
from torch.utils.data import DataLoader
p = [torch.nn.Parameter(torch.zeros(2))]
optimizer = torch.optim.SGD(p, lr=0.1)
def unwrap():  # torch/_dynamo/eval_frame.py, TorchPatcher.patch, PyTorch 2.0
    for opt in (torch.optim.SGD, torch.optim.Adam):
        hooked = getattr(opt.step, "hooked", False)
        if hooked:
            unwrapped_step = getattr(opt.step, "__wrapped__", None)
            if unwrapped_step: opt.step = unwrapped_step
        opt.step.hooked = True
n = 0
for epoch in range(1):
    for x in DataLoader(torch.ones(500, 2), batch_size=2):
        time.sleep(0.002)
        (x * p[0]).sum().backward()
        optimizer.step()
        n += 1
        if n == 10:
            unwrap()
            step = torch.optim.SGD.step  # neither ours nor the profiler's wrapper is left
            assert not hasattr(step, "_datawait_step") and step.__code__.co_name != "wrapper", step
"""


def test_steps_are_seen_again_after_torch_compile_unwraps_them(job, torch_python):
    done = job(COMPILED, python=torch_python)
    assert (done.returncode, done.stderr) == (0, "")
    assert 10 + 50 < job.main().step < 250  # a tenth of a second is lost to noticing


SAVES = """
import io, torch
from torch.utils.data import DataLoader
for x in DataLoader(torch.ones(4, 2)): pass
torch.save({"a": torch.ones(3)}, io.BytesIO())
"""


REALLY_COMPILED = """
import json, torch
from torch.utils.data import DataLoader
if not hasattr(torch, "compile"):
    print("null"); raise SystemExit
import torch._dynamo as dynamo
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
compiled = torch.compile(model, backend="eager")
@torch.compile(backend="eager")
def compiled_step():
    optimizer.step()
for epoch in range(2):
    for x in DataLoader(torch.ones(20, 2), batch_size=2):
        compiled(x).sum().backward()
        optimizer.step() if epoch == 0 else compiled_step()
        optimizer.zero_grad()
counters = dynamo.utils.counters
print(json.dumps([model.weight.tolist(), sum(counters["graph_break"].values()), counters["stats"]["unique_graphs"]]))
"""


def test_torch_compile_breaks_where_it_would_without_us(job, torch_python):
    done = job(REALLY_COMPILED, python=torch_python)
    if done.stdout == "null\n":
        pytest.skip("PyTorch without torch.compile")
    assert done.stdout == job(REALLY_COMPILED, python=torch_python, hook=False).stdout
    assert job.main().step == 20


LATE = """
import io, torch, datawait
from torch.utils.data import DataLoader
p = [torch.nn.Parameter(torch.zeros(2))]
optimizer = torch.optim.SGD(p, lr=0.1)
loader = DataLoader(torch.ones(6, 2), batch_size=2, num_workers=1)
it = iter(loader); next(it)
assert datawait.install()
assert next(it) is not None  # made before: goes on unobserved
for x in loader:
    (x * p[0]).sum().backward(); optimizer.step()
torch.save(1, io.BytesIO())
"""


def test_installing_late_observes_from_there_on(job, torch_python):
    from conftest import HOOK

    done = job(LATE, python=torch_python, hook=False, PYTHONPATH=HOOK, DATAWAIT_SPOOL=job.spool)
    assert (done.returncode, done.stderr) == (0, "")
    ring = job.main()
    assert (ring.fetches, ring.step) == (3, 3) and len(job.workers()) == 1
    assert [mark.ref for mark in ring.all("MARK")] == [layout.SAVE, layout.ENDED]


def test_saves_are_marked(job, torch_python):
    assert job(SAVES, python=torch_python).stderr == ""
    marks = [mark.ref for mark in job.main().all("MARK")]
    assert marks == [layout.SAVE, layout.ENDED]


FORKS = """
import os, torch
from torch.utils.data import DataLoader
loader = DataLoader(list(range(8)), batch_size=2)
it = iter(loader); next(it)
pid = os.fork()
list(it)
if pid == 0:
    list(loader); os._exit(0)
os.waitpid(pid, 0)
"""


def test_a_fork_in_mid_run_makes_two_streams(job, torch_python):
    assert job(FORKS, python=torch_python).stderr == ""
    first, second = sorted(job.rings(), key=lambda ring: ring.declaration["start_ticks"])
    assert second.declaration["ppid"] == first.declaration["pid"]
    assert (first.fetches, second.fetches) == (4, 7)
    assert len(second.note("loader")) == 1 and second.all("ITERATOR")


THREADS = """
import queue, threading, torch
from torch.utils.data import DataLoader
p = [torch.nn.Parameter(torch.zeros(2))]
optimizer = torch.optim.SGD(p, lr=0.1)
q = queue.Queue(2)
def pull():
    for x in DataLoader(torch.ones(20, 2), batch_size=2): q.put(x)
    q.put(None)
threading.Thread(target=pull).start()
while True:
    x = q.get()
    if x is None: break
    (x * p[0]).sum().backward(); optimizer.step()
"""


def test_a_prefetching_thread_is_upstream(job, torch_python):
    assert job(THREADS, python=torch_python).stderr == ""
    ring = job.main()
    assert all(f.flags & layout.OFF_THREAD for f in ring.all("FETCH"))
    assert ring.step == 10 and ring.totals(0)["wait"] == 0


BROKEN_INSIDE = """
import os, sys, torch
from torch.utils.data import DataLoader
import datawait.fetch, datawait.torchhook, datawait.optimizer, datawait.worker, datawait.ring, datawait.loaders
if hasattr(torch, "compile"):
    import torch._dynamo  # the first optimizer of each fork would, for seconds

def broken(*args, **kwargs):
    raise RuntimeError("injected")

def inject(place):
    module, _, rest = place.partition(":")
    target = sys.modules["datawait." + module]
    *owners, name = rest.split(".")
    for owner in owners:
        target = getattr(target, owner)
    assert hasattr(target, name), place
    setattr(target, name, broken)

def train():
    p = [torch.nn.Parameter(torch.zeros(2))]
    optimizer = torch.optim.SGD(p, lr=0.1)
    total = 0.0
    for workers in (0, 1):
        for epoch in range(2):
            for x in DataLoader(torch.arange(12.).reshape(6, 2), batch_size=2, num_workers=workers):
                (x * p[0]).sum().backward(); optimizer.step(); total += x.sum().item()
    return total

for place in sys.argv[1:]:  # each in a fork of its own, where the hook starts anew
    sys.stdout.flush()
    if os.fork() == 0:
        inject(place)
        print(place, train(), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, place
"""

PLACES = [
    "torchhook:_track", "torchhook:describe", "torchhook:TorchTrack.made", "torchhook:TorchTrack.write_iterator",
    "torchhook:_ready", "loaders:register", "optimizer:stepped", "optimizer:_number", "optimizer:wrap",
    "worker:Batches.asked", "worker:Batches.sent", "ring:Ring.flush", "ring:Ring.write", "ring:Ring.note",
    "fetch:_flush", "fetch:_deliver", "track:look_around",
]  # fmt: skip


def test_no_error_inside_reaches_the_script(job, torch_python):
    done = job(BROKEN_INSIDE, *PLACES, python=torch_python, timeout=240)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["%s 264.0" % place for place in PLACES]


FULL = """
import sys, torch
from torch.utils.data import DataLoader
n = 0
for workers in (0, 0, 1):
    for x in DataLoader(torch.ones(3000, 2), batch_size=2, num_workers=workers):
        n += 1
        if n == 10:
            try:
                with open(sys.argv[1] + "/fill", "wb", buffering=0) as file:
                    while True: file.write(b"x" * 4096)
            except OSError: pass
print(n)
"""


@pytest.fixture
def small(tmp_path):
    """A tmpfs of two megabytes, as a spool."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(folder)]
    try:
        if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
            pytest.skip("may not mount")
    except OSError:
        pytest.skip("cannot mount")
    yield str(folder)
    subprocess.run(["umount", str(folder)], check=False)


@pytest.mark.parametrize("before", [False, True])
def test_a_full_tmpfs_does_not_kill_the_job(job, torch_python, small, before):
    """A sparse map would die of SIGBUS here: filled before the ring is made, and while it is written."""
    if before:
        with open(small + "/x", "wb") as file, contextlib.suppress(OSError):
            file.write(b"x" * (4 << 20))
    job.spool = small
    done = job(FULL, small, python=torch_python)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4500\n", "")
    assert len(job.rings()) == (0 if before else 1)
    if not before:
        assert job.main().fetches == 4500


CLOSES = """
import os, torch
from torch.utils.data import DataLoader
loader = DataLoader(torch.ones(600, 2), batch_size=2)
for x in loader: pass
os.closerange(3, 256)  # as daemons do
import time; time.sleep(0.02)
for x in loader: pass
print("done")
"""


def test_a_script_may_close_every_file(job, torch_python):
    done = job(CLOSES, python=torch_python)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    ring = job.main()
    assert ring.fetches == 600 and ring.errors == 0
