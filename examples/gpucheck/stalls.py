"""A training whose loader stalls for a known time while kernels of a known length are queued.

usage: stalls.py cuda|emulated CASE STALL COMPUTE STEPS    (milliseconds)

The GPU has nothing to run in stall - compute of each step, none if the stall is shorter: that is the exposed wait.
CASE: one-stream    everything on the default stream
      side-stream   the whole loop on another stream
      beside        the steps on another stream, the fetches beside it: exposure is not known there
      graph         the step is a replayed CUDA graph
"""

import contextlib
import sys
import time

import datawait
from device import device

gpu, case = device(sys.argv[1]), sys.argv[2]
stall, compute = float(sys.argv[3]) / 1e3, float(sys.argv[4]) / 1e3
steps = int(sys.argv[5])


def batches():
    for index in range(steps):
        time.sleep(stall)
        yield index


step = gpu.graph(compute) if case == "graph" else lambda: gpu.step(compute)
with gpu.beside() if case == "side-stream" else contextlib.nullcontext():
    for _ in datawait.watch(batches(), workers=0):
        with gpu.beside() if case == "beside" else contextlib.nullcontext():
            step()
gpu.synchronize()
