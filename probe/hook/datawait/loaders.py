"""Numbers for loader objects. A loader made anew like one that is gone (an evaluation loop makes one each time) keeps
its number, also where something still holds the old one but nothing iterates over it and both read the same data set:
Accelerate keeps every loader it ever prepared. The table holds no reference to a loader, so nothing lives longer for
being watched."""

from __future__ import annotations

import functools
import json
import weakref
from typing import Any, Dict, List, Optional, Tuple

from . import layout
from .track import Loader

_by_id: Dict[int, Tuple[Any, Loader]] = {}
_by_likeness: Dict[str, List[Tuple[Any, Loader]]] = {}
_count = 0


def find(thing: Any) -> Optional[Loader]:
    entry = _by_id.get(id(thing))
    if entry is None or entry[0]() is not thing:
        return None
    return entry[1]


def register(thing: Any, note: Dict[str, Any]) -> Loader:
    """The loader of thing, new or taken over from one just like it that no longer exists."""
    global _count
    key = id(thing)

    try:
        # No function of Python's: what a signal handler of the script raised in a callback would vanish.
        reference: Any = weakref.ref(thing, functools.partial(_by_id.pop, key))
    except TypeError:
        reference = _Never()  # cannot be watched for its end: found again by likeness only
    likeness = json.dumps(note, sort_keys=True, default=str)
    alike = _by_likeness.setdefault(likeness, [])
    for position, (other, loader) in enumerate(alike):
        if _retired(other(), loader, thing):
            loader.data = _data(thing)
            alike[position] = (reference, loader)
            _by_id[key] = (reference, loader)
            return loader
    number = min(_count, layout.UNKNOWN16)
    _count += 1
    loader = Loader(number, {"note": "loader", "loader": number, **note})
    loader.data = _data(thing)
    alike.append((reference, loader))
    _by_id[key] = (reference, loader)
    return loader


def _retired(other: Any, loader: Loader, thing: Any) -> bool:
    """Whether thing takes the place of the other, which was numbered as loader."""
    if other is None:
        # Of iter(DataLoader(…)) the iterator goes on. One that was fetched from is followed by that of the next epoch,
        # which may have made its data set anew; one that was not stands beside that of another data set.
        iterator = loader.latest()
        return iterator is None or iterator.batch > 0 or loader.data is None or loader.data == _data(thing)
    return loader.latest() is None and _data(other) is not None and _data(other) == _data(thing)


def _data(thing: Any) -> Any:
    """What tells the data set of a loader from others: the object, or for Hugging Face's, of which a Trainer makes a
    copy for each evaluation, the fingerprint of their content."""
    dataset = getattr(thing, "__dict__", {}).get("dataset")
    if dataset is None:
        return None
    if type(dataset).__module__.startswith("datasets."):
        return getattr(dataset, "__dict__", {}).get("_fingerprint", id(dataset))
    return id(dataset)


class _Never:
    def __call__(self) -> None:
        return None
