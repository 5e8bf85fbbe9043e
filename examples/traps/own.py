"""The clock that a script keeps for itself. It knows nothing of datawait: a report is held against it."""

import argparse
import json
import time

WARM = 1  # the first step opens the epoch: neither side judges by it


class Own:
    """Σ wait and Σ step of a training loop, by time.perf_counter alone."""

    def __init__(self, path):
        self.path = path
        self.clock = time.perf_counter  # kept: a script may replace what the module holds
        self.steps = self.fetches = 0
        self.wait = self.time = self.aside = 0.0
        self._waited = 0.0
        self._begin = self.clock()

    def next(self, iterator):
        """The loop's next(iterator), timed. StopIteration passes."""
        enter = self.clock()
        batch = next(iterator)
        self._waited += self.clock() - enter
        self.fetches += 1
        return batch

    def step(self):
        """A step ended here, the next one begins."""
        end = self.clock()
        self.steps += 1
        if self.steps > WARM:
            self.wait += self._waited
            self.time += end - self._begin
        self._waited, self._begin = 0.0, end

    def apart(self, seconds):
        """This much of the step under way was no training: a validation loop."""
        self._begin += seconds
        self.aside += seconds

    def write(self, **more):
        """Leaves what was seen for the test."""
        seen = {"steps": self.steps, "fetches": self.fetches}
        if self.time:
            seen["share"] = self.wait / self.time
            seen["step"] = self.time / (self.steps - WARM)
        seen.update(more)
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(seen, file)


def arguments(description, **defaults):
    """--truth FILE, and one option for each default."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", metavar="FILE", default="truth.json", help="write the loop's own clock here")
    for name, value in defaults.items():
        parser.add_argument("--" + name, type=type(value), default=value)
    return parser.parse_args()
