"""Loaders whose batches do not come through PyTorch's iterator: the hook sees nothing of them without watch().

All that is told is that such a module was imported. Whether training fetched from it shows in the rest: steps without a
fetch. It is told once per process, in the ring of one that trains, and beside the rings for one that never has any.
"""

from __future__ import annotations

from typing import Any

from .stream import IN_ITERATOR, complain, tell_other_loader

MODULES = (
    "datasets.arrow_dataset",  # Hugging Face's, iterated over as it is; many scripts have a datasets.py of their own
    "fairseq2.data",
    "ffcv.loader",
    "grain.python",
    "merlin.dataloader.torch",
    "nvidia.dali.plugin.pytorch",
    "petastorm.pytorch",
    "ray.data",
    "spdl.pipeline",
    "tensorflow_datasets",
    "torchdata.nodes",
    "webdataset",  # without its WebLoader
)


def imported(module: Any) -> None:
    """One of them was just imported. An error costs the note, not the hook."""
    try:
        tell_other_loader(module.__name__)
    except Exception as error:
        complain(IN_ITERATOR, "another loader", error)
