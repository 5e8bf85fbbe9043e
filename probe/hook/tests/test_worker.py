"""The worker side: what passes through its queues, on a clock that the test moves; then what real work costs."""

from __future__ import annotations

import os
import pickle
import sys
import time
import zlib

import pytest
from conftest import HOOK

from datawait import layout, meter, worker

MS = 1_000_000


class ResumeIteration:
    __module__ = worker.CONTROL


class ExceptionWrapper:
    __module__ = worker.ERRORS


class IterableEnd:
    __module__ = worker.CONTROL


class Queue:
    """An index queue with messages in it, or a result queue that remembers."""

    def __init__(self, *messages):
        self.messages = list(messages)
        self.cancelled = False

    def get(self, timeout=None):
        return self.messages.pop(0)

    def put(self, message):
        self.messages.append(message)

    def cancel_join_thread(self):
        self.cancelled = True


def loop(hook, *indexes, work=3 * MS, wait=MS, collate=None):
    """A worker loop like PyTorch's, over queues of ours."""

    def _worker_loop(dataset, index_queue, data_queue, done_event, collate_fn, worker_id):
        while True:
            message = index_queue.get(timeout=5)
            if message is None:
                break
            if isinstance(message, ResumeIteration):
                data_queue.put((message, None))
                continue
            index, samples = message
            hook.clock.now += work
            data = samples if isinstance(samples, (ExceptionWrapper, IterableEnd)) else collate_fn(samples)
            data_queue.put((index, data))
            hook.clock.now += wait  # for the next index
        data_queue.cancel_join_thread()

    def default_collate(samples):
        hook.clock.now += 2 * MS
        return samples

    results = Queue()
    hook.core.role = None
    wrapped = worker.WorkerLoop(_worker_loop, __name__)
    wrapped(None, Queue(*indexes, None), results, None, collate or default_collate, worker_id=4)
    return results


def test_each_batch_is_timed_from_index_to_queue(hook, monkeypatch):
    monkeypatch.setattr(meter, "audit", lambda: None)
    begin = hook.clock.now
    results = loop(hook, (0, [10, 11]), (3, [12]), (6, [13, 14, 15]))
    assert results.messages == [(0, [10, 11]), (3, [12]), (6, [13, 14, 15])] and results.cancelled
    ring = hook.read()
    assert ring.declaration["producer"] == "worker" and ring.state == layout.CLOSED
    batches = ring.all("BATCH")
    assert [(b.batch, b.samples, b.worker, b.resumes, b.ref, b.flags) for b in batches] == [
        (0, 2, 4, 0, 65535, 0),
        (3, 1, 4, 0, 65535, 0),
        (6, 3, 4, 0, 65535, 0),
    ]
    assert [b.received - begin for b in batches] == [0, 6 * MS, 12 * MS]
    assert all(b.end - b.begin == 5 * MS and b.sent == b.end for b in batches)
    assert [c.collate for c in ring.all("COST")] == [2 * MS] * 3
    assert ring.totals(31)["built"] == 3


def test_control_messages_pass_and_count_epochs(hook, monkeypatch):
    monkeypatch.setattr(meter, "audit", lambda: None)
    resume = ResumeIteration()
    results = loop(hook, (0, [1]), resume, (0, [2]), (1, IterableEnd()), resume, (0, ExceptionWrapper()))
    assert [m[0] for m in results.messages] == [0, resume, 0, 1, resume, 0]
    batches = hook.read().all("BATCH")
    assert [(b.batch, b.resumes, b.flags) for b in batches] == [(0, 0, 0), (0, 1, 0), (0, 2, layout.RAISED)]


def test_fast_batches_are_counted_and_not_measured(hook, monkeypatch):
    monkeypatch.setattr(meter, "audit", lambda: None)

    loop(hook, *[(n, [n]) for n in range(40)], work=200_000, wait=50_000, collate=lambda samples: samples)
    ring = hook.read()
    assert len(ring.all("BATCH")) == 40 and len(ring.all("COST")) == 10  # 250 µs apart: one in four


def test_trivial_batches_are_measured_every_fifty_milliseconds(hook, monkeypatch):
    monkeypatch.setattr(meter, "audit", lambda: None)
    loop(hook, *[(n, [n]) for n in range(2000)], work=50_000, wait=0, collate=lambda samples: samples)
    assert len(hook.read().all("COST")) == 2


@pytest.mark.parametrize("place", ["asked", "complete", "sent"])
def test_an_error_inside_loses_no_batch(hook, monkeypatch, place):
    def raising(*args):
        raise RuntimeError("injected")

    monkeypatch.setattr(meter, "audit", lambda: None)
    monkeypatch.setattr(worker.Batches, place, raising)
    results = loop(hook, (0, [1]), (1, [2]))
    assert results.messages == [(0, [1]), (1, [2])]
    assert hook.core.off
    assert hook.read().note("hook-error")[0]["error"] == "RuntimeError: injected"


def test_an_error_before_the_loop_starts_it_bare(hook, monkeypatch):
    def raising(*args):
        raise RuntimeError("injected")

    monkeypatch.setattr(worker, "Batches", raising)
    monkeypatch.setattr(meter, "audit", lambda: None)
    assert loop(hook, (0, [1])).messages == [(0, [1])]


def test_the_loop_s_own_errors_pass(hook, monkeypatch):
    monkeypatch.setattr(meter, "audit", lambda: None)

    def broken(samples):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop(hook, (0, [1]), collate=broken)


def test_pickled_loop_brings_the_hook_along_or_goes_by_name(hook, monkeypatch):
    wrapped = worker.WorkerLoop(named, __name__)
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "_worker_loop", wrapped, raising=False)
    assert pickle.loads(pickle.dumps(wrapped)) is wrapped
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if os.path.abspath(entry) != HOOK])
    by_name = pickle.dumps(wrapped)
    assert b"datawait" not in by_name and pickle.loads(by_name) is wrapped


def named(index_queue, data_queue):
    pass


# --- what real work costs --------------------------------------------------------------------------------------


def cost_of(spool, work):
    """The COST and BATCH of one batch that does this, measured with real clocks."""
    import ringreader

    from datawait import stream
    from datawait.ring import Ring

    ring = Ring(spool, 1024, {})
    counters = meter.Meter()
    begin = time.perf_counter_ns()
    counters.begin(begin)
    work()
    after = counters.end()
    wall = time.perf_counter_ns() - begin
    counters.write(ring, 0, after, None, False)
    ring.flush(0)
    read = ringreader.Ring(ring.path)
    os.unlink(ring.path)
    assert stream
    return read.all("COST")[0], read.all("IO")[0], wall


def burn_python(seconds):
    end = time.thread_time() + seconds
    total = 0
    while time.thread_time() < end:
        for n in range(200):
            total += n
    return total


def compress():
    data = os.urandom(1 << 16) * 8
    for _ in range(6):
        zlib.compress(data, 6)


def near(value, expected):
    return abs(value - expected) <= 0.1 * expected + 1_000_000


@pytest.mark.parametrize("kind", ["python", "zlib", "sleep", "both"])
def test_cpu_and_waiting_are_told_apart(spool, kind):
    """Within 10 % of the script's own clocks; what is left is time the scheduler gave to others, and it is measured."""

    def work():
        start = time.thread_time_ns()
        if kind in ("python", "both"):
            burn_python(0.05)
        if kind == "zlib":
            compress()
        spent.append(time.thread_time_ns() - start)
        if kind in ("sleep", "both"):
            time.sleep(0.05)
            slept.append(50_000_000)

    for _ in range(3):  # a machine shared with others may spoil one
        spent, slept = [], [0]
        cost, _, wall = cost_of(spool, work)
        off_cpu = wall - cost.cpu - (cost.run_queue or 0)
        if near(cost.cpu, spent[0]) and near(off_cpu, slept[-1]):
            break
    assert near(cost.cpu, spent[0])
    assert near(off_cpu, slept[-1]), (wall, cost)
    assert cost.process_cpu >= 0.9 * cost.cpu - 1_000_000


def test_reads_are_counted_without_our_own(spool, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"x" * 300_000)

    def work():
        with open(path, "rb", buffering=0) as file:
            while file.read(100_000):
                pass

    _, io, _ = cost_of(spool, work)
    assert io.rchar == 300_000 and io.syscr == 4
    _, io, _ = cost_of(spool, lambda: None)
    assert io.rchar == 0 and io.syscr == 0


def test_schedstat_that_keeps_no_account_is_unknown(spool, tmp_path, monkeypatch):
    fake = tmp_path / "schedstat"
    fake.write_text("0 0 0\n")
    monkeypatch.setattr(meter, "_open", lambda path: os.open(fake, os.O_RDONLY) if "schedstat" in path else None)
    cost, io, _ = cost_of(spool, lambda: None)
    assert cost.run_queue is None and io.rchar is None


def test_missing_counters_are_unknown(spool, monkeypatch):
    monkeypatch.setattr(meter, "_open", lambda path: None)
    cost, io, _ = cost_of(spool, lambda: None)
    assert cost.run_queue is None and io.rchar is None and io.syscr is None
    assert cost.files is None and cost.requests is None and cost.collate is None


@pytest.mark.parametrize(
    "batch, size",
    [
        (b"12345", 5),
        ([b"12", {"a": b"345", "b": (b"6", 7, None)}], 6),
        (None, None),
        (object(), None),
        ([b"x"] * 31, 31),
    ],
)
def test_batch_bytes(batch, size):
    measured = meter.Sizer().size(batch)[0]
    assert measured == (layout.UNKNOWN64 if size is None else size)


def test_many_parts_are_walked_now_and_then():
    sizer = meter.Sizer()
    sizes = [sizer.size([b"x"] * 1000)[0] for _ in range(70)]
    assert sizes[0] == 1000 and sizes[65] == 1000
    assert set(sizes) == {1000, layout.UNKNOWN64} and sizes.count(1000) == 2


def test_audit_counts_files_and_requests_only_when_asked():
    code = """
import http.client, http.server, threading
from datawait import meter
assert meter.audited is None
meter.audit(); meter.audit()
for _ in range(3): open('/dev/null').close()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(4); self.send_response(200); self.end_headers()
    def log_message(self, *args): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
files = meter.audited[0]
connection = http.client.HTTPConnection(*server.server_address)
connection.request('POST', '/', body=b'GET ')
connection.getresponse().read()
print(files, meter.audited[1])
"""
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": HOOK}, capture_output=True, text=True)
    files, requests = done.stdout.split()
    assert int(files) >= 3 and (requests == "1" or sys.version_info < (3, 10)), done.stderr
