"""What the loops are made with."""

from __future__ import annotations

from typing import Any

import data
from torch.utils.data import DataLoader


def loader(length: int = 24, workers: int = 0, **options: Any) -> Any:
    dataset = data.Items(length, bad=options.pop("bad", ()))
    return DataLoader(dataset, batch_size=options.pop("batch_size", 3), num_workers=workers, **options)


def built() -> int:
    return data.built
