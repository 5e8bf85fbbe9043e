"""The hot path on a clock that the test moves: exact records, exact sums, and failures that never reach training."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from conftest import HOOK

from datawait import fetch, layout, optimizer, stream

MS = 1_000_000


def taking(hook, *durations):
    """A next() that takes these many ns, then ends."""
    left = list(durations)

    def call(_):
        if not left:
            raise StopIteration
        hook.clock.now += left.pop(0)
        return "batch"

    return call


def test_waits_and_gaps_are_exact(hook):
    observed = hook.iterator(taking(hook, 5 * MS, 7, 3 * MS), length=3)
    begin = hook.clock.now
    for gap in (10 * MS, 20, 30 * MS):
        assert observed() == "batch"
        hook.clock.now += gap
    with pytest.raises(StopIteration):
        observed()
    ring = hook.read()
    records = ring.all("FETCH")
    assert [r.exit - r.enter for r in records] == [5 * MS, 7, 3 * MS, 0]
    assert records[0].enter == begin
    assert [r.flags for r in records] == [layout.FIRST, 0, 0, layout.END]
    assert [r.batch for r in records] == [0, 1, 2, 3] and [r.step for r in records] == [0, 1, 2, 3]
    assert ring.totals(0) == {
        "fetches": 3, "wait": 8 * MS + 7, "between": 40 * MS + 20, "no_grad": 0, "last_end": hook.clock.now,
        "built": 0, "first_begin": begin, "reserved": 0,
    }  # fmt: skip
    assert (ring.fetches, ring.step, ring.unit, ring.length, ring.batch) == (3, 3, 0, 3, 3)


def test_records_of_a_fast_loop_come_late_but_all(hook):
    observed = hook.iterator(taking(hook, *[1000] * 400))
    observed()
    at = hook.core.ring.head
    for _ in range(20):
        observed()
    assert hook.core.ring.head == at  # put off: not a millisecond has passed
    hook.clock.now += MS
    observed()
    assert hook.core.ring.head == at + 21
    for _ in range(300):
        observed()
    assert len(hook.core.ring.pending) < 64
    assert [r.batch for r in hook.read().all("FETCH")] == list(range(322))


def test_other_records_do_not_overtake(hook):
    observed = hook.iterator(taking(hook, *[10] * 8))
    for _ in range(5):
        observed()
    hook.core.ring.mark(layout.SAVE, 1, 2)
    kinds = [r.kind for r in hook.read().records]
    assert kinds == ["FETCH"] * 5 + ["MARK"]


def test_nested_next_is_upstream_time(hook):
    inner = hook.iterator(taking(hook, 3, 3), number=1)

    def call(_):
        hook.clock.now += 10
        return inner()

    outer = hook.iterator(call, number=0)
    outer()
    ring = hook.read()
    first, second = ring.all("FETCH")
    assert (first.ref, first.flags & layout.NESTED, first.exit - first.enter) == (1, 1, 3)
    assert (second.ref, second.flags & layout.NESTED, second.exit - second.enter) == (0, 0, 13)
    assert ring.totals(0)["wait"] == 13 and ring.totals(1)["fetches"] == 0
    assert ring.step == 1


def test_another_thread_is_upstream_time(hook):
    observed = hook.iterator(taking(hook, 3, 4))
    seen = []

    def run():
        observed()
        seen.append(threading.get_native_id())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    observed()
    hook.core.ring.close()
    ring = hook.read()
    off, on = sorted(ring.all("FETCH"), key=lambda r: r.enter)
    assert off.flags & layout.OFF_THREAD and off.thread == seen[0]
    assert not on.flags & layout.OFF_THREAD and on.thread == threading.main_thread().native_id
    assert ring.totals(0)["wait"] == 4


def test_validation_is_told_from_training(hook, monkeypatch):
    grad = [True]
    monkeypatch.setattr(fetch, "is_grad_enabled", lambda: grad[0])
    train = hook.iterator(taking(hook, *[5] * 9), number=0, length=9)
    validate = hook.iterator(taking(hook, *[7] * 3), number=1, length=3)
    train()
    grad[0] = False
    begin = hook.clock.now
    for _ in range(3):
        validate()
    end = hook.clock.now
    grad[0] = True
    train()
    ring = hook.read()
    (mark,) = ring.all("MARK")
    assert (mark.ref, mark.begin, mark.end, mark.value) == (layout.VALIDATION, begin, end, 1)
    assert [r.kind for r in ring.records] == ["FETCH"] * 4 + ["MARK", "FETCH"]
    assert [r.flags & layout.NO_GRAD for r in ring.all("FETCH")] == [0, 128, 128, 128, 0]
    assert ring.totals(1)["no_grad"] == 3 and ring.totals(0)["no_grad"] == 0
    assert (ring.length, ring.batch, ring.step) == (9, 1, 2)  # of the training loader


class Optimizer:
    """Enough of one for the bookkeeping."""


def test_steps_are_those_of_the_first_optimizer(hook):
    gan = [Optimizer(), Optimizer()]
    observed = hook.iterator(taking(hook, *[5 * MS] * 10))
    for _ in range(3):
        observed()
        for one in gan:
            begin = hook.clock.now
            hook.clock.now += 2 * MS
            optimizer.stepped(one, begin)
    ring = hook.read()
    steps = ring.all("STEP")
    assert [(s.ref - steps[0].ref, s.step) for s in steps] == [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)]
    assert all(s.end - s.begin == 2 * MS for s in steps)
    assert [f.step for f in ring.all("FETCH")] == [0, 1, 2]
    assert (ring.unit, ring.step) == (1, 3)


def test_a_second_stage_takes_the_count_over(hook):
    first, second = Optimizer(), Optimizer()
    observed = hook.iterator(taking(hook, *[5 * MS] * 20))
    for stage in (first,) * 3 + (second,) * 5:
        observed()
        optimizer.stepped(stage, hook.clock.now)
    assert hook.read().step >= 6  # one or two are lost to noticing


def test_the_training_thread_is_the_one_that_steps(hook):
    observed = hook.iterator(taking(hook, *[5 * MS] * 4))

    def train():
        observed()
        optimizer.stepped(Optimizer(), hook.clock.now)
        observed()

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    ring = hook.read()
    first, second = ring.all("FETCH")
    assert not (first.flags | second.flags) & layout.OFF_THREAD
    assert first.thread == second.thread and (first.step, second.step) == (0, 1)
    assert (ring.fetches, ring.totals(0)["wait"]) == (2, 10 * MS)


def test_a_thread_that_feeds_another_does_not_train(hook):
    observed = hook.iterator(taking(hook, *[5 * MS] * 4))
    thread = threading.Thread(target=lambda: [observed(), observed()])
    thread.start()
    thread.join()
    assert hook.read().all("FETCH") == []  # it may be the one that trains: nobody knows yet
    optimizer.stepped(Optimizer(), hook.clock.now)
    ring = hook.read()
    assert [r.flags & layout.OFF_THREAD for r in ring.all("FETCH")] == [2, 2] and ring.fetches == 0


def test_a_fetch_within_one_already_counted_stays_out_of_the_sums(hook):
    """Another thread and the main one have pulled on one iterator, and then the other one turns out to train."""
    observed = hook.iterator(taking(hook, *[5 * MS] * 4))

    def train():
        observed()
        done.set()
        go_on.wait()
        optimizer.stepped(Optimizer(), hook.clock.now)

    done, go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=train)
    thread.start()
    done.wait()
    observed()  # on the main thread, taken to train until then
    go_on.set()
    thread.join()
    ring = hook.read()
    assert [r.flags & layout.OFF_THREAD for r in ring.all("FETCH")] == [0, 2]
    assert ring.fetches == 1 and ring.errors == 0


def test_threads_that_no_step_follows_are_written_in_the_end(hook):
    observed = hook.iterator(taking(hook, *[5 * MS] * 400))
    thread = threading.Thread(target=lambda: [observed() for _ in range(300)])
    thread.start()
    thread.join()
    assert len(hook.read().all("FETCH")) == 300  # too many to hold back
    hook.core.ring.close()
    assert all(r.flags & layout.OFF_THREAD for r in hook.read().all("FETCH"))


def test_cpu_is_read_every_ten_milliseconds_at_most(hook):
    observed = hook.iterator(taking(hook, *[3 * MS] * 9))
    hook.cpu.tick = 11
    for _ in range(9):
        observed()
    cpu = [r.cpu for r in hook.read().all("FETCH")]
    assert cpu == [11, None, None, None, 11, None, None, None, 11]


def test_cpu_of_trivial_fetches_is_read_every_fifty_milliseconds(hook):
    observed = hook.iterator(taking(hook, *[50_000] * 2000))
    for _ in range(2000):
        observed()
    assert [r.batch for r in hook.read().all("FETCH") if r.cpu is not None] == [0, 1000]


def test_loader_errors_pass_through(hook):
    def broken(_):
        hook.clock.now += 9
        raise ValueError("bad sample")

    observed = hook.iterator(broken)
    with pytest.raises(ValueError, match="bad sample"):
        observed()
    with pytest.raises(ValueError):
        observed()
    ring = hook.read()
    assert [r.flags & layout.ERROR for r in ring.all("FETCH")] == [64, 64]
    assert ring.totals(0)["fetches"] == 0 and ring.totals(0)["wait"] == 18
    assert hook.core.inside is None and not hook.core.off


def test_interrupts_pass_through(hook):
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hook.iterator(interrupted)()
    assert hook.core.inside is None


def test_the_hook_times_itself(hook):
    observed = hook.iterator(taking(hook, *[10 * MS] * 9))
    observed()
    hook.clock.tick = 1000  # every look at the clock costs a microsecond, and nothing else does
    for _ in range(5):
        observed()
    longs = hook.core.ring.longs
    # looks: began, enter, enter again after the CPU was read | next() | leave, and the end
    assert longs[layout.Q_OWN_FETCHES] == 5 and longs[layout.Q_OWN_NS] == 5 * 3000


@pytest.mark.parametrize("look", [1, 2])
def test_an_interrupt_inside_the_hook_passes_and_leaves_no_trace(hook, look):
    looks = []

    def clock():
        looks.append(0)
        if len(looks) == look:
            raise KeyboardInterrupt
        return hook.clock.now

    observed = hook.iterator(lambda _: "batch")
    observed()
    hook.core.timing = False
    hook.core.clock = clock
    with pytest.raises(KeyboardInterrupt):
        observed()
    assert hook.core.inside is None and not hook.core.off
    assert observed() == "batch"
    assert not hook.read().all("FETCH")[-1].flags & layout.NESTED


def raising(*args, **kwargs):
    raise RuntimeError("injected")


def fail_flush(hook, monkeypatch, track):
    monkeypatch.setattr(type(hook.core.ring), "flush", raising)
    hook.clock.now += 2 * MS


def fail_join(hook, monkeypatch, track):
    track.ring = None
    monkeypatch.setattr(type(track), "join", raising)


def fail_ready(hook, monkeypatch, track):
    track.ready = raising


def fail_index(hook, monkeypatch, track):
    track.index = raising


def fail_grad(hook, monkeypatch, track):
    monkeypatch.setattr(fetch, "is_grad_enabled", raising)


def fail_clock(hook, monkeypatch, track):
    hook.core.clock = raising


def fail_clock_after(hook, monkeypatch, track):
    calls = []

    def clock():
        calls.append(0)
        if len(calls) > 1:
            raising()
        return hook.clock.now

    hook.core.clock = clock


def fail_cpu(hook, monkeypatch, track):
    hook.clock.now += 60 * MS
    hook.core.cpu_clock = raising


def fail_boundary(hook, monkeypatch, track):
    class Test:
        poll = raising

    hook.core.test, hook.core.test_due = Test(), True


PLACES = [
    fail_flush, fail_join, fail_ready, fail_index, fail_grad, fail_clock, fail_clock_after, fail_cpu, fail_boundary
]  # fmt: skip


@pytest.mark.parametrize("inject", PLACES)
def test_an_error_inside_turns_the_hook_off_and_nothing_else(hook, monkeypatch, inject):
    count = []
    observed = hook.iterator(lambda _: count.append(0) or len(count))
    assert observed() == 1
    with monkeypatch.context() as patch:
        inject(hook, patch, observed.track)
        assert [observed() for _ in range(3)] == [2, 3, 4]  # each batch exactly once
    assert hook.core.off
    ring = hook.read()
    assert ring.errors == 1 and ring.hook == 2
    (note,) = ring.note("hook-error")
    assert note["reason"] == stream.IN_FETCH and "injected" in note["error"]
    assert [(mark.ref, mark.value) for mark in ring.all("MARK")] == [(layout.DISABLED, stream.IN_FETCH)]


@pytest.mark.parametrize("inject", PLACES)
def test_the_loader_s_own_end_survives_an_error_inside(hook, monkeypatch, inject):
    observed = hook.iterator(taking(hook, 5))
    observed()
    with monkeypatch.context() as patch:
        inject(hook, patch, observed.track)
        with pytest.raises(StopIteration):
            observed()


def test_a_failing_device_clock_is_dropped_alone(hook):
    class Device:
        def before(self):
            raising()

    observed = hook.iterator(taking(hook, 5, 5))
    observed()
    hook.core.device = Device()
    assert observed() == "batch"
    assert hook.core.device is None and not hook.core.off
    ring = hook.read()
    assert ring.note("hook-error")[0]["reason"] == stream.IN_DEVICE and len(ring.all("FETCH")) == 2


class Timeout(Exception):
    pass


@pytest.mark.parametrize("look", [1, 2])
def test_a_signal_handler_may_raise_inside_the_hook(hook, look):
    """A script's own timeout must end its next(), wherever in it the signal comes."""

    def handler(number, frame):
        raise Timeout

    looks = []

    def clock():
        looks.append(0)
        if len(looks) == look:
            signal.raise_signal(signal.SIGUSR1)
        return hook.clock.now

    observed = hook.iterator(lambda _: "batch")
    observed()
    previous = signal.signal(signal.SIGUSR1, handler)
    hook.core.clock = clock
    try:
        with pytest.raises(Timeout):
            observed()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert not hook.core.off and hook.core.inside is None
    assert observed() == "batch"


def test_a_forked_child_opens_its_own_ring(hook):
    observed = hook.iterator(taking(hook, *[5] * 9))
    observed()
    mine = hook.core.ring.path
    head = hook.core.ring.head
    pid = os.fork()
    if pid == 0:
        try:
            observed()
            hook.core.ring.flush(hook.clock.now)
            os._exit(0 if hook.core.ring.path != mine else 3)
        except BaseException:
            os._exit(4)
    assert os.waitpid(pid, 0)[1] == 0
    import ringreader

    assert hook.core.ring.head == head == ringreader.Ring(mine).head
    (child,) = [ring for ring in ringreader.rings(hook.spool) if ring.path != mine]
    assert child.declaration["pid"] == pid and child.declaration["ppid"] == os.getpid()
    assert len(child.note("loader")) == 1 and child.fetches == 1


def test_threads_that_begin_together_share_one_ring(hook):
    barrier = threading.Barrier(8)

    def run(observed):
        barrier.wait()
        observed()

    threads = [threading.Thread(target=run, args=(hook.iterator(taking(hook, 5), number=n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([name for name in os.listdir(hook.spool) if name.endswith(".dwr")]) == 1
    hook.core.ring.close()
    assert not hook.core.off and len(hook.read().all("FETCH")) == 8


def test_the_permission_to_be_tested_is_for_the_process_and_not_for_its_children(monkeypatch):
    from datawait import stream

    ask = "import sys; sys.path.insert(0, %r); from datawait import stream; print(stream.testable())" % HOOK
    for permission, here, child in (("1", True, "True"), (stream.for_me_alone(), True, "False"), ("0", False, "False")):
        monkeypatch.setenv("DATAWAIT_TEST", permission)
        assert stream.testable() == here
        answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == child


def test_a_forked_child_is_inside_no_step_of_a_thread_that_it_does_not_have(monkeypatch):
    """Names of threads are used again: a new one by that name would have none of its steps seen."""
    here = threading.get_ident()
    monkeypatch.setattr(optimizer, "_stepping", {here, here + 1})
    pid = os.fork()
    if pid == 0:
        os._exit(0 if optimizer._stepping == {here} else 1)
    assert os.waitpid(pid, 0)[1] == 0
