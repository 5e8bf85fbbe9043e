"""Writes down, outside the job's folder, what the folder holds: a test compares it with what a run left.

One JSON object a line, with the time of CLOCK_MONOTONIC, which is the recording's clock. The files are read through
functions that no guard replaces, and the log is one open file.
"""

import hashlib
import json
import os
import time

LOG = open(os.environ["WITNESS"], "a", buffering=1)  # noqa: SIM115
READ = open


def tell(**what):
    LOG.write(json.dumps({"t": time.monotonic_ns(), **what}) + "\n")


def look(folder="."):
    """Name, content, time and kind of everything below folder."""
    found = {}
    for path, folders, files in os.walk(folder):
        for name in folders + files:
            whole = os.path.join(path, name)
            info = os.lstat(whole)
            if os.path.islink(whole):
                found[whole] = "link to " + os.readlink(whole)
            elif os.path.isdir(whole):
                found[whole] = "folder"
            else:
                with READ(whole, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
                found[whole] = "%s written at %d" % (digest, info.st_mtime_ns)
    return found


class Witness:
    """Brackets every save of a training loop: what the folder held before, and whether the save came to its end."""

    def __init__(self):
        self.seen = None
        self.look()

    def look(self):
        seen = look()
        if seen != self.seen:
            self.seen = seen
            tell(holds=seen)

    def save(self, step, save):
        self.look()
        tell(saves=step)
        save(step)
        tell(saved=step)
        self.look()
