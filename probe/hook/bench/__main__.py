"""What the hook costs, in lines that benchstat reads: python probe/hook/bench [GROUP...] > new.txt; benchstat new.txt

Groups: noop, parts, worker, loader, beside, audit; without names all of them. At the end, on stderr, every number for
which there is a bar, with its interval.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from typing import Callable, Dict

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ["DATAWAIT_SPOOL"] = folder = tempfile.mkdtemp(prefix="datawait-bench-", dir="/dev/shm")

import bars
import measure

import datawait


def noop() -> None:
    import noop

    datawait.install()
    noop.main()


def parts() -> None:
    import noop

    datawait.install()
    noop.parts()


def worker() -> None:
    import worker

    datawait.install()
    worker.batches()
    worker.sampling()


def loader() -> None:
    import loader

    loader.main()


def beside() -> None:
    import beside

    beside.main()


def audit() -> None:
    import worker

    worker.audit()


GROUPS: Dict[str, Callable[[], None]] = {
    group.__name__: group for group in (loader, beside, noop, parts, worker, audit)  # loader before all that installs
}
NEED_TORCH = ("loader", "beside")


def main() -> None:
    names = sys.argv[1:] or list(GROUPS)
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        sys.exit("error: no group %s; there are %s" % (", ".join(unknown), ", ".join(GROUPS)))
    measure.header()
    try:
        for name in GROUPS:
            if name not in names:
                continue
            if name in NEED_TORCH and importlib.util.find_spec("torch") is None:
                print("NOT MEASURED: %s, PyTorch is not installed" % name, file=sys.stderr)
                continue
            GROUPS[name]()
        bars.tell(measure.results)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
