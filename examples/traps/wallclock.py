"""The wall clock jumps by hours, back and forth, as when NTP finds its servers at last. No interval may notice.

    wait 6 ms | compute 14 ms, 80 times; time.time() is off by up to a day, another way at every call
"""

import random
import time

import datawait

from own import Own, arguments

chosen = arguments(__doc__)
own = Own(chosen.truth)
right = {"time": time.time, "time_ns": time.time_ns, "clock_gettime": time.clock_gettime}
jump = random.Random(1)


def stepped(name, unit):
    def clock(*which):
        now = right[name](*which)
        return now if which and which != (time.CLOCK_REALTIME,) else now + type(now)(jump.uniform(-86400, 86400) * unit)

    return clock


time.time, time.time_ns, time.clock_gettime = stepped("time", 1), stepped("time_ns", 10**9), stepped("clock_gettime", 1)


def batches():
    while True:
        time.sleep(0.006)
        yield None


iterator = iter(datawait.watch(batches(), workers=0))
begin = own.clock()
while own.steps < 80:
    own.next(iterator)
    time.sleep(0.014)
    own.step()
own.write(seconds=own.clock() - begin)
