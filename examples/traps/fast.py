"""Tens of thousands of steps a second: every one is counted, or it is said how many are missing.

--pause nanoseconds that a step takes at least; without it the loop is as fast as the machine
--end   how the process ends: "normally", or "at-once" through os._exit, which runs nothing that was left for the end
--stop  "yes": the agent (the parent) stands still for all but the first steps, so the ring is overrun
"""

import os
import signal
import time

import datawait

from own import Own, arguments

chosen = arguments(__doc__, steps=200_000, pause=0, end="normally", stop="no")
own = Own(chosen.truth)
clock = own.clock
agent = os.getppid()
recent = [0.0] * 65536  # when the last steps ended
done = 0
began = clock()
pause = chosen.pause * 1e-9
for _ in datawait.watch(range(chosen.steps), workers=0):
    recent[done & 65535] = clock()
    while pause and clock() - recent[done & 65535] < pause:
        pass
    done += 1
    if chosen.stop == "yes" and done == 1000:
        time.sleep(0.5)  # the agent has found the ring
        os.kill(agent, signal.SIGSTOP)
ended = clock()
if chosen.stop == "yes":
    os.kill(agent, signal.SIGCONT)
late = sum(ended - when < 0.001 for when in recent[: min(done, 65536)])
own.write(steps=done, rate=done / (ended - began), last_millisecond=late)
if chosen.end == "at-once":
    os._exit(0)
