"""A known mix: idle, one multiprocessor, all of them, copies, idle again. Writes when each was, by CLOCK_MONOTONIC.

usage: mix.py cuda|emulated SECONDS TRUTH.json
"""

import json
import sys
import time

from device import device

gpu = device(sys.argv[1])
seconds = float(sys.argv[2])
parts = []
for name, play in (
    ("idle", time.sleep),
    ("one-multiprocessor", gpu.one_multiprocessor),
    ("full", gpu.full),
    ("copies", gpu.copies),
    ("idle-again", time.sleep),
):
    begin = time.monotonic_ns()
    play(seconds)
    gpu.synchronize()
    parts.append({"part": name, "begin": begin, "end": time.monotonic_ns()})
    time.sleep(0.2)
with open(sys.argv[3], "w", encoding="utf-8") as file:
    json.dump({"gpu": gpu.name, "multiprocessors": gpu.multiprocessors, "parts": parts}, file)
