"""Whether the length of a sampler may be asked for.

A sampler of the script may do anything in ``__len__``: draw all its batches to count them, and so move the random
generators. PyTorch's own samplers, and those of the frameworks that train with it, only count what they were given,
and ask the data set for its length no more than at the start of an epoch. What is not known to be one of them has an
unknown length, except in a throw-away run: there the cached-data test needs to know when an epoch ends.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator

from .stream import core

KNOWN = ("torch", "torchdata", "torchvision", "accelerate", "transformers", "lightning", "pytorch_lightning",
         "lightning_fabric", "timm")  # fmt: skip
LISTS = (list, tuple, range)


def measurable(sampler: Any) -> bool:
    """Whether ``len(sampler)`` runs no code of the script but the ``__len__`` of its data set."""
    return core.test_due or all(_is_known(link) for link in _chain(sampler))


def measures(sampler: Any, dataset: Any) -> bool:
    """Whether the sampler, or one that it draws from, holds the data set, whose length it then asks for itself."""
    return core.test_due or any(dataset is value for link in _chain(sampler) for value in attributes(link).values())


def _is_known(sampler: Any) -> bool:
    return type(sampler) in LISTS or type(sampler).__module__.partition(".")[0] in KNOWN


def _chain(sampler: Any) -> Iterator[Any]:
    """The sampler, and those it draws from: a batch sampler has another one."""
    for _ in range(8):
        yield sampler
        held = attributes(sampler)
        for name in ("sampler", "batch_sampler", "_sampler", "_batch_sampler"):
            if held.get(name) is not None:
                sampler = held[name]
                break
        else:
            return


def attributes(thing: Any) -> Dict[str, Any]:
    """What an object holds, by name, without running any code of its own."""
    try:
        held = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}
