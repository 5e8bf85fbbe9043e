"""A median and how sure it is."""

from __future__ import annotations

import math
from typing import List, Tuple


def interval(values: List[float]) -> Tuple[float, float, float]:
    """The median, and between which of the values the true one lies with 95 % (order statistics, no distribution
    assumed; with fewer than six values that cannot be said, and it is all of them)."""
    ordered = sorted(values)
    n = len(ordered)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    outside, below = 0, 0.0
    while True:  # how many of the lowest, and of the highest, may be left out
        below += math.comb(n, outside) / 2.0**n
        if 2 * below > 0.05:
            break
        outside += 1
    lowest = max(0, outside - 1)
    return middle, ordered[lowest], ordered[n - 1 - lowest]
