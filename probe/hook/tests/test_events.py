"""The device clock: exact on the emulated device; on a stand-in for torch.cuda, what it must never do."""

from __future__ import annotations

import types
from typing import Any, NamedTuple

import pytest

from datawait import emulated, events, fetch, layout, stream

MS = 1_000_000


@pytest.fixture
def gpu(hook, monkeypatch):
    monkeypatch.setenv("DATAWAIT_GPU", "emulated")
    events.in_forked_child()
    gpu = emulated.Gpu(index=2, clock=hook.clock, sleep=hook.clock.sleep, log_folder=hook.spool)
    events.attach(None)
    yield gpu
    events.in_forked_child()


def test_idle_is_what_the_device_had_nothing_to_run(hook, gpu):
    def call(_):
        hook.clock.now += 10 * MS

    observed = hook.iterator(call)
    waits = []
    for queued in (0.002, 0.004, 0.030, 0.005, 0, 0.001, 0, 0, 0, 0, 0, 0, 0):
        observed()
        gpu.launch(queued)
        waits.append(queued)
    exposed = hook.read().all("EXPOSED")
    assert [e.idle for e in exposed[:5]] == [10 * MS, 8 * MS, 6 * MS, 0, 0]
    #  30 ms queued before the 4th fetch: 10 pass in it, 20 are left and 5 come on top for the 5th
    assert [e.span for e in exposed[:4]] == [None, 2 * MS, 4 * MS, 30 * MS]
    fetches = hook.read().all("FETCH")
    assert [e.fetch for e in exposed] == [f.number for f in fetches[: len(exposed)]]
    assert all(e.ref == 2 and e.flags == layout.EMULATED and e.loader == 0 for e in exposed)


def test_events_are_read_eight_fetches_later(hook, gpu):
    observed = hook.iterator(lambda _: None)
    for _ in range(events.LAG):
        observed()
    assert hook.read().all("EXPOSED") == []
    observed()
    assert len(hook.read().all("EXPOSED")) == 1


def test_an_exposure_is_of_its_fetch_whatever_is_written_between(hook, gpu, monkeypatch):
    """A validation loop becomes a MARK before the next training fetch, and is written with it, a while later."""
    grad = [True]
    monkeypatch.setattr(fetch, "is_grad_enabled", lambda: grad[0])
    observed = hook.iterator(lambda _: None)
    for number in range(60):
        grad[0] = number % 7 < 4
        observed()
        gpu.launch(0.001 * (number + 1))
        if number % 5 == 0:
            gpu.synchronize()
        if number % 3 == 0:
            hook.core.ring.mark(layout.SAVE, 1, 2)
    gpu.synchronize()
    hook.core.device.read_all(hook.core.ring)
    written = hook.read()
    assert [e.fetch for e in written.all("EXPOSED")] == [f.number for f in written.all("FETCH")]


def test_all_events_are_read_once_the_device_was_synchronised(hook, gpu):
    observed = hook.iterator(lambda _: None)
    for _ in range(events.LAG - 3):
        observed()
        gpu.launch(0.001)
    gpu.synchronize()
    hook.core.device.read_all(hook.core.ring)
    assert len(hook.read().all("EXPOSED")) == events.LAG - 3
    observed()
    hook.core.device.read_all(hook.core.ring)
    assert len(hook.read().all("EXPOSED")) == events.LAG - 2


def test_a_device_far_behind_is_not_waited_for(hook, gpu):
    observed = hook.iterator(lambda _: None)
    gpu.launch(60)
    for _ in range(3 * events.LAG):
        observed()
    assert hook.read().all("EXPOSED") == []


def test_device_is_announced(hook, gpu):
    hook.iterator(lambda _: None)()
    events.in_forked_child()
    hook.core.device = None
    events.attach(None)
    (note,) = hook.read().note("device")
    assert note["gpu_uuid"] == gpu.uuid and note["emulated"] and note["index"] == 2


class CudaEvent:
    made = 0

    def __init__(self, cuda):
        self.cuda = cuda
        CudaEvent.made += 1

    def record(self, stream):
        assert not self.cuda.capturing and not self.cuda.captured_elsewhere
        self.t = self.cuda.clock.now
        self.stream = stream

    def query(self):
        assert not self.cuda.capturing and not self.cuda.captured_elsewhere
        self.cuda.clock.now += self.cuda.lock
        return True

    def elapsed_time(self, other):
        return (other.t - self.t) / 1e6


class Cuda:
    """torch.cuda as far as the clock may touch it; everything else is an AttributeError."""

    def __init__(self, clock):
        self.clock = clock
        self.initialized = True
        self.capturing = False  # on the stream of the thread that trains
        self.captured_elsewhere = False  # by another thread
        self.bad_fork = False
        self.stream = "default"
        self.lock = 0  # ns that a query waits

        class CUDAGraph:
            def capture_begin(graph, **arguments):
                self.captured_elsewhere = True

            def capture_end(graph):
                self.captured_elsewhere = False

            def replay(graph):
                return "replayed"

        self.CUDAGraph = CUDAGraph

    def is_initialized(self):
        return self.initialized

    def _is_in_bad_fork(self):
        return self.bad_fork

    def is_current_stream_capturing(self):
        return self.capturing

    def current_device(self):
        return 0

    def current_stream(self, device):
        assert self.initialized, "would initialise CUDA"
        return self.stream

    def get_device_properties(self, index):
        return types.SimpleNamespace(name="Fake", uuid="1-2-3")

    def Event(self, enable_timing):
        return CudaEvent(self)


class Device(NamedTuple):
    type: str
    index: Any


def optimizer(*devices):
    parameters = [types.SimpleNamespace(device=Device(*device)) for device in devices]
    return types.SimpleNamespace(param_groups=[{"params": parameters}])


@pytest.fixture
def cuda(hook, monkeypatch):
    import sys

    monkeypatch.delenv("DATAWAIT_GPU", raising=False)
    cuda = Cuda(hook.clock)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda, __version__="fake"))
    events.in_forked_child()
    yield cuda
    events.in_forked_child()


def test_cuda_is_never_initialised(hook, cuda):
    cuda.initialized = False
    events.attach(optimizer(("cpu", None)))
    assert hook.core.device is None
    cuda.initialized, cuda.bad_fork = True, True
    events.attach(optimizer(("cuda", 0)))
    assert hook.core.device is None


def test_parameters_on_several_devices_have_no_clock(hook, cuda):
    hook.iterator(lambda _: None)()
    events.attach(optimizer(("cuda", 0), ("cuda", 1)))
    assert hook.core.device is None
    assert hook.read().errors == 0


def test_parameters_on_the_host_have_no_clock(hook, cuda):
    events.attach(optimizer(("cpu", None)))
    assert hook.core.device is None


def test_cuda_events_are_pooled_and_their_times_written(hook, cuda):
    CudaEvent.made = 0

    def call(_):
        hook.clock.now += 3 * MS

    observed = hook.iterator(call)
    observed()
    events.attach(optimizer(("cuda", 1), ("cuda", 1)))
    for _ in range(100):
        observed()
        hook.clock.now += 2 * MS
    assert CudaEvent.made <= 2 * events.LAG + 4
    ring = hook.read()
    exposed = ring.all("EXPOSED")
    assert len(exposed) == 100 - events.LAG
    assert {e.idle for e in exposed} == {3 * MS} and {e.span for e in exposed[1:]} == {2 * MS}
    assert {e.ref for e in exposed} == {1} and {e.flags for e in exposed} == {0}
    assert ring.note("device")[0]["gpu_uuid"] == "GPU-1-2-3"
    (mark,) = ring.all("MARK")
    assert mark.ref == layout.CUDA_SEEN


def test_nothing_is_recorded_or_asked_while_a_graph_is_captured(hook, cuda):
    observed = hook.iterator(lambda _: None)
    events.attach(optimizer(("cuda", 1), ("cuda", 1)))
    for _ in range(20):
        observed()
    cuda.capturing = True
    for _ in range(20):
        observed()
    cuda.capturing = False
    for _ in range(20):
        observed()
    assert hook.core.device is not None and not hook.core.off
    assert hook.read().errors == 0


def test_an_attaching_error_is_noted_and_not_repeated(hook, cuda):
    hook.iterator(lambda _: None)()
    events.attach(types.SimpleNamespace())
    events.attach(types.SimpleNamespace())
    (note,) = hook.read().note("hook-error")
    assert note["reason"] == stream.IN_DEVICE and not hook.core.off


def clocked(hook, cuda, fetches=20):
    """A training of some steps on one GPU, its fetches of 3 ms each; returns one step of it."""
    opt = optimizer(("cuda", 1))

    def call(_):
        hook.clock.now += 3 * MS

    observed = hook.iterator(call)

    def step(on=None):
        observed()
        hook.clock.now += 2 * MS
        usual, cuda.stream = cuda.stream, on or cuda.stream
        if hook.core.device is None:
            events.attach(opt)
        else:
            events.launched()
        cuda.stream = usual

    for _ in range(fetches):
        step()
    return step


def seen(hook):
    return len(hook.read().all("EXPOSED"))


def test_a_clock_appears_once_cuda_is_in_use(hook, cuda):
    cuda.initialized = False
    step = clocked(hook, cuda)
    assert seen(hook) == 0
    cuda.initialized = True
    for _ in range(300):
        step()
    assert seen(hook) > 0


def test_a_forked_child_has_no_clock_and_asks_no_event_of_its_parent(hook, cuda):
    clocked(hook, cuda)
    cuda.bad_fork = True
    cuda.lock = 10**15  # a query would be seen
    stream._in_forked_child()
    events.in_forked_child()
    assert hook.core.device is None
    events.attach(optimizer(("cuda", 1)))
    assert hook.core.device is None and hook.clock.now < 10**15


def test_no_event_is_touched_while_another_thread_captures(hook, cuda):
    step = clocked(hook, cuda)
    before = seen(hook)
    graph = cuda.CUDAGraph()
    graph.capture_begin(capture_error_mode="global")
    for _ in range(20):
        step()
    assert seen(hook) == before
    graph.capture_end()
    for _ in range(20):
        step()
    assert seen(hook) > before and hook.read().errors == 0


def test_a_capture_that_fails_to_begin_is_none(hook, cuda):
    def refuse(graph):
        raise RuntimeError("no")

    cuda.CUDAGraph.capture_begin = refuse
    step = clocked(hook, cuda)
    before = seen(hook)
    with pytest.raises(RuntimeError, match="no"):
        cuda.CUDAGraph().capture_begin()
    for _ in range(20):
        step()
    assert seen(hook) > before


def test_fetches_beside_the_compute_stream_have_no_exposure(hook, cuda):
    """What a stream has to run on which nothing is computed says nothing of the training."""
    step = clocked(hook, cuda)
    before = seen(hook)
    for _ in range(events.LAG + 20):
        step(on="side")  # the steps run there, the fetches are made beside
    assert seen(hook) <= before + 1  # the fetch before the first of them was still right
    for _ in range(events.LAG + 20):
        step()
    assert seen(hook) > before + 5


def test_a_training_on_a_side_stream_has_exposure(hook, cuda):
    cuda.stream = "side"
    clocked(hook, cuda, fetches=40)
    assert seen(hook) >= 40 - events.LAG - 2


def test_a_replayed_graph_says_where_the_training_computes(hook, cuda):
    """A warm-up on a side stream, then a graph that holds the whole step: no optimizer steps any more."""
    opt = optimizer(("cuda", 1))
    observed = hook.iterator(lambda _: None)
    observed()
    cuda.stream = "side"
    events.attach(opt)
    cuda.stream = "default"
    graph = cuda.CUDAGraph()
    for _ in range(events.LAG + 5):
        observed()
        assert graph.replay() == "replayed"
    assert seen(hook) >= 3


def test_a_clock_whose_queries_wait_is_given_up(hook, cuda):
    step = clocked(hook, cuda)
    cuda.lock = 5 * MS
    for _ in range(30):
        step()
    assert hook.core.device is None and not hook.core.off
    (note,) = hook.read().note("hook-error")
    assert note["reason"] == stream.IN_DEVICE and "5.0 ms" in note["error"]


def test_one_slow_query_is_no_reason_to_give_up(hook, cuda):
    step = clocked(hook, cuda)
    for i in range(40):
        cuda.lock = 5 * MS if i % 3 == 0 else 0
        step()
    assert hook.core.device is not None and hook.read().errors == 0
