"""datawait: see where a training loop waits for data.

Importing this package does nothing. ``install()`` makes PyTorch's loaders and optimizers write what they do into a
ring (probe/recording/SPEC.md); ``watch()`` and ``building()`` do the same for loaders that are not PyTorch's.
"""

from __future__ import annotations

from typing import Any, Callable, ContextManager, Iterable, Optional, TypeVar

from .version import __version__

__all__ = ["__version__", "building", "install", "watch"]

T = TypeVar("T")


def install() -> bool:
    """Starts observing in this process and those it makes. False when switched off by ``DATAWAIT_HOOK=off``."""
    try:
        from .arming import install as _install

        return _install(explicit=True)
    except Exception as error:
        _failed("install", error)
        return False


def watch(
    iterable: "Iterable[T]",
    *,
    workers: Optional[int] = None,
    prefetch: Optional[int] = None,
    length: Optional[int] = None,
    ready: "Optional[Callable[[], int]]" = None,
    sent: "Optional[Callable[[], int]]" = None,
    name: Optional[str] = None,
) -> "Iterable[T]":
    """Wraps a loader that is not PyTorch's so that every ``next()`` of the training loop is seen.

    workers and prefetch say what it was made with, length how many batches an epoch has, ready how many batches lie
    waiting now (called before each fetch, so it must be quick), sent the index, from 0 in its epoch, of the batch
    that a worker was asked for last (only the cached-data test calls it: with it a batch can be timed while no other
    is built). Left out, they are unknown.
    """
    try:
        from .watching import watch as _watch

        return _watch(iterable, workers=workers, prefetch=prefetch, length=length, ready=ready, sent=sent, name=name)
    except Exception as error:
        _failed("watch", error)
        return iterable


def building(index: int, samples: Optional[int] = None, loader: Optional[int] = None) -> "ContextManager[Any]":
    """``with building(index):`` around the code that builds one batch, in whatever process or thread does it."""
    try:
        from .builds import Building as _Building

        return _Building(index, samples, loader)
    except Exception as error:
        _failed("building", error)
        return _Unseen()


def _failed(where: str, error: BaseException) -> None:
    try:
        from .stream import IN_WATCH, failed
    except Exception:
        return  # the package itself is broken
    failed(IN_WATCH, where, error)


class _Unseen:
    """Stands in where even ``building()`` fails: the script's block runs as it is."""

    def __enter__(self) -> "_Unseen":
        return self

    def __exit__(self, *raised: Any) -> None:
        pass

    def result(self, batch: T) -> T:
        return batch
