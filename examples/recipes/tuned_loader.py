"""A DataLoader with every argument that bears on speed set for this machine, and the reason beside it.

    python3 tuned_loader.py                      # what this machine leaves to a rank, and a loader made for it
    python3 tuned_loader.py --build 0.040 --cpu 0.030 --step 0.010

The second has the seconds that a report gives: to build a batch, the CPU part of that, and a step on cached data.
"""

import functools
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import torch
from torch.utils.data import DataLoader


def quota(root="/"):
    """Cores that the cgroup and those above it may keep busy; infinity without a limit. os.cpu_count() knows none."""
    limits = [math.inf]
    for line in Path(root, "proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = Path(root, "sys/fs/cgroup", "cpu" if controllers else "")
        for folder in (top / group.strip("/"), *(top / group.strip("/")).parents):
            if (folder / "cpu.max").exists():  # version 2: "150000 100000", or "max 100000"
                limit, period = (folder / "cpu.max").read_text().split()
                limits.append(math.inf if limit == "max" else int(limit) / int(period))
            elif (folder / "cpu.cfs_quota_us").exists():  # version 1: -1 is no limit
                limit, period = ((folder / name).read_text() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
                limits.append(int(limit) / int(period) if int(limit) > 0 else math.inf)
    return min(limits)


def usable_cores(ranks):
    """Cores for each rank of this node. The affinity is within the cpuset already."""
    return min(len(os.sched_getaffinity(0)), quota()) / ranks


def worker_count(cores, build=None, cpu=None, step=None):
    """Enough to build a batch per step, and no more than the cores can feed: those would only take memory."""
    if not build or not step:
        return max(1, math.floor(cores) - 1)  # nothing measured: a core for the training process, the others build
    enough = math.ceil(build / step) + 1  # one more, for batches that take longer than most
    fed = math.floor(cores * build / cpu) if cpu else enough  # who waits for storage leaves the core to others
    return max(1, min(enough, fed))


def begin(worker, unpin=False):
    """Runs in each worker before its first batch."""
    # W workers of n threads are W·n threads on the same cores, which mostly wait for each other. PyTorch has set its
    # own to one by now; OpenCV, and what the worker starts (ffmpeg, say), do not ask PyTorch.
    os.environ["OMP_NUM_THREADS"] = "1"
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(0)
    if unpin:  # the launcher pinned the rank to fewer cores than it was given; the cpuset still holds
        os.sched_setaffinity(0, range(os.cpu_count()))


def tuned(dataset, workers, unpin=False, any_order=False, **arguments):
    if workers:
        arguments.update(
            num_workers=workers,
            worker_init_fn=functools.partial(begin, unpin=unpin),
            persistent_workers=True,  # else each epoch starts them anew: imports, the data set, a first batch
            prefetch_factor=2,  # more helps only where some batches take far longer, and each costs memory and /dev/shm
        )
        if any_order:  # PyTorch 2.6: a slow batch no longer holds up those behind it; batches come in another order
            arguments["in_order"] = False
    # A copy from pageable memory is made twice and cannot run beside the device's work.
    return DataLoader(dataset, pin_memory=torch.cuda.is_available(), **arguments)


def each(batch, do):
    if isinstance(batch, torch.Tensor):
        return do(batch)
    if isinstance(batch, Mapping):
        return {key: each(value, do) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        values = [each(value, do) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)  # a named tuple, or not
    return batch


def ahead(loader, device):
    """Copies the next batch while the device computes on this one; takes GPU memory for one batch more."""
    if device.type != "cuda":
        yield from loader
        return
    side, waiting = torch.cuda.Stream(device), []
    for batch in loader:
        with torch.cuda.stream(side):
            waiting.append((each(batch, lambda tensor: tensor.to(device, non_blocking=True)), side.record_event()))
        if len(waiting) > 1:
            yield arrived(*waiting.pop(0), torch.cuda.current_stream(device))
    for last in waiting:
        yield arrived(*last, torch.cuda.current_stream(device))


def arrived(batch, copied, stream):
    """The batch, for which the stream that computes now waits; until that has used it nobody else gets its memory."""
    stream.wait_event(copied)
    each(batch, lambda tensor: tensor.record_stream(stream))
    return batch


def main():
    import proofs
    from proofs.tuned_loader import Squares

    chosen = proofs.options(__doc__, build=0.0, cpu=0.0, step=0.0, ranks=int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
    cores = usable_cores(chosen.ranks)
    workers = worker_count(cores, chosen.build, chosen.cpu, chosen.step)
    print("%d cores here, %.3g usable by each of %d ranks: %d workers" % (os.cpu_count(), cores, chosen.ranks, workers))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = ahead(tuned(Squares(256), workers, batch_size=32), device)
    print("%.0f samples/s" % proofs.rate(batches, 256))


if __name__ == "__main__":
    main()
