"""Two ranks that wait for each other after every step; rank 1 has the slow loader. Each writes its own truth.

    rank 0   wait 2 ms  | compute 3 ms | wait for rank 1 ~10 ms
    rank 1   wait 12 ms | compute 3 ms
"""

import multiprocessing
import os
import sys
import time

from own import Own, arguments


def train(rank, barrier, truth):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
    import datawait

    def batches():
        while True:
            time.sleep(0.012 if rank == 1 else 0.002)
            yield None

    own = Own("%s.%d" % (truth, rank))
    iterator = iter(datawait.watch(batches(), workers=0))
    while own.steps < 100:
        own.next(iterator)
        time.sleep(0.003)
        barrier.wait()  # where a real job exchanges gradients
        own.step()
    own.write()


if __name__ == "__main__":
    chosen = arguments(__doc__)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    ranks = [context.Process(target=train, args=(rank, barrier, chosen.truth)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    sys.exit(max(process.exitcode for process in ranks))
