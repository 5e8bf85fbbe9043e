"""Rank 1 fails before it trains, rank 0 waits for it: the launcher must hear of it at once.

--at  "start" before anything else, or "batch" at the first one
"""

import os
import time

import datawait

from own import arguments

chosen = arguments(__doc__, at="start")
rank = int(os.environ["RANK"])
if rank == 1 and chosen.at == "start":
    raise RuntimeError("rank 1 fails on purpose")
for _ in datawait.watch(range(1_000_000), workers=0):
    if rank == 1:
        raise RuntimeError("rank 1 fails on purpose")
    time.sleep(0.01)
