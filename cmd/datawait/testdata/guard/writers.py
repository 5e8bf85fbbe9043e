"""A training loop that saves in every step, in one of the ways scripts do; the way is the first argument.

The folder holds the checkpoints of an earlier run and, once the loop runs, those of this one.
"""

import atexit
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import datawait
from witness import Witness

state = {"weights": list(range(100)), "step": -1}


def batches():
    for i in range(10**6):
        time.sleep(0.001)
        yield [i] * 4


def dump(path, step):
    with open(path, "wb") as file:
        pickle.dump({**state, "step": step}, file)


def rotated(save):
    """Keeps the two newest."""

    def both(step):
        save("checkpoint-%d.pkl" % step, step)
        if os.path.exists("checkpoint-%d.pkl" % (step - 2)):
            os.remove("checkpoint-%d.pkl" % (step - 2))

    return both


def numpy_save(step):
    import numpy

    numpy.save("weights.npy", numpy.full(100, step))


def numpy_savez(step):
    import numpy

    numpy.savez("weights.npz", weights=numpy.full(100, step))


def temporary_then(finish):
    def save(step):
        dump("model.tmp", step)
        finish("model.tmp", "model.pkl")

    return save


def folders(step):
    """A folder each; the oldest goes first."""
    shutil.rmtree("checkpoint-%d" % (step - 1), ignore_errors=True)
    os.makedirs("checkpoint-%d" % step, exist_ok=True)
    with open("checkpoint-%d/model.txt" % step, "w") as file:
        file.write(str(step))


POOL = ThreadPoolExecutor(1)

WRITERS = {
    "pickle": lambda step: dump("model.pkl", step),
    "pickle, rotated": rotated(dump),
    "numpy.save": numpy_save,
    "numpy.savez": numpy_savez,
    "os.replace": temporary_then(os.replace),
    "os.rename": temporary_then(os.rename),
    "Path.rename": temporary_then(lambda a, b: pathlib.Path(a).rename(b)),
    "Path.replace": temporary_then(lambda a, b: pathlib.Path(a).replace(b)),
    "shutil.move": temporary_then(shutil.move),
    "write_bytes": lambda step: pathlib.Path("model.bin").write_bytes(b"weights of %d" % step),
    "rmtree": folders,
    "a thread": lambda step: POOL.submit(dump, "model.pkl", step).result(),
}


def main(writer):
    save = WRITERS[writer]
    witness = Witness()
    for step, _ in enumerate(datawait.watch(batches(), workers=0)):
        time.sleep(0.001)
        witness.save(step, save)


if __name__ == "__main__":
    main(sys.argv[1])
