"""PyTorch as it is without the hook and with it, in one process and in turn."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Tuple

import measure

import datawait


class Switch:
    """What install() put into PyTorch, to be taken out and put back. Made before anything else installs."""

    def __init__(self, loaders: Any, optimizer: type) -> None:
        owners = [
            loaders._BaseDataLoaderIter,
            loaders._SingleProcessDataLoaderIter,
            loaders._MultiProcessingDataLoaderIter,
            sys.modules["torch.utils.data._utils.worker"],
            optimizer,
        ]
        before = [dict(vars(owner)) for owner in owners]
        if not datawait.install():
            raise SystemExit("error: the hook is switched off")
        self.changed: List[Tuple[Any, str, Any, Any]] = []
        for owner, old in zip(owners, before):
            for name, new in dict(vars(owner)).items():
                if name in old and old[name] is not new:
                    self.changed.append((owner, name, old[name], new))
        names = {name for _, name, _, _ in self.changed}
        if not {"__init__", "__next__", "_worker_loop", "step"} <= names:
            raise SystemExit("error: install() patched other things than this benchmark knows: %s" % sorted(names))

    def bare(self) -> None:
        for owner, name, old, _ in self.changed:
            setattr(owner, name, old)

    def observed(self) -> None:
        for owner, name, _, new in self.changed:
            setattr(owner, name, new)

    def of(self, name: str) -> Tuple[Any, Any]:
        """What one name is without the hook and with it."""
        return next((old, new) for _, changed, old, new in self.changed if changed == name)

    def both(self, loop: measure.Loop) -> Dict[str, measure.Loop]:
        def under(switch: Callable[[], None]) -> measure.Loop:
            def run(n: int) -> float:
                switch()
                try:
                    return loop(n)
                finally:
                    self.observed()

            return run

        return {"bare": under(self.bare), "observed": under(self.observed)}
