"""PyTorch as it may be one day: the names inside it that the hook uses are others, and everything still works.

Its own source is compiled anew with one name replaced wherever it stands. Called as ``renamed.py HOOK FOLDER``, prints
what a hooked training showed with each, and a bare one with none.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import re
import sys
from typing import Any, Dict, List

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

LOADING = ("torch.utils.data._utils.worker", "torch.utils.data.dataloader")
RAISED = 1  # flag of a BATCH
STEPPING = ("torch.optim.optimizer", "torch.optim.sgd")

# Names inside PyTorch -> (modules to compile anew, what the hook then tells or leaves unknown)
NAMES: Dict[str, Any] = {
    "_num_workers": LOADING, "_pin_memory": LOADING, "_prefetch_factor": LOADING, "_workers": LOADING,
    "_dataset_kind": LOADING, "_index_sampler": LOADING, "_worker_result_queue": LOADING, "_data_queue": LOADING,
    "_task_info": LOADING, "_tasks_outstanding": LOADING, "_rcvd_idx": LOADING, "_send_idx": LOADING,
    "_num_yielded": LOADING, "_in_order": LOADING, "_reset": LOADING, "first_iter": LOADING, "_next_data": LOADING,
    "_IterableDataset_len_called": LOADING,
    "_worker_loop": LOADING, "index_queue": LOADING, "data_queue": LOADING, "worker_id": LOADING,
    "_BaseDataLoaderIter": LOADING, "_MultiProcessingDataLoaderIter": LOADING,
    "_IterableDatasetStopIteration": LOADING, "_ResumeIteration": LOADING,
    "ExceptionWrapper": ("torch._utils", *LOADING),
    "_hook_for_profile": STEPPING, "_patch_step_function": STEPPING, "hooked": STEPPING,
}  # fmt: skip


def rename(name: str) -> None:
    import torch.utils.data

    for path in NAMES[name]:
        module = sys.modules[path]
        source = re.sub(r"\b%s\b" % name, "renamed" + name, inspect.getsource(module))
        vars(module).pop(name, None)
        exec(compile(source, str(module.__file__), "exec"), vars(module))
    torch.utils.data.DataLoader = sys.modules["torch.utils.data.dataloader"].DataLoader  # type: ignore[misc]
    torch.optim.SGD = sys.modules["torch.optim.sgd"].SGD  # type: ignore[misc]


def fail(i: int) -> None:
    raise ValueError("bad sample")


def train() -> Any:
    import torch.utils.data
    from trainings import Numbers, Training

    class Stream(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            return iter([(torch.ones(3), i) for i in range(6)])

    train = Training()
    train.epoch(train.loader(20))
    kept = train.loader(20, workers=2, persistent_workers=True, shuffle=True)
    for _ in range(2):
        train.epoch(kept)
    train.epoch(train.loader(dataset=Stream(), workers=1))
    try:
        train.epoch(train.loader(dataset=Numbers(4, fail), workers=1))
    except ValueError as error:
        train.diary.append(str(error).splitlines()[-1])
    gc.collect()  # the exception holds this frame, and that the kept workers, which would be killed at the end
    with torch.no_grad():
        train.diary.append([i.tolist() for _, i in train.loader(dataset=Numbers(8))])
    torch.save(train.model.state_dict(), "model.pt")
    return train.end()


def main() -> None:
    import forks

    hook, folder, names = forks.torch_process()
    import torch.utils.data  # noqa: F401

    import datawait.fetch
    import datawait.optimizer
    import datawait.torchhook
    import datawait.worker  # noqa: F401

    site = os.path.join(hook, "attach", "sitecustomize.py")
    with open(site, encoding="utf-8") as file:
        code = compile(file.read(), site, "exec")

    def attach(name: str) -> Any:
        def attach(spool: str) -> None:
            if name:
                rename(name)
            forks.sitecustomize(code, site)

        return attach

    def done(number: int, fork: Any, outcome: Any) -> Any:
        told = forks.told(fork.spool)
        return {"outcome": outcome, "errors": told.errors, "wrong": told.wrong, "rings": [seen(r) for r in told.rings]}

    names = names or ["", *NAMES]
    tasks = [forks.Task(lambda folder: train(), how) for how in (None, *map(attach, names))]
    bare, *hooked = forks.run(tasks, folder, done)
    print(json.dumps({
        name: {**run, "differences": forks.differences(bare["outcome"], run["outcome"]), "bare": bare["outcome"]}
        for name, run in zip(names, hooked)
    }))  # fmt: skip


def seen(ring: Any) -> Dict[str, Any]:
    """What a ring says of the loaders, without times."""
    fields = ("ref", "epoch", "workers", "length", "prefetch", "flags")
    iterators: List[Any] = [{key: i[key] for key in fields} for i in ring.all("ITERATOR")]
    return {
        "producer": ring.declaration["producer"], "fetches": ring.fetches, "unit": ring.unit, "step": ring.step,
        "iterators": iterators, "workers": len(ring.all("WORKER")), "batches": len(ring.all("BATCH")),
        "ready": sorted({f.ready is None for f in ring.all("FETCH")}),
        "raised": sum(b.flags & RAISED for b in ring.all("BATCH")),
        "batch": [f.batch for f in ring.all("FETCH")], "marks": [m.ref for m in ring.all("MARK")],
        "iterable": [n["iterable"] for n in ring.note("loader")],
    }  # fmt: skip


if __name__ == "__main__":
    main()
