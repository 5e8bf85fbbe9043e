"""What the script drops is gone at once, as it is without the hook: an iterator takes its workers with it, and a batch
its memory, whether or not garbage is collected."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

import pytest
from cachedfakes import BUSY, HOST, LIVE, NEVER, Page
from conftest import ATTACH, HOOK

SCRIPT = """
import gc, os, sys, torch
import torch.utils.data.dataloader as loaders
from torch.utils.data import DataLoader, Dataset

workers, bad = int(sys.argv[1]), int(sys.argv[2])

class Whole(Dataset):
    def __len__(self):
        return 60
    def __getitem__(self, i):
        if i == bad:
            raise ValueError("bad")
        return torch.full((4, 3), float(i))

def children():
    return len(open("/proc/self/task/%d/children" % os.getpid()).read().split())

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Whole(), batch_size=None, num_workers=workers)
gc.collect()
gc.disable()
errors = 0
for epoch in range(3):
    try:
        for batch in loader:
            model(batch).sum().backward()
            optimizer.step()
    except ValueError:
        errors += 1
    print(errors, sum(issubclass(type(held), loaders._BaseDataLoaderIter) for held in gc.get_objects()), children())
"""
PLAN = (LIVE, 5, 25), (HOST, 28, 80), (LIVE, 85, 100), (BUSY, 105, 140), (LIVE, 145, 170)


@pytest.fixture
def lives(tmp_path, torch_python):
    """Runs the script: after each epoch the errors so far, and how many iterators and child processes are left."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)

    def run(workers, bad, **hook):
        usual = {k: v for k, v in os.environ.items() if not k.startswith(("DATAWAIT", "PYTHON"))}
        done = subprocess.run(
            [torch_python, str(script), str(workers), str(bad)], env={**usual, "OMP_NUM_THREADS": "1", **hook},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]

    return run


@pytest.fixture
def hook(spool):
    return {"DATAWAIT_SPOOL": spool, "DATAWAIT_TEST": "1", "PYTHONPATH": ATTACH + os.pathsep + HOOK}


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("bad", [-1, 12, 26, 29])
def test_an_iterator_lives_as_long_as_without_the_hook(lives, spool, hook, workers, bad):
    """Under the cached-data test, which ends epochs itself; and where the loader raises, in a block or when it is asked
    for a batch no step will get. PyTorch keeps an iterator whose worker failed."""
    bare = lives(workers, bad)
    kept = max(left for _, left, _ in bare) / 3
    assert bare == [(n * (bad >= 0), n * kept, n * kept * workers) for n in (1, 2, 3)]
    Page(spool).write(1, PLAN, park=NEVER)
    hooked = lives(workers, bad, **hook)
    assert len(hooked) == 3
    assert hooked == [(errors, errors * kept, errors * kept * workers) for errors, _, _ in hooked]


def test_a_page_of_the_agent_that_cannot_be_read_keeps_nothing(lives, spool, hook):
    os.symlink("elsewhere", os.path.join(spool, "control"))
    assert lives(1, -1, **hook) == [(0, 0, 0)] * 3


def test_a_look_at_a_file_that_failed_keeps_nothing():
    code = """
import gc, weakref
from datawait import meter, reads
def broken(*args):
    raise ValueError("broken")
reads.Reads.opened = broken
meter.audit(); meter.reads.begin()
class Batch: pass
def builds():
    batch = Batch()
    held.append(weakref.ref(batch))
    open("/dev/null").close()
held = []
gc.disable()
builds()
print(meter.reads.trouble, held[0]())
"""
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": HOOK}, capture_output=True, text=True)
    assert done.stdout == "broken None\n", done.stderr


class Batch:
    pass


def test_an_error_that_is_told_later_keeps_nothing():
    from datawait.foreign import own, without_frames

    def fails():
        batch = Batch()
        held.append(weakref.ref(batch))
        try:
            raise ValueError("of the script's")
        except ValueError:
            try:
                raise OSError("of the hook's")
            except OSError as error:
                own(error)
                return without_frames(error)

    gc.collect()
    gc.disable()
    try:
        held = []
        error = fails()
        assert str(error) == "of the hook's" and held[0]() is None
    finally:
        gc.enable()
