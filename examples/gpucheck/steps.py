"""A loop of short steps on batches that are there already: what observing adds to it. Prints seconds per step.

usage: steps.py cuda|emulated STEPS
"""

import sys
import time

from device import device

try:
    import datawait

    watch = datawait.watch
except ImportError:  # bare

    def watch(batches, workers):
        return batches


gpu, count = device(sys.argv[1]), int(sys.argv[2])
began = time.perf_counter()
for i in watch(range(count), workers=0):
    if i == count // 5:  # warm
        gpu.synchronize()
        began = time.perf_counter()
    gpu.small_step()
gpu.synchronize()
print((time.perf_counter() - began) / (count - count // 5))
