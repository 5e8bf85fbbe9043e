"""Stacks: how they are folded and named, what the tables hold, and that looking leaves a process as it was."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import types

import pytest

from datawait import calls, layout, stacks, transforms
from datawait.calls import Calls
from datawait.stream import ring_for


def frame(*functions, module="pets.data", file="/srv/pets/data.py"):
    """A stack like the interpreter's: the leaf's frame, each in its caller's, functions given from the root."""
    found = None
    for name in functions:
        code = compile("0", file, "exec").replace(co_name=name)
        if hasattr(code, "co_qualname"):
            code = code.replace(co_qualname=name)
        found = types.SimpleNamespace(f_code=code, f_back=found, f_globals={"__name__": module})
    return found


def sampled(folded, *functions, runs=True, ns=10):
    folded.add(0, folded.path(frame(*functions)), runs, ns)


def folded_paths(folded):
    """Path of each call that was found on top -> [ns running, waiting, unclear, samples]."""
    names = {number: name.partition(":")[2] for name, number in folded.functions.items()}
    pairs = {number: pair for pair, number in folded.calls.items()}

    def path(call):
        return path(pairs[call][0]) + [names[pairs[call][1]]] if call else []

    return {" ".join(path(call)): sums for (_, call), sums in folded.counts.items()}


def ring_of(hook):
    return ring_for("main")


def test_samples_add_up_by_what_called_what():
    folded = Calls()
    sampled(folded, "fetch", "getitem", "read", runs=False, ns=5)
    sampled(folded, "fetch", "getitem", "read", runs=True, ns=7)
    sampled(folded, "fetch", "getitem", runs=None, ns=1)
    assert folded_paths(folded) == {"fetch getitem read": [7, 5, 0, 2], "fetch getitem": [0, 0, 1, 1]}


def test_recursion_is_folded():
    folded = Calls()
    sampled(folded, "fetch", *["walk"] * 900, "stat")
    sampled(folded, "fetch", *["even", "odd"] * 50, "leaf")
    assert set(folded_paths(folded)) == {"fetch walk stat", "fetch even odd leaf"}


def test_what_is_above_the_loop_is_left_out():
    folded = Calls()
    sampled(folded, "run", "_bootstrap", "_worker_loop", "fetch")
    assert set(folded_paths(folded)) == {"fetch"}


def test_ten_thousand_functions_find_a_bounded_table_and_are_counted():
    folded = Calls()
    for number in range(10_000):
        sampled(folded, "fetch", "function_%d" % number)
    assert len(folded.calls) <= calls.MOST_CALLS and len(folded.codes) <= calls.MOST_CODES
    assert sum(map(len, folded.functions)) <= calls.MOST_NAME_BYTES
    sums = folded_paths(folded)
    assert sum(samples for *_, samples in sums.values()) == 10_000
    assert sums["fetch"][3] == folded.outside > 9_000  # for their caller


def test_the_names_of_ten_thousand_functions_fit_into_the_ring(hook):
    folded = Calls()
    for number in range(10_000):
        sampled(folded, "fetch", ("a_rather_long_name_" * 9) + str(number))
        if number % 100 == 0:
            folded.tell(ring_of(hook))
    folded.tell(ring_of(hook))
    assert ring_of(hook).longs[layout.Q_NOTES_LOST] == 0
    ring = hook.read()
    told = [name for note in ring.note("functions") for name in note["names"]]
    assert told == list(folded.functions)
    assert [tuple(pair) for note in ring.note("calls") for pair in note["calls"]] == list(folded.calls)


def test_the_same_name_made_again_and_again_is_one_function():
    folded = Calls()
    for _ in range(calls.MOST_CODES * 2):
        sampled(folded, "fetch", "lambda")
    assert sorted(folded.functions) == ["pets/data.py:fetch", "pets/data.py:lambda"]


@pytest.mark.parametrize("seed", range(20))
def test_a_path_that_is_remembered_leads_where_it_led(monkeypatch, seed):
    """The tables fill up on the way, and one of the two follows every path anew."""
    import random

    draw = random.Random(seed)
    monkeypatch.setattr(calls, "MOST_CALLS", 12)
    monkeypatch.setattr(calls, "MOST_NAME_BYTES", 150)  # of eight functions of these
    paths = [["fetch"] + draw.choices("abcdefghi", k=draw.randrange(6)) for _ in range(30)]
    remembers, follows = Calls(), Calls()
    for _ in range(300):
        functions, runs, ns = draw.choice(paths), draw.choice([True, False, None]), draw.randrange(100)
        for folded in (remembers, follows):
            sampled(folded, *functions, runs=runs, ns=ns)
        follows.ends.clear()
        if draw.random() < 0.01:
            remembers.full = follows.full = True
    assert len(remembers.ends) > 10 and remembers.outside == follows.outside > 0
    assert remembers.counts == follows.counts and remembers.calls == follows.calls


def test_only_so_many_paths_are_remembered(monkeypatch):
    monkeypatch.setattr(calls, "MOST_PATHS", 3)
    folded = Calls()
    for name in "abcdefabcdef":
        sampled(folded, "fetch", name)
    assert len(folded.ends) == 3
    assert folded_paths(folded) == {"fetch " + name: [20, 0, 0, 2] for name in "abcdef"}


def test_long_paths_are_not_remembered():
    folded = Calls()
    for more in range(40, 80):
        sampled(folded, "fetch", *["even", "odd"] * more, "leaf")
    sampled(folded, "fetch", "leaf")
    assert [len(way) for way in folded.ends] == [2]
    assert folded_paths(folded) == {"fetch even odd leaf": [400, 0, 0, 40], "fetch leaf": [10, 0, 0, 1]}


@pytest.mark.parametrize(
    "module, file, name",
    [
        ("__main__", "/home/me/train.py", "train.py:f"),
        ("pets.data", "/srv/pets/data.py", "pets/data.py:f"),
        ("pets", "/srv/pets/__init__.py", "pets/__init__.py:f"),
        ("pets.data", "/srv/generated/frozen.py", "pets/frozen.py:f"),
        (None, "<string>", "<string>:f"),
    ],
)
def test_a_function_is_named_by_its_module(module, file, name):
    folded = Calls()
    folded.path(frame("f", module=module, file=file))
    assert list(folded.functions) == [name]


def test_a_method_is_known_by_its_class_without_qualified_names():
    """Python 3.10 and older; a module of that name is looked up."""
    code = calls.Calls.add.__code__
    assert calls._of_a_class("datawait.calls", code) == "Calls.add"
    assert calls._of_a_class("datawait.calls", calls._name.__code__) is None
    assert calls._of_a_class("no.such.module", code) is None


def test_the_switch_interval_is_put_back():
    usual = sys.getswitchinterval()
    stacks.shorten()
    assert sys.getswitchinterval() == pytest.approx(stacks.BRIEF)
    stacks.restore()
    assert sys.getswitchinterval() == usual


def test_a_switch_interval_that_the_script_sets_meanwhile_stays():
    usual = sys.getswitchinterval()
    try:
        stacks.shorten()
        sys.setswitchinterval(0.002)
        stacks.restore()
        assert sys.getswitchinterval() == pytest.approx(0.002)
        sys.setswitchinterval(stacks.BRIEF / 2)  # shorter than ours: left alone
        stacks.shorten()
        assert sys.getswitchinterval() == pytest.approx(stacks.BRIEF / 2)
        stacks.restore()
        assert sys.getswitchinterval() == pytest.approx(stacks.BRIEF / 2)
    finally:
        sys.setswitchinterval(usual)


def test_a_thread_that_waits_is_told_from_one_that_runs():
    told, end = [], threading.Event()

    def wait():
        told.append(stacks.State(threading.get_native_id()))
        end.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    patience = time.monotonic() + 30
    while not told or told[0].read():
        assert time.monotonic() < patience
        time.sleep(0.001)
    assert told[0].read() is False
    end.set()
    thread.join()
    while told[0].read() is not None:  # until the kernel has done with it
        assert time.monotonic() < patience
        time.sleep(0.001)
    assert stacks.State(threading.get_native_id()).read() is True


def test_a_descriptor_that_is_the_scripts_by_now_tells_nothing(tmp_path):
    state = stacks.State(threading.get_native_id())
    other = tmp_path / "other"
    other.write_bytes(b"1 (python3) R 1")
    with open(other, "rb") as file:
        state.fd = file.fileno()
        assert state.read() is None and state.fd is None


@pytest.mark.parametrize(
    "text, runs",
    [
        ("%d (python3) R 1 1", True),
        ("%d (a) S (b) R) D 1 1", False),
        ("%d (a) R) S 1 1", False),
        ("%d (fifteen letters) R 1 1", True),
        ("%d (python3) ", None),
        ("%d (python3", None),
        ("", None),
        ("1%d (python3) R 1 1", None),
    ],
)
def test_the_state_comes_after_the_name_whatever_the_name_is(tmp_path, text, runs):
    state = stacks.State(threading.get_native_id())
    stat = tmp_path / "stat"
    stat.write_text(text % threading.get_native_id() if text else "")
    with open(stat, "rb") as file:
        os.close(state.fd)
        state.fd = file.fileno()
        assert state.read() is runs


def test_looks_are_jittered_by_numbers_of_their_own(hook):
    import random

    random.seed(3)
    before = random.getstate()
    sampler = stacks.Sampler(ring_of(hook), lambda: None)
    pauses = [sampler.pause() for _ in range(2000)]
    assert random.getstate() == before
    assert min(pauses) >= stacks.PERIOD // 2 and max(pauses) <= stacks.PERIOD * 3 // 2
    assert sum(pauses) / len(pauses) == pytest.approx(stacks.PERIOD, rel=0.05)
    assert len(set(pauses)) > 1900


def test_dear_looks_are_fewer_and_each_stands_for_more(hook):
    sampler = stacks.Sampler(ring_of(hook), lambda: None)
    sampler.looks = 20
    sampler.pace(20 * 100_000)  # a tenth of a millisecond each
    assert sampler.period == stacks.PERIOD
    sampler.looks = 40
    sampler.pace(20 * 100_000 + 20 * 1_000_000)
    assert sampler.period == 1_000_000 * stacks.SHARE
    sampler.looks = 60
    sampler.pace(20 * 100_000 + 20 * 1_000_000 + 20 * 1000)
    assert sampler.period == stacks.PERIOD


def test_what_a_look_takes_is_thought_over_before_the_first_sums_are_written(hook):
    sampler = stacks.Sampler(ring_of(hook), lambda: None)
    sampler.cost = lambda: sampler.looks * 1_000_000
    for looks in range(stacks.ENOUGH + 1):
        assert sampler.period == stacks.PERIOD
        sampler.looks = looks
        sampler.write_when_due()
    assert sampler.period == 1_000_000 * stacks.SHARE and not hook.read().all("SAMPLER")
    sampler.cost = lambda: 0
    sampler.looks += 1
    sampler.write_when_due()  # not again before they are
    assert sampler.period == 1_000_000 * stacks.SHARE
    hook.clock.now += stacks.SECOND
    sampler.write_when_due()
    assert sampler.period == stacks.PERIOD and hook.read().all("SAMPLER")


LOOKED_WITH = [(Calls, "path"), (Calls, "add"), (Calls, "_follow"), (Calls, "changed"), (Calls, "tell"),
               (Calls, "_meet"), (Calls, "_number"), (calls, "_name"), (calls, "_is_loop"), (stacks.State, "read"),
               (stacks.Sampler, "pause"), (stacks.Sampler, "sleep"), (stacks.Sampler, "look"), (stacks.Sampler, "pace"),
               (stacks.Sampler, "write_when_due"), (stacks.Sampler, "write"), (stacks, "shorten"), (stacks, "restore"),
               (transforms.Timings, "patch"), (transforms.Timings, "write")]  # fmt: skip


@pytest.fixture
def brisk(hook, monkeypatch):
    """A sampler of this thread, on the real clock, that looks and writes all the time."""
    hook.core.clock = time.perf_counter_ns
    monkeypatch.setattr(stacks, "PERIOD", 2_000_000)
    monkeypatch.setattr(stacks, "AHEAD", 500_000)
    sampler = stacks.Sampler(ring_of(hook), lambda: layout.UNKNOWN16)
    sampler.written = 0  # due
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield sampler
    sampler.stop()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # where it ran in this thread, it takes no signals by now


@pytest.mark.parametrize("owner, name", LOOKED_WITH)
def test_whatever_fails_in_a_look_only_the_sampling_ends_and_the_ring_tells(hook, brisk, monkeypatch, owner, name):
    usual = sys.getswitchinterval()
    original = getattr(owner, name)

    def fail(*args):
        if owner is stacks and name == "restore":
            original()
        raise RuntimeError("injected")

    monkeypatch.setattr(owner, name, fail)
    brisk.run()  # as its thread does; ends by itself
    assert sys.getswitchinterval() == usual and not hook.core.off
    (note,) = hook.read().note("hook-error")
    assert note["reason"] == 10 and "injected" in note["error"]
    brisk.stop()  # and the end of the process finds nothing to do
    assert not hook.core.off


def test_a_sampler_ends_when_it_is_told_to(hook, brisk):
    brisk.start()
    patience = time.monotonic() + 30
    while brisk.samples < 3 and time.monotonic() < patience:
        sum(range(10_000))
    before = time.monotonic()
    brisk.stop()
    assert brisk.samples >= 3 and time.monotonic() - before < 5
    ring = hook.read()
    last = ring.all("SAMPLER")[-1]
    assert last["samples"] == brisk.samples <= last["looks"]
    newest = {record["call"]: record["samples"] for record in ring.all("STACK")}
    assert sum(newest.values()) == brisk.samples
    assert not ring.note("hook-error")


def test_a_process_that_ends_while_the_sampler_writes_does_not_wait_for_it(hook, brisk):
    brisk.writes.acquire()
    before = time.monotonic()
    brisk.stop()
    assert time.monotonic() - before < 5
    brisk.writes.release()


@pytest.mark.parametrize("name", ["took", "timed"])
def test_a_transform_that_cannot_be_timed_runs_all_the_same(hook, compose, monkeypatch, name):
    def fail(*args):
        raise RuntimeError("injected")

    ring_of(hook)
    monkeypatch.setattr(transforms.Timings, name, fail)
    assert compose([Add(hook.clock, 2)])(1) == 3
    (note,) = hook.read().note("hook-error")
    assert note["where"] == "timing transforms" and not transforms.timings.on and not hook.core.off


def test_a_late_look_stands_for_those_that_fell_due_meanwhile(hook, monkeypatch):
    sampler = stacks.Sampler(ring_of(hook), lambda: None)
    monkeypatch.setattr(stacks.Sampler, "pause", lambda self: 50_000_000)
    sampler.due = hook.clock.now
    assert sampler.catch_up() == stacks.PERIOD and sampler.due == hook.clock.now + 50_000_000
    hook.clock.now += 270_000_000  # four more were due
    assert sampler.catch_up() == 5 * stacks.PERIOD and sampler.due == hook.clock.now + 30_000_000
    hook.clock.now += 3600 * stacks.SECOND  # the process was stopped
    assert sampler.catch_up() == stacks.PERIOD and sampler.due == hook.clock.now + 50_000_000


def test_a_look_whose_lock_came_too_late_is_planned_anew(hook, monkeypatch):
    slept = []
    sampler = stacks.Sampler(ring_of(hook), lambda: None)
    monkeypatch.setattr(stacks.Sampler, "sleep", lambda self, until: slept.append(until))
    sampler.due = hook.clock.now + 1
    sampler.look()
    assert slept == [hook.clock.now + 1]
    sampler.due = hook.clock.now - 1
    sampler.look()
    assert slept[1] >= hook.clock.now + stacks.PERIOD // 2


def test_sampling_is_for_workers_unless_more_is_asked_for(monkeypatch):
    said = {}
    for value in (None, "off", "all"):
        monkeypatch.delenv("DATAWAIT_STACKS", raising=False)
        if value is not None:
            monkeypatch.setenv("DATAWAIT_STACKS", value)
        said[value] = stacks.wanted("worker"), stacks.wanted("main")
    assert said == {None: (True, False), "off": (False, False), "all": (True, True)}


class Compose:
    """torchvision's, in all that matters."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for t in self.transforms:
            img = t(img)
        return img


class Add:
    def __init__(self, clock, ms):
        self.clock, self.ms = clock, ms

    def __call__(self, x):
        self.clock.now += self.ms * 1_000_000
        return x + self.ms


@pytest.fixture
def compose(hook, monkeypatch):
    """A module like torchvision's, patched for this test."""
    module = types.ModuleType("torchvision.transforms.transforms")
    module.Compose = type("Compose", (Compose,), {"__call__": Compose.__call__})
    module.Compose.__module__ = module.__name__
    for name in ("torchvision", "torchvision.transforms"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(transforms, "timings", transforms.Timings())
    transforms.timings.begin(lambda: layout.UNKNOWN16)
    yield module.Compose


def test_each_transform_of_a_list_is_timed_and_results_stay(hook, compose):
    pipeline = compose([Add(hook.clock, 2), compose([Add(hook.clock, 3), Add(hook.clock, 4)])])
    assert pipeline(1) == 10 and pipeline(2) == 11
    assert type(pipeline.transforms) is list
    sums = {name.rpartition(":")[2]: (calls, ns) for (_, name), (_, calls, ns) in transforms.timings.sums.items()}
    assert sums == {"Add": (2, 4_000_000), "Compose": (2, 14_000_000)}  # what is inside another is part of it
    transforms.timings.write(ring_of(hook), hook.clock.now)
    ring = hook.read()
    assert [t["transform"] for t in ring.all("TRANSFORM")] == [0, 1]
    assert [name.rpartition(":")[2] for name in ring.note("transforms")[0]["names"]] == ["Add", "Compose"]


def test_a_transform_that_raises_is_passed_on_and_the_next_is_timed(hook, compose):
    def fail(x):
        raise ValueError("bad sample")

    with pytest.raises(ValueError, match="bad sample"):
        compose([fail])(1)
    assert compose([Add(hook.clock, 1)])(1) == 2
    assert [sums[1:] for sums in transforms.timings.sums.values()] == [[1, 1_000_000]]


def test_a_compose_of_the_scripts_own_is_left_alone(hook, compose):
    class Own(compose):
        def __call__(self, img):
            assert type(self) is Own and type(self.transforms) is list
            return super().__call__(img)

    assert Own([Add(hook.clock, 1)])(1) == 2
    assert not transforms.timings.sums


def test_a_compose_that_uses_more_than_its_list_is_left_alone():
    class Named:
        def __call__(self, img):
            return [(self.name, t(img)) for t in self.transforms]

    assert transforms._timed_list(Named, Named.__call__) is None


def test_a_compose_pickles_as_ever(hook, compose):
    pipeline = compose([len])
    pickled = pickle.dumps(pipeline)
    assert compose.__call__.__wrapped__ is Compose.__call__  # patched now
    compose.__call__ = Compose.__call__
    assert pickle.dumps(pipeline) == pickled and pickle.loads(pickled).transforms == [len]
