"""A signal handler of the script comes between any two lines of the hook, also while it writes, and may fetch."""

from __future__ import annotations

import signal
import threading

import pytest

from datawait import layout, ring


@pytest.fixture
def in_flush(monkeypatch):
    """Lets a handler run, as a signal would, while the ring packs the first record of a row."""
    previous = signal.getsignal(signal.SIGUSR1)
    pack = layout.pack_plain

    def arrange(handler):
        due = [True]
        signal.signal(signal.SIGUSR1, handler)

        def pack_plain(*fields):
            if due:
                due.clear()
                signal.raise_signal(signal.SIGUSR1)
            return pack(*fields)

        monkeypatch.setattr(layout, "pack_plain", pack_plain)

    yield arrange
    signal.signal(signal.SIGUSR1, previous)


def looping(hook, nanoseconds):
    def call(_):
        hook.clock.now += nanoseconds
        return "batch"

    return hook.iterator(call)


def test_what_a_handler_fetches_and_saves_while_records_are_written_comes_after_them(hook, in_flush):
    observed = looping(hook, 1000)
    for _ in range(10):
        observed()

    def handler(number, frame):
        for _ in range(100):
            observed()
        hook.core.ring.mark(layout.SAVE, 1, 2)

    in_flush(handler)
    for _ in range(100):
        observed()
    assert not hook.core.off
    recorded = hook.read()
    assert [record["batch"] for record in recorded.all("FETCH")] == list(range(210))
    enters = [record["enter"] for record in recorded.all("FETCH")]
    assert enters == sorted(enters)
    assert len(recorded.all("MARK")) == 1
    assert recorded.head == 211 == len(recorded.records)
    assert recorded.totals(0)["fetches"] == 210
    assert recorded.totals(0)["wait"] == 210 * 1000


def test_an_exception_of_a_handler_while_records_are_written_leaves_the_ring_usable(hook, in_flush):
    observed = looping(hook, 1000)
    observed()
    observed()

    def handler(number, frame):
        raise TimeoutError

    in_flush(handler)
    with pytest.raises(TimeoutError):
        for _ in range(100):
            observed()
    assert not hook.core.ring.writing
    before = hook.read().head
    for _ in range(200):
        observed()
    recorded = hook.read()
    assert recorded.head == before + 200 and len(recorded.records) == recorded.head


@pytest.mark.parametrize("within", ["totals_of", "note"])
def test_an_exception_of_a_handler_while_a_loader_is_announced_leaves_it_to_be_announced(hook, monkeypatch, within):
    inner = getattr(ring.Ring, within)
    looping(hook, 1000)()  # opens the ring

    def raises_once(*args, **kwargs):
        monkeypatch.setattr(ring.Ring, within, inner)
        signal.raise_signal(signal.SIGUSR1)

    def handler(number, frame):
        raise TimeoutError

    observed = hook.iterator(lambda _: "batch", number=1)
    monkeypatch.setattr(ring.Ring, within, raises_once)
    previous = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(TimeoutError):
            observed()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert [observed() for _ in range(3)] == ["batch"] * 3
    assert not hook.core.off
    recorded = hook.read()
    assert recorded.totals(1)["fetches"] == 3
    assert [note["loader"] for note in recorded.note("loader")] == [0, 1]


def test_a_handler_that_never_returns_does_not_fill_the_memory(hook, monkeypatch, in_flush):
    monkeypatch.setattr(ring, "MOST_WAITING", 500)
    observed = looping(hook, 1000)
    observed()

    def handler(number, frame):
        for _ in range(2000):
            assert observed() == "batch"
        assert hook.core.off and len(hook.core.ring.pending) < 600

    in_flush(handler)
    for _ in range(100):
        assert observed() == "batch"
    assert hook.core.off


def test_a_fetch_during_which_another_thread_became_the_one_that_trains_has_no_cpu_of_that_thread(hook):
    begun, stepped = threading.Event(), threading.Event()

    def build(_):
        begun.set()
        stepped.wait(10)
        return "batch"

    def other():
        begun.wait(10)
        hook.core.training = threading.get_ident()
        hook.core.thread = threading.get_native_id()
        hook.core.meter = None
        fetches = hook.iterator(lambda _: "batch", number=1, builds=True)
        hook.core.measure_at = 0
        hook.core.inside = None
        fetches()
        stepped.set()

    observed = hook.iterator(build, builds=True)
    thread = threading.Thread(target=other)
    thread.start()
    assert observed() == "batch"
    thread.join()
    assert not hook.core.off
    recorded = hook.read()
    mine = [record for record in recorded.all("FETCH") if record["ref"] == 0]
    assert len(mine) == 1 and mine[0]["cpu"] is None
    assert [record["ref"] for record in recorded.all("COST")] == [1]
