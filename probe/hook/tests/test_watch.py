"""Loaders that are not PyTorch's: they look the same to the script, and their batches are joined across processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time

import pytest
import ringreader

import datawait
from datawait import layout, loaders
from datawait.fetch import Track


class Loader:
    """A stranger's loader."""

    batch_size = 4

    def __init__(self, n=5):
        self.n = n

    def __len__(self):
        return self.n

    def __iter__(self):
        return iter(range(self.n))


def test_watched_loader_looks_like_itself(hook):
    loader = datawait.watch(Loader(), name="stranger", workers=2, prefetch=3, length=5)
    assert len(loader) == 5 and loader.batch_size == 4
    assert list(loader) == list(loader) == [0, 1, 2, 3, 4]
    with pytest.raises(AttributeError):
        _ = loader.nothing
    ring = hook.read()
    (note,) = ring.note("loader")
    assert note["kind"] == "watch" and note["name"] == "stranger" and note["length"] == 5
    assert note["arguments"]["num_workers"] == 2 and note["arguments"]["prefetch_factor"] == 3
    assert note["dataset"].endswith("test_watch.Loader")
    first, second = ring.all("ITERATOR")
    assert [(i.epoch, i.workers, i.length, i.prefetch) for i in (first, second)] == [(0, 2, 5, 3), (1, 2, 5, 3)]
    assert [(f.epoch, f.batch) for f in ring.all("FETCH")] == [(e, b) for e in (0, 1) for b in range(6)]
    assert ring.totals(note["loader"])["fetches"] == 10


def test_watching_stays_lazy_and_keeps_generators(hook):
    pulled = []

    def generate():
        for n in range(3):
            pulled.append(n)
            yield n

    watched = datawait.watch(generate())
    assert pulled == []
    iterator = iter(watched)
    assert pulled == []
    assert next(iterator) == 0 and pulled == [0]
    assert next(watched) == 1  # a generator can be pulled on directly
    assert list(iterator) == [2]
    assert hook.read().fetches == 3


def test_generators_made_anew_at_one_place_are_one_loader(hook):
    numbers = set()
    for _ in range(3):
        for _ in datawait.watch(n for n in range(2)):
            pass
        numbers |= {record.ref for record in hook.read().all("ITERATOR")}
    for _ in datawait.watch(n for n in range(2)):
        pass
    ring = hook.read()
    assert len(numbers) == 1
    assert len(ring.note("loader")) == 2  # the second place is another loader
    assert [i.epoch for i in ring.all("ITERATOR")] == [0, 1, 2, 0]


def test_ready_is_asked_before_each_fetch(hook):
    depth = iter([3, 2, 1, 0])
    for _ in datawait.watch(Loader(3), ready=lambda: next(depth), name="asked"):
        pass
    assert [f.ready for f in hook.read().all("FETCH")] == [3, 2, 1, 0]


def test_a_broken_ready_is_left_alone(hook):
    def ready():
        raise OSError("closed")

    assert list(datawait.watch(Loader(3), ready=ready, name="broken")) == [0, 1, 2]
    ring = hook.read()
    assert [f.ready for f in ring.all("FETCH")] == [None] * 4
    assert ring.note("hook-error")[0]["where"] == "ready()" and ring.hook == 1


def test_unknown_stays_unknown(hook):
    list(datawait.watch(iter([1]), name="bare"))
    ring = hook.read()
    (iterator,) = ring.all("ITERATOR")
    assert (iterator.workers, iterator.length, iterator.prefetch) == (None, None, None)
    assert ring.all("FETCH")[0].ready is None and ring.length == layout.UNKNOWN64


def test_the_length_is_the_iterables_own_unless_given(hook):
    list(datawait.watch([1, 2, 3], name="sized"))
    list(datawait.watch([1, 2, 3], length=2, name="given"))
    assert [i.length for i in hook.read().all("ITERATOR")] == [3, 2]


def test_off_returns_the_iterable_itself(hook, monkeypatch):
    monkeypatch.setenv("DATAWAIT_HOOK", "off")
    loader = Loader()
    assert datawait.watch(loader) is loader
    hook.core.off = True
    with datawait.building(1):
        pass
    assert os.listdir(hook.spool) == []


def test_a_thread_s_batch_is_recorded_beside_the_training(hook):
    def build(n):
        with datawait.building(n, samples=8, loader=0) as batch:
            hook.clock.now += 5_000_000
            batch.result([b"x" * 10, b"y" * 5])

    thread = threading.Thread(target=build, args=(7,))
    thread.start()
    thread.join()
    ring = hook.read()
    (batch,) = ring.all("BATCH")
    assert (batch.ref, batch.batch, batch.samples, batch.end - batch.begin) == (0, 7, 8, 5_000_000)
    assert (batch.received, batch.sent, batch.worker) == (None, None, None)
    assert ring.all("COST")[0].bytes == 15
    assert ring.declaration["producer"] == "main"


def test_building_inside_a_fetch_that_builds_is_said_once(hook):
    def generate():
        for n in range(2):
            with datawait.building(n):
                hook.clock.now += 2_000_000
            yield n

    assert list(datawait.watch(generate(), workers=0)) == [0, 1]
    ring = hook.read()
    assert ring.all("BATCH") == [] and len(ring.all("COST")) == 2


def test_batches_are_counted_once_whoever_builds_them(hook, monkeypatch):
    """By the fetches where these build, else by building(), before the loader's first fetch and after."""

    def build(loader):
        with datawait.building(0, loader=loader):
            pass

    hook.core.role = "main"
    monkeypatch.setattr(loaders, "_count", 0)
    itself = datawait.watch([1, 2, 3], workers=0, name="built by its fetches")
    other = datawait.watch([1, 2, 3], name="built elsewhere")
    for _ in range(2):
        for loader in (0, 1, None):
            build(loader)
        assert list(itself) == list(other) == [1, 2, 3]
    build(1)
    ring = hook.read()
    assert [ring.totals(loader)["built"] for loader in (0, 1, 31)] == [6, 3, 2]


def test_errors_in_a_batch_are_flagged_and_pass(hook):
    with pytest.raises(KeyError), datawait.building(3):
        raise KeyError("missing")
    (batch,) = hook.read().all("BATCH")
    assert batch.flags == layout.RAISED


def produce(queue, indexes):
    for index in indexes:
        with datawait.building(index, samples=2):
            time.sleep(0.002)
        queue.put(index)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_name_their_parent(hook, monkeypatch, method):
    monkeypatch.setenv("DATAWAIT_SPOOL", hook.spool)
    context = multiprocessing.get_context(method)
    queue = context.Queue()

    def pull():
        for _ in range(6):
            yield queue.get(timeout=30)

    workers = [context.Process(target=produce, args=(queue, range(w, 6, 2))) for w in range(2)]
    watched = iter(datawait.watch(pull(), workers=2, name=method))
    hook.core.ring.flush(0)
    for worker in workers:
        worker.start()
    assert sorted(watched) == list(range(6))
    for worker in workers:
        worker.join()
    rings = ringreader.rings(hook.spool)
    built = [ring for ring in rings if ring.declaration["producer"] == "worker"]
    assert len(built) == 2 and {ring.declaration["parent"] for ring in built} == {os.getpid()}
    assert sorted(b.batch for ring in built for b in ring.all("BATCH")) == list(range(6))
    assert all(b.ref == layout.UNKNOWN16 for ring in built for b in ring.all("BATCH"))
    assert all(ring.state == 2 for ring in built)  # closed though such children leave through os._exit
    assert all(ring.totals(31)["built"] == 3 for ring in built)


def test_a_loader_made_anew_keeps_its_number(monkeypatch):
    monkeypatch.setattr(loaders, "_by_id", {})
    monkeypatch.setattr(loaders, "_by_likeness", {})
    note = {"kind": "torch", "dataset": "x"}
    one, two = Loader(), Loader()
    first = loaders.register(one, note)
    second = loaders.register(two, note)
    assert first.number != second.number  # both live: two loaders
    assert loaders.find(one) is first
    del one
    again = Loader()
    assert loaders.find(again) is None
    assert loaders.register(again, note) is first
    assert loaders.register(Loader(), {**note, "dataset": "y"}) is not first


class OverData(Loader):
    def __init__(self, dataset):
        self.dataset = dataset


def test_a_loader_made_anew_over_the_same_data_keeps_its_number_though_the_old_one_is_kept(monkeypatch):
    monkeypatch.setattr(loaders, "_by_id", {})
    monkeypatch.setattr(loaders, "_by_likeness", {})
    note, data = {"kind": "torch", "dataset": "x"}, Loader()
    kept = [OverData(data)]  # as Accelerate keeps every loader it ever prepared
    first = loaders.register(kept[0], note)
    running = Track(first)
    kept.append(OverData(data))
    second = loaders.register(kept[1], note)
    assert second is not first  # the first is being iterated over: two loaders side by side
    del running
    kept.append(OverData(data))
    assert loaders.register(kept[2], note) is first
    kept.append(OverData(Loader()))
    assert loaders.register(kept[3], note) not in (first, second)  # other data, though it looks alike


def test_iterators_of_loaders_that_are_gone_are_two_while_they_read_different_data(monkeypatch):
    monkeypatch.setattr(loaders, "_by_id", {})
    monkeypatch.setattr(loaders, "_by_likeness", {})
    note, data = {"kind": "torch", "dataset": "x"}, [Loader(), Loader()]
    labelled = loaders.register(OverData(data[0]), note)  # iter(DataLoader(…)): the loader is gone at once
    running = Track(labelled)
    unlabelled = loaders.register(OverData(data[1]), note)
    assert unlabelled is not labelled
    assert loaders.register(OverData(data[0]), note) is labelled  # made anew before the old iterator is let go
    running.batch = 1
    assert loaders.register(OverData(Loader()), note) is labelled  # the next epoch, over a data set made anew
    running.batch = 0
    assert loaders.register(OverData(Loader()), note) is not labelled
    del running
    assert loaders.register(OverData(Loader()), note) is labelled


def test_a_loader_over_a_copy_of_hugging_faces_data_set_keeps_its_number(monkeypatch):
    monkeypatch.setattr(loaders, "_by_id", {})
    monkeypatch.setattr(loaders, "_by_likeness", {})
    table = type("Dataset", (), {"__module__": "datasets.arrow_dataset"})
    copies = [table(), table(), table()]
    for copy, fingerprint in zip(copies, ("a", "a", "b")):
        copy._fingerprint = fingerprint
    made = [OverData(copy) for copy in copies]
    numbers = [loaders.register(loader, {"kind": "torch"}).number for loader in made]
    assert numbers[0] == numbers[1] != numbers[2]


def test_sent_tells_what_is_outstanding(hook):
    from datawait.source import source_of

    watched = datawait.watch([1, 2, 3, 4], workers=1, prefetch=2, sent=lambda: 2)
    iterator = iter(watched)
    next(iterator)
    source = source_of(iterator._datawait, next, iterator._inner)
    assert source.last_sent() == 2
    assert source.outstanding() == 2  # 0, 1 and 2 were asked for, 0 was taken
    quiet = iter(datawait.watch([1, 2]))
    next(quiet)
    assert source_of(quiet._datawait, next, quiet._inner).outstanding() is None


FIRST_A_THREAD = """
import queue, sys, threading
audits = []
sys.addaudithook(lambda event, args: audits.append(event) if event == "sys.addaudithook" else None)
import datawait
ready = queue.Queue()

def build():
    for index in range(6):
        with datawait.building(index):
            pass
        ready.put(index)

thread = threading.Thread(target=build)
thread.start()
thread.join()
pulled = datawait.watch(iter(ready.get, 5), workers=1)
print(list(pulled), audits)
"""


def test_a_trainer_whose_threads_build_before_it_fetches_is_a_trainer(job):
    """And stays free of the audit hook, which can never be taken off again."""
    done = job(FIRST_A_THREAD)
    assert (done.stdout, done.stderr) == ("[0, 1, 2, 3, 4] []\n", "")
    main, built = job.main(), job.workers()
    assert main.fetches == 5 and main.declaration["opened"] > built[0].declaration["opened"]
    assert len(built) == 1 and len(built[0].all("BATCH")) == 6 and built[0].state == layout.CLOSED


def test_a_loader_used_to_build_a_batch_makes_no_trainer(job):
    done = job("import datawait\nwith datawait.building(0):\n    print(list(datawait.watch([1, 2])))\n")
    assert (done.stdout, done.stderr) == ("[1, 2]\n", "")
    (ring,) = job.rings()
    assert ring.declaration["producer"] == "worker"
