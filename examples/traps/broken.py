"""The observer fails inside the training process: the training goes on as if nothing were there, the report tells it.

--where  function of the hook that raises from the 30th step on
"""

import importlib
import time

import datawait

from own import Own, arguments


def batches():
    for index in range(200):
        time.sleep(0.002)
        yield index


def raising(*args, **kwargs):
    raise RuntimeError("injected for a test")


chosen = arguments(__doc__, where="ring:Ring.flush")
own = Own(chosen.truth)
total = 0
for index in datawait.watch(batches(), workers=0):
    total += index
    own.step()
    if own.steps == 30:
        module, _, path = chosen.where.partition(":")
        target = importlib.import_module("datawait." + module)
        *owners, name = path.split(".")
        for owner in owners:
            target = getattr(target, owner)
        assert hasattr(target, name), chosen.where
        setattr(target, name, raising)
time.sleep(0.4)  # so that the agent looks once more
own.write()
print("sum", total)
raise SystemExit(7)
