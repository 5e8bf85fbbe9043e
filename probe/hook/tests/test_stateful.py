"""torchdata's StatefulDataLoader: a worker loop, messages and iterators of its own."""

from __future__ import annotations

import json
import subprocess

import pytest

from datawait import layout

SCRIPT = """
import json, sys, torch
from torchdata.stateful_dataloader import StatefulDataLoader
def main():
    workers, context = int(sys.argv[1]), sys.argv[2]
    torch.manual_seed(3)
    loader = StatefulDataLoader(
        list(range(22)), batch_size=3, shuffle=True, num_workers=workers, persistent_workers=workers > 0,
        multiprocessing_context=context if workers else None, snapshot_every_n_steps=2,
    )
    out = [[b.tolist() for b in loader] for _ in range(2)]
    it = iter(loader); next(it); state = loader.state_dict()
    print(json.dumps([out, sorted(state)]))
if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def python(torch_python):
    find = "import sys, importlib.util as u; sys.exit(u.find_spec('torchdata.stateful_dataloader') is None)"
    if subprocess.run([torch_python, "-c", find], check=False, capture_output=True).returncode != 0:
        pytest.skip("no torchdata")
    return torch_python


@pytest.mark.parametrize("workers, context", [(0, "fork"), (2, "fork"), (1, "spawn")])
def test_stateful_loaders_are_seen_and_unchanged(job, python, workers, context):
    done = job(SCRIPT, str(workers), context, python=python)
    bare = job(SCRIPT, str(workers), context, python=python, hook=False)
    assert done.returncode == 0 and json.loads(done.stdout) == json.loads(bare.stdout)
    ring = job.main()
    assert ring.errors == 0
    assert [(i.epoch, i.workers) for i in ring.all("ITERATOR")] == [(0, workers), (1, workers), (2, workers)]
    fetches = [f for f in ring.all("FETCH") if not f.flags & layout.END]
    assert [(f.epoch, f.batch) for f in fetches] == [(e, b) for e in (0, 1) for b in range(8)] + [(2, 0)]
    built = job.workers()
    assert len(built) == workers == len(ring.all("WORKER"))
    batches = {(b.resumes, b.batch): b.samples for w in built for b in w.all("BATCH") if b.resumes < 2}
    if workers:
        assert batches == {(e, b): 3 if b < 7 else 1 for e in (0, 1) for b in range(8)}
        assert {c.tensors for w in built for c in w.all("COST")} <= {1, None}
