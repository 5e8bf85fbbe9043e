"""The cached-data test on PyTorch's own loaders, attached to scripts that know nothing of it."""

# ruff: noqa: SIM115

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import unittest.mock

import pytest
import ringreader
from cachedfakes import BUSY, DEVICE, HOST, LIVE, NEVER, Page
from conftest import ATTACH, HOOK

EPOCH_ENDED, UNAVAILABLE = 1, 4

SCRIPT = """
import json, os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

options = dict(workers=0, prefetch=2, build=0.0, compute=0.002, batches=100, epochs=1, batch=4, accumulate=1,
               persistent=False, mutate=False, iterable=False, gpu=False, body="")
options.update(json.loads(sys.argv[1]))
globals().update(options)

class Mapped(Dataset):
    def __len__(self):
        return batches * batch
    def __getitem__(self, index):
        time.sleep(build / batch)
        return {"x": torch.full((8,), float(index)), "name": "sample %d" % index}

class Streamed(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        for index in range(info.id if info else 0, batches * batch, info.num_workers if info else 1):
            yield Mapped()[index]

arguments = dict(prefetch_factor=prefetch, persistent_workers=persistent) if workers else {}
loader = DataLoader(Streamed() if iterable else Mapped(), batch_size=batch, num_workers=workers, **arguments)
if gpu:
    from datawait import emulated
    device = emulated.Gpu(index=0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
seen, step = [], 0
for epoch in range(epochs):
    count = 0
    for data in loader:
        count += 1
        x = data["x"]
        ids = [int(name.split()[1]) for name in data.pop("name")]
        assert x.shape == (batch, 8) and x[:, 0].tolist() == [float(i) for i in ids], (x, ids)
        seen.append(ids[0])
        begin = time.perf_counter()
        model(x).sum().backward()
        if mutate:
            x.sub_(1000.0)
        if gpu:
            device.copy(0.004)
            device.launch(compute)
            device.synchronize()
        if count % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            exec(body)
        left = begin + compute - time.perf_counter()
        if left > 0 and not gpu:
            time.sleep(left)
    print("epoch", count)
print(json.dumps(seen))
"""


class Run:
    """A script under the hook with a plan; the test plays the agent."""

    def __init__(self, folder, spool, python):
        self.folder, self.spool, self.python = folder, spool, python
        self.page = Page(spool)
        self.process = None

    def start(self, script=SCRIPT, arguments=(), **options):
        path = os.path.join(self.folder, "train.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("DATAWAIT", "PYTHON"))}
        environment.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", DATAWAIT_SPOOL=self.spool)
        environment.update(PYTHONWARNINGS="ignore")  # eight workers on two cores
        environment.update(DATAWAIT_TEST="1", PYTHONPATH=ATTACH + os.pathsep + HOOK)
        if options.get("gpu"):
            environment["DATAWAIT_GPU"] = "emulated"
        self.process = subprocess.Popen(
            [self.python, path, *(arguments or [json.dumps(options)])],
            env=environment,
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def finish(self, timeout=90):
        out, err = self.process.communicate(timeout=timeout)
        assert self.process.returncode == 0, err
        lines = out.splitlines()
        self.epochs = [int(line.split()[1]) for line in lines if line.startswith("epoch")]
        self.seen = json.loads(lines[-1])
        assert err == ""
        return self.main()

    def __call__(self, *blocks, park=NEVER, **options):
        self.page.write(1, blocks, park=park)
        self.start(**options)
        return self.finish()

    def wait_for(self, happened, timeout=60):
        """The ring once it shows what is waited for; the process still runs."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.process.communicate()
            for ring in self.rings():
                if ring.declaration["pid"] == self.process.pid and happened(ring):
                    return ring
            time.sleep(0.05)
        raise AssertionError("never happened")

    def wait_parked(self):
        return self.wait_for(lambda ring: ring.parked)

    def kill(self):
        """As the agent does: the whole run, with no chance for a ``finally``."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def main(self):
        (ring,) = [ring for ring in self.rings() if ring.declaration["pid"] == self.process.pid]
        return ring

    def rings(self):
        try:
            return ringreader.rings(self.spool)
        except AssertionError:  # one is just being made
            return []


@pytest.fixture
def run(tmp_path, spool, torch_python):
    running = Run(str(tmp_path), spool, torch_python)
    yield running
    if running.process is not None and running.process.poll() is None:
        running.kill()


def blocks_of(ring):
    return ring.all("BLOCK")


def errors_of(ring):
    return [note for note in ring.notes if note["note"] == "hook-error"]


def step_ms(block):
    return (block.end - block.begin) / block.steps / 1e6


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_blocks_on_a_real_loader(run, workers):
    ring = run((LIVE, 20, 50), (HOST, 50, 70, 1), (LIVE, 70, 100), (BUSY, 100, 120), (LIVE, 120, 150),
               (DEVICE, 150, 170), workers=workers, build=0.004, batches=200, epochs=2)  # fmt: skip
    assert not errors_of(ring)
    blocks = blocks_of(ring)
    assert [(b.ref, b.flags & 1, b.reason) for b in blocks] == [
        (LIVE, 0, 0), (HOST, 0, 0), (LIVE, 0, 0), (BUSY, 0, 0), (LIVE, 0, 0), (DEVICE, 1, UNAVAILABLE)
    ]  # fmt: skip
    assert ring.blocks == 6
    assert run.epochs == [200, 200]
    assert run.seen[:20] == [4 * i for i in range(20)]
    live, cached = blocks[0], blocks[1]
    assert live.fetches == live.steps and cached.wait < cached.steps * 1_000_000
    fetches = [f for f in ring.all("FETCH") if f.block == cached.block and f.flags & 4]
    assert len(fetches) == 20
    assert {f.flags & 16 for f in ring.all("FETCH") if f.block == cached.block and not f.flags & 4} <= {16}
    assert len(ring.all("SOLO")) == (4 if workers else 0)
    assert [m.ref for m in ring.all("MARK")].count(4) == 1
    assert not any(f.block for f in ring.all("FETCH") if f.step >= 170)


def test_the_copy_costs_little_next_to_a_long_step_and_the_live_batches_are_replayed(run):
    ring = run((LIVE, 5, 17), (HOST, 17, 30), workers=1, compute=0.03, batches=40)
    live, cached = blocks_of(ring)
    counted = run.seen[live.first : live.first + live.steps]
    assert run.seen[cached.first : cached.first + cached.steps] == (counted * 2)[: cached.steps]


def test_solo_builds_are_joined_by_their_index(run):
    ring = run((LIVE, 10, 30), (HOST, 30, 50, 1), workers=2, build=0.01, batches=80)
    built = {}
    for worker in ringreader.rings(run.spool):
        if worker.declaration["producer"] == "worker":
            built.update({b.batch: b for b in worker.all("BATCH")})
    solos = ring.all("SOLO")
    assert len(solos) == 4
    for solo in solos:
        others = [b for b in built.values() if b.batch != solo.batch]
        mine = built[solo.batch]
        assert not [b for b in others if b.begin < mine.end and b.end > mine.begin], "another worker was at work"


def test_the_refill_rule_on_a_real_loader(run):
    """W 8, P 2, build 240 ms, compute 20 ms, on sleeping workers: 30 ms live, 20 cached. The 16 batches that are ready
    after a cached block would last for 48 steps, so without emptying the queue there is no gain to be seen."""
    run_blocks, at = [], 150
    for _ in range(3):
        run_blocks += [(LIVE, at, at + 42), (HOST, at + 42, at + 56)]
        at += 56
    ring = run(*run_blocks, workers=8, build=0.24, compute=0.02, batches=at + 40)
    blocks = blocks_of(ring)
    assert [b.flags & 1 for b in blocks] == [0] * 6
    assert {b.steps for b in blocks[::2]} == {32}
    live = sum(step_ms(b) for b in blocks[::2]) / 3
    cached = sum(step_ms(b) for b in blocks[1::2]) / 3
    assert 0.15 < 1 - cached / live < 0.4, (live, cached)


def test_accumulation(run):
    ring = run((LIVE, 10, 30), (HOST, 30, 50), workers=2, accumulate=4, batches=240)
    assert [(b.flags & 1, b.steps >= 10, b.fetches == 4 * b.steps) for b in blocks_of(ring)] == [(0, True, True)] * 2
    assert run.epochs == [240]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_script_that_writes_into_its_batches_never_sees_its_own_writing(run, workers):
    """The script itself asserts that every batch holds what the dataset gave."""
    ring = run(
        (LIVE, 10, 30), (HOST, 30, 60), (LIVE, 60, 90), (HOST, 90, 120), workers=workers, mutate=True, batches=150
    )
    assert [b.flags & 1 for b in blocks_of(ring)] == [0] * 4 and not errors_of(ring)


@pytest.mark.parametrize("persistent", [False, True])
def test_epochs_keep_their_length(run, persistent):
    ring = run((LIVE, 10, 30), (HOST, 30, 60), (LIVE, 70, 95), (HOST, 95, 110), (LIVE, 130, 155), (BUSY, 155, 175),
               (HOST, 190, 220), workers=2, persistent=persistent, batches=64, epochs=4)  # fmt: skip
    assert run.epochs == [64] * 4
    assert [(b.flags & 1, b.reason) for b in blocks_of(ring)][:6] == [(0, 0)] * 6
    assert (blocks_of(ring)[6].flags & 1, blocks_of(ring)[6].reason) == (1, EPOCH_ENDED)
    assert not errors_of(ring)


def test_iterable_datasets(run):
    ring = run((LIVE, 10, 30), (HOST, 30, 50), workers=2, iterable=True, batches=100, epochs=2)
    assert [b.flags & 1 for b in blocks_of(ring)] == [0, 0] and not errors_of(ring)
    cached = blocks_of(ring)[1]
    assert run.epochs[0] == 100 + (cached.first + cached.steps - 30) and run.epochs[1] == 100


def test_the_emulated_device(run):
    """4 ms of copying and 6 of computing, one after the other: the device leg is without the copy."""
    ring = run((LIVE, 20, 50), (HOST, 50, 80), (LIVE, 80, 110), (DEVICE, 110, 140), workers=1, build=0.001,
               compute=0.006, gpu=True, batches=180)  # fmt: skip
    blocks = blocks_of(ring)
    assert [(b.ref, b.flags) for b in blocks] == [(LIVE, 2), (HOST, 2), (LIVE, 2), (DEVICE, 2)], blocks
    assert step_ms(blocks[1]) - step_ms(blocks[3]) > 2, [step_ms(block) for block in blocks]


def test_a_forked_child_has_no_part_in_it(run):
    body = """
if step in (15, 40):
    pid = os.fork()
    if not pid:
        assert len(list(DataLoader(Mapped(), batch_size=batch))) == batches
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
    ring = run((LIVE, 10, 30), (HOST, 30, 60), workers=2, body=body, batches=80)
    assert [b.flags & 1 for b in blocks_of(ring)] == [0, 0]
    others = [r for r in ringreader.rings(run.spool) if r.path != ring.path and r.declaration["producer"] == "main"]
    assert not [b for r in others for b in r.all("BLOCK")]


# --- ending ---------------------------------------------------------------------------------------------------------


def test_parks_and_waits_to_be_killed(run):
    run.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50)], park=50, agent=os.getpid())
    run.start(workers=2, body="open('steps', 'a').write('.')")
    ring = run.wait_parked()
    assert ring.parked == 1 and ring.blocks == 2 and [m.ref for m in ring.all("MARK")][-1] == 6
    run.kill()
    assert len(open(os.path.join(run.folder, "steps")).read()) == 50


def test_trains_on_when_the_agent_dies(run):
    agent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    run.page.write(1, [(LIVE, 10, 30), (HOST, 30, 50)], park=50, agent=agent.pid)
    run.start(workers=2)
    run.wait_parked()
    agent.kill()
    agent.wait()
    ring = run.finish()
    assert run.epochs == [100] and ring.parked == 0 and [e["where"] for e in errors_of(ring)] == ["parked"]


SAVES = {
    "torch.save": "torch.save(model.state_dict(), 'last.pt')",
    "rotation": "os.remove('last.pt')",
    "pickle": "import pickle; pickle.dump(model, open('last.pt', 'wb'))",
    "thread": "import threading; threading.Thread(target=torch.save, args=(model, 'last.pt'), daemon=True).start()",
}


@pytest.mark.parametrize("name", SAVES)
def test_a_save_ends_the_run_before_it_happens(run, name):
    old = os.path.join(run.folder, "last.pt")
    with open(old, "wb") as file:
        file.write(os.urandom(1000))
    before = hashlib.sha256(open(old, "rb").read()).digest(), os.stat(old).st_mtime_ns
    time.sleep(0.05)
    run.page.write(1, [(LIVE, 10, 30), (HOST, 30, 60)], agent=os.getpid())
    run.start(workers=2, body="if step == 45:\n    " + SAVES[name])
    ring = run.wait_parked()
    assert ring.parked == 2
    (note,) = [note for note in ring.notes if note["note"] == "save-guard"]
    assert "last.pt" in note["target"]
    assert 5 in [m.ref for m in ring.all("MARK")]
    ring = run.wait_for(lambda ring: ring.blocks == 2)  # after a save on another thread, at the next fetch
    assert [(b.ref, b.flags & 1, b.reason) for b in blocks_of(ring)] == [(LIVE, 0, 0), (HOST, 1, 5)]
    assert ring.parked == 2
    run.kill()
    assert (hashlib.sha256(open(old, "rb").read()).digest(), os.stat(old).st_mtime_ns) == before


def test_a_save_before_the_first_cached_block_is_the_users(run):
    ring = run((LIVE, 10, 30), (HOST, 60, 90), body="if step == 40: torch.save(model, 'last.pt')", batches=100)
    assert os.path.getsize(os.path.join(run.folder, "last.pt")) > 0
    assert [b.flags & 1 for b in blocks_of(ring)] == [0, 0]


def test_a_block_in_which_the_user_saves_does_not_count(run):
    """A save within, before and after a live block, and one on another thread that reaches into it."""
    body = """
    if step in (20, 55, 100): torch.save(model, 'last.pt')
    if step == 125:
        import threading
        class Slow(io.BytesIO):
            def write(self, data):
                time.sleep(0.02)
                return super().write(data)
        threading.Thread(target=torch.save, args=(model, Slow())).start()  # a daemon's crashes as the script ends
    """
    body = "import io, time\n" + textwrap.dedent(body).strip()
    ring = run((LIVE, 10, 30), (LIVE, 30, 50), (LIVE, 60, 80), (LIVE, 128, 150), body=body, batches=160)
    assert [(b.flags & 1, b.reason) for b in blocks_of(ring)] == [(1, 9), (0, 0), (0, 0), (1, 9)]


def test_with_the_agent_gone_a_save_ends_the_script(run):
    agent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    run.page.write(1, [(LIVE, 10, 30), (HOST, 30, 60)], agent=agent.pid)
    run.start(workers=2, compute=0.02, body="if step == 70: torch.save(model, 'last.pt')")
    run.wait_for(lambda ring: ring.step > 10)
    agent.kill()
    agent.wait()
    out, err = run.process.communicate(timeout=60)
    assert run.process.returncode == 1 and "datawait: torch.save (last.pt) refused" in err and out == ""
    assert not os.path.exists(os.path.join(run.folder, "last.pt"))


DDP = """
import json, os, sys, time
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 70
    def __getitem__(self, index):
        time.sleep(0.02 if rank else 0.0)  # one rank's loader is the slower one
        return torch.ones(4)

for epoch in range(2):
    count = 0
    for x in DataLoader(Data(), num_workers=2, batch_size=None):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.005)
        count += 1
    print("epoch", count, flush=True)
"""


def test_ranks_switch_on_the_same_step(run):
    """The ranks discard different numbers of batches and still end their epochs together."""
    run.page.write(1, [(LIVE, 10, 26), (HOST, 26, 40, 1), (LIVE, 40, 60)])
    ranks = []
    for rank in (0, 1):
        with unittest.mock.patch.dict(os.environ, RANK=str(rank)):
            run.start(DDP, arguments=[os.path.join(run.folder, "store")])
        ranks.append(run.process)
    printed = [rank.communicate(timeout=90) for rank in ranks]
    if "gloo" in printed[0][1].lower() and ranks[0].returncode:
        pytest.skip("this PyTorch has no gloo")
    assert [out for out, _ in printed] == ["epoch 70\nepoch 70\n"] * 2, printed
    rings = [ring for ring in run.rings() if ring.declaration["producer"] == "main"]
    assert len(rings) == 2
    blocks = [[(b.ref, b.flags & 1, b.first + b.steps) for b in ring.all("BLOCK")] for ring in rings]
    assert blocks == [[(LIVE, 0, 26), (HOST, 0, 40), (LIVE, 0, 60)]] * 2
