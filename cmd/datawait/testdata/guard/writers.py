"""A training loop that saves in every step, in one of the ways scripts do; the way is the first argument.

The folder holds the checkpoints of an earlier run and, once the loop runs, those of this one.
"""

import atexit
import multiprocessing
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


def replaced(step):
    dump("model.tmp", step)
    os.replace("model.tmp", "model.pkl")


def child(method):
    def save(step):
        process = multiprocessing.get_context(method).Process(target=dump, args=("model.pkl", step))
        process.start()
        process.join()

    return save


def python(step):
    code = "import pickle; pickle.dump(%d, open('model.pkl', 'wb'))" % step
    subprocess.run([sys.executable, "-c", code], check=True)


def copied(step):
    dump("model.tmp", step)
    subprocess.run(["cp", "model.tmp", "model.pkl"], check=True)
    os.remove("model.tmp")


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
    "a thread": lambda step: POOL.submit(replaced, step).result(),
    "a forked child": child("fork"),
    "a spawned child": child("spawn"),
    "a Python of its own": python,
    "cp": copied,
    "a shell": lambda step: os.system("echo %d > model.txt" % step),
    # What happens when the loop is left: after the last batch, by an exception or by a signal.
    "finally": None,
    "Ctrl-C": lambda: os.kill(os.getppid(), signal.SIGINT),
    "SIGTERM": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "the agent is killed": lambda: os.kill(os.getppid(), signal.SIGKILL),
}
SLOW = ("a spawned child", "a Python of its own")  # a save takes a second
LAST = ("finally", "Ctrl-C", "SIGTERM", "the agent is killed")
LATER = 30  # steps after the first cached block has begun


def train(witness, writer):
    """Saves in every step; or, clean, in the first ones, and when the loop is left."""
    save = WRITERS[writer]
    begun = os.path.join(os.environ["DATAWAIT_SPOOL"], "guard")  # is there from then on
    left = None
    for step, _ in enumerate(datawait.watch(batches(), workers=0)):
        time.sleep(0.001)
        if writer not in LAST:
            if writer not in SLOW or step % 80 == 0:
                witness.save(step, save)
            continue
        if step < 3:
            witness.save(step, replaced)
        if left is None and os.path.exists(begun):
            left = step + LATER
        if step == left and save is not None:
            save()
            if writer == "the agent is killed":
                return


def main(writer):
    witness = Witness()
    if writer in LAST:
        atexit.register(witness.save, -1, lambda step: dump("model.pkl", step))
        signal.signal(signal.SIGTERM, lambda *_: witness.save(-2, lambda step: dump("model.pkl", step)))
    try:
        train(witness, writer)
    finally:
        if writer in LAST:
            witness.save(-3, replaced)


if __name__ == "__main__":
    main(sys.argv[1])
