"""Two ranks train to the same weights, observed or not, and each has a ring that says what it saw."""

from __future__ import annotations

import os
import subprocess

import ringreader
from agreement import agrees, unchanged
from launcher import HERE, Pair, Run, surroundings


def run(python, folder, spool):
    """Both ranks' accounts."""
    folder.mkdir()
    done = subprocess.run(
        [python, os.path.join(HERE, "ranks.py"), str(folder)],
        env=surroundings(spool),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Run(str(folder / rank), done.returncode) for rank in ("rank0", "rank1")]


def test_two_ranks(torch_python, tmp_path, spool):
    bare = run(torch_python, tmp_path / "bare", None)
    observed = run(torch_python, tmp_path / "observed", spool)
    rings = ringreader.rings(spool)
    assert len([ring for ring in rings if ring.declaration["producer"] == "main"]) == 2  # and none of a launcher
    for rank in range(2):
        pair = Pair(bare[rank], observed[rank], rings)
        unchanged(pair)
        agrees(pair)
        declared = pair.ring.declaration
        assert (declared["rank"], declared["world_size"]) == (rank, 2)
        assert pair.ring.step == 8 and len(pair.workers) == 2 * rank
    assert observed[0].same["weights"] == observed[1].same["weights"]
