"""Compiled training gives the same losses, breaks its graphs where it would, and every step is seen."""

from __future__ import annotations

import pytest
from agreement import agrees, unchanged


@pytest.mark.parametrize("backend, whole", [("eager", False), ("inductor", True)], ids=["model", "model and step"])
def test_compiled_training(cells, backend, whole):
    if cells.torch < (2, 0):
        pytest.skip("torch.compile came with PyTorch 2.0")
    pair = cells("compiled:train", backend=backend, whole=whole, workers=1)
    unchanged(pair)
    agrees(pair)
    assert pair.ring.step == 16
    assert pair.bare.same["stats"][0]["unique_graphs"] > 0
