"""Checks datawait against a GPU that does known work, in at most four minutes, and prints what came out as JSON.

It needs a datawait binary and a Python with PyTorch, neither Go nor DCGM: what is installed is checked. The exit status
is 0 if all checks hold, 1 if one does not, 3 if there is no GPU and so nothing was checked.

    python3 examples/gpucheck/check.py --datawait bin/datawait > gpu-check.json
"""

import argparse
import csv
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Check:
    def __init__(self, datawait, device, seconds):
        self.datawait, self.device, self.seconds = os.path.abspath(datawait), device, seconds
        self.folder = tempfile.mkdtemp(prefix="datawait-gpu-check-")
        self.done = []
        self.count = 0

    def say(self, text):
        print("gpu-check: " + text, file=sys.stderr, flush=True)

    def add(self, name, measured, expected, holds, **more):
        self.done.append(dict(check=name, measured=measured, expected=expected, holds=bool(holds), **more))
        self.say("%s %s: %s (%s)" % ("ok  " if holds else "FAIL", name, measured, expected))

    def attempt(self, check, *arguments):
        """What breaks is a check that does not hold; the others go on."""
        try:
            check(*arguments)
        except Exception as error:
            self.add("%s%r" % (check.__name__, arguments), None, "no exception", False, error=str(error)[-2000:])

    def record(self, source, script, *arguments):
        """Runs a script under datawait record; returns the folder and the report."""
        self.count += 1
        out = os.path.join(self.folder, "run-%d" % self.count)
        command = [self.datawait, "record", "--quiet", "--gpu", source, "--format", "json", "--out", out, "--"]
        command += [sys.executable, os.path.join(HERE, script)] + [str(a) for a in arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError("%s ended with %d\n%s" % (" ".join(command), done.returncode, done.stderr))
        with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
            return out, json.load(file), done.stdout

    def doctor(self, sources):
        found = {}
        for source in sources:
            command = [self.datawait, "doctor", "--format", "json", "--gpu", source, "--python", sys.executable]
            text = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120).stdout
            found[source] = json.loads(text)
            gpus = [f for f in found[source]["findings"] if f["id"] == "gpu"]
            self.say("%s: %s" % (source, "; ".join(f["says"] for f in gpus)))
        return found

    def mix(self, source):
        """SM activity of each part of a known mix. A window counts where it lies inside a part, its edges left out."""
        truth_path = os.path.join(self.folder, "truth.json")
        out, report, _ = self.record(source, "mix.py", self.device, self.seconds, truth_path)
        with open(truth_path, encoding="utf-8") as file:
            truth = json.load(file)
        text = subprocess.run([self.datawait, "windows", out], stdout=subprocess.PIPE, text=True, check=True).stdout
        windows = list(csv.DictReader(io.StringIO(text)))
        one = 1 / truth["multiprocessors"]
        bounds = {
            "idle": (0, 0.5 * one),
            "one-multiprocessor": (0.5 * one, 2.5 * one),
            "full": (0.85, 1),
            "copies": (0, 0.15),
            "idle-again": (0, 0.5 * one),
        }
        for part in truth["parts"]:
            activity, n = mean(windows, part["begin"] + int(0.4e9), part["end"] - int(0.4e9))
            low, high = bounds[part["part"]]
            self.add(
                "%s: SM activity, %s" % (source, part["part"]),
                activity,
                [low, high],
                activity is not None and low <= activity <= high,
                windows=n,
                gpu=truth["gpu"],
                sources=sorted({w["source"] for w in windows}),
            )
        return report

    def stalls(self, source, case, stall, compute, known=True):
        """Exposed wait against arithmetic."""
        steps = max(40, int(4000 / max(stall, compute)))
        _, report, _ = self.record(source, "stalls.py", self.device, case, stall, compute, steps)
        estimate = report["step"]["exposed_wait_share"]
        measured = estimate["value"] if estimate else None
        expected = max(0, stall - compute) / max(stall, compute)
        name = "exposed wait, %s, %g ms stall over %g ms of work" % (case, stall, compute)
        if known:
            self.add(name, measured, expected, measured is not None and abs(measured - expected) <= 0.06)
        else:
            self.add(name, measured, None, measured is None)

    def cost(self, source, steps=4000, rounds=3):
        """What observing adds to a step of a few hundred microseconds, bare and observed in turn."""
        bare, observed = [], []
        script = [sys.executable, os.path.join(HERE, "steps.py"), self.device, str(steps)]
        for _ in range(rounds):
            bare.append(float(subprocess.run(script, stdout=subprocess.PIPE, check=True, timeout=120).stdout))
            observed.append(float(self.record(source, "steps.py", self.device, steps)[2]))
        added = statistics.median(observed) - statistics.median(bare)
        self.add(
            "a step of %.0f µs, observed" % (statistics.median(bare) * 1e6),
            added * 1e6,
            "at most 13 µs added: 3 by the hook, 10 by the device clock",
            added * 1e6 <= 13,
            bare_us=[b * 1e6 for b in bare],
            observed_us=[o * 1e6 for o in observed],
        )


def mean(windows, begin, end):
    """Mean SM activity of the windows inside, and how many there are; untrusted and unknown ones do not count."""
    total = time_ = 0.0
    n = 0
    for w in windows:
        b, e = int(w["begin_ns"]), int(w["end_ns"])
        if b >= begin and e <= end and w["untrusted"] == "false" and w["sm"]:
            total += float(w["sm"]) * (e - b)
            time_ += e - b
            n += 1
    return (total / time_ if n else None), n


def has_gpu():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def counted(found):
    """Sources with which doctor saw SM activity."""
    return [
        source
        for source, document in found.items()
        if any(f["id"] == "gpu" and f.get("grade") == "A" for f in document["findings"])
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datawait", default="bin/datawait", help="the binary to check")
    parser.add_argument("--device", default="cuda", choices=["cuda", "emulated"], help="emulated: a self-test")
    parser.add_argument("--seconds", type=float, default=4, help="of each part of the known mix")
    chosen = parser.parse_args()
    began = time.monotonic()
    if chosen.device == "cuda" and not has_gpu():
        print("error: PyTorch sees no GPU here: nothing was checked", file=sys.stderr)
        return 3
    check = Check(chosen.datawait, chosen.device, chosen.seconds)
    found = check.doctor(["emulated"] if chosen.device == "emulated" else ["auto", "dcgm", "nvml"])
    sources = [s for s in counted(found) if s != "auto"]
    check.add("sources that count SM activity", sources, "at least one", sources)
    for source in sources:
        check.attempt(check.mix, source)
    best = sources[0] if sources else "auto"
    for case in [("one-stream", 8, 3, True), ("one-stream", 3, 8, True)]:
        check.attempt(check.stalls, best, *case)
    if chosen.device == "cuda":  # the emulated device has one stream, and no PyTorch
        for case in [("side-stream", 8, 3, True), ("beside", 8, 3, False), ("graph", 8, 3, True)]:
            check.attempt(check.stalls, best, *case)
        check.attempt(check.cost, best)
    print(json.dumps({
        "machine": platform.platform(),
        "seconds": round(time.monotonic() - began, 1),
        "emulated": chosen.device == "emulated",
        "checks": check.done,
        "doctor": found,
    }, indent=2))
    return 0 if all(c["holds"] for c in check.done) else 1


if __name__ == "__main__":
    sys.exit(main())
