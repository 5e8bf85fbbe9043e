"""A job that is run twice at once. It waits --wait milliseconds in every step of 5, and exits with 9 if that is 9."""

import time

import datawait

from own import Own, arguments

chosen = arguments(__doc__, wait=2)


def batches():
    while True:
        time.sleep(chosen.wait / 1000)
        yield None


own = Own(chosen.truth)
iterator = iter(datawait.watch(batches(), workers=0))
while own.steps < 100:
    own.next(iterator)
    time.sleep(0.003)
    own.step()
own.write()
raise SystemExit(9 if chosen.wait == 9 else 0)
