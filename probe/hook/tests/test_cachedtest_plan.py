"""The control page: what the hook makes of it, and what it costs to look."""

from __future__ import annotations

import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import timeit

import pytest
from cachedfakes import HOST, LIVE, MS, NEVER, Job, Page, Source

from datawait import cachedtest, control, layout

VECTORS = pathlib.Path(__file__).parents[2] / "recording" / "testdata" / "vectors.json"


@pytest.fixture(autouse=True)
def unguarded(monkeypatch):
    monkeypatch.setattr(cachedtest.SaveGuard, "arm", lambda self: 1)


def page_of(tmp_path, *args, **kwargs) -> bytes:
    page = Page(str(tmp_path))
    page.write(*args, **kwargs)
    return (tmp_path / "control").read_bytes()


def test_parses_what_the_agent_writes(tmp_path):
    plan = control.parse(page_of(tmp_path, 1, [(LIVE, 64, 104), (HOST, 104, 130, 1)], park=200, cap=12345, agent=77))
    assert plan == control.Plan(1, 77, 12345, 200, ((1, 0, 64, 104, 0, 0), (2, 1, 104, 130, 1, 0)))


def test_reads_the_byte_vector_of_the_specification():
    start = bytes.fromhex(json.loads(VECTORS.read_text())["control_page_start"])
    plan = control.parse(start.ljust(4096, b"\0"))
    assert plan == control.Plan(
        mode=1,
        agent=4321,
        cap=2147483648,
        park=18446744073709551615,
        blocks=(control.PlannedBlock(number=3, leg=1, first=100, end=140, flags=1, arguments=8 | 2 << 16 | 1 << 24),),
    )


@pytest.mark.parametrize(
    "change, why",
    [
        (dict(magic=b"DWCTRL2\n"), "starts with"),
        (dict(mode=3), "mode 3"),
        (dict(blocks=[(0, 40, 40)]), "block 1"),
        (dict(blocks=[(0, 40, 60), (1, 59, 80)]), "block 2"),
        (dict(blocks=[(0, 40, 60), (1, 20, 30)]), "block 2"),
    ],
)
def test_nonsense_is_refused_noted_and_changes_nothing(tmp_path, change, why):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 40)])
    source = Source(job.loader())
    job.train(source, 20)
    job.page.write(**{"mode": 1, **change})
    job.train(source, 30)
    assert [b.void for b in job.ring.blocks()] == [False]
    ((where, text),) = job.errors
    assert where == "control page" and why in text


def test_too_many_blocks(tmp_path):
    page = bytearray(page_of(tmp_path, 1))
    struct.pack_into("<I", page, 16, 127)
    with pytest.raises(control.BadPage):
        control.parse(bytes(page))


def test_garbage_never_raises_and_never_parks(tmp_path):
    job = Job(tmp_path)
    source = Source(job.loader())
    rng = random.Random(0)
    good = page_of(tmp_path, 1, [(LIVE, 10, 40), (HOST, 40, 60)])
    for turn in range(300):
        page = bytearray(good)
        for _ in range(rng.choice((1, 3, 4096))):
            page[rng.randrange(4096)] = rng.randrange(256)
        page[:8] = good[:8] if turn % 2 else page[:8]
        if page[12] == 2:
            page[12] = 1
        struct.pack_into("<Q", page, 32, NEVER)
        job.page.raw(bytes(page))
        assert job.train(source, 2) == 2
    assert {where for where, _ in job.errors} <= {"control page"}


def test_a_page_that_is_being_written_is_read_at_a_later_step(tmp_path):
    job = Job(tmp_path)
    page = bytearray(page_of(tmp_path, 1, [(LIVE, 5, 40)]))
    struct.pack_into("<I", page, 8, 7)
    job.page.raw(bytes(page))
    source = Source(job.loader())
    job.train(source, 10)
    assert job.test.block == 0 and not job.errors
    struct.pack_into("<I", page, 8, 8)
    job.page.raw(bytes(page))
    job.train(source, 40)
    assert [(b.void, b.first) for b in job.ring.blocks()] == [(False, 11)]


def test_the_page_may_come_late_and_is_looked_for_seldom(tmp_path):
    job = Job(tmp_path, compute=1 * MS)
    os.unlink(job.page.path)
    looks = []
    attach = job.test._page._attach
    job.test._page._attach = lambda: looks.append(job.clock.now) or attach()
    source = Source(job.loader(build=0))
    job.train(source, 1000)
    assert len(looks) == 4
    job.page.write(1, [(LIVE, 1500, 1530)])
    job.train(source, 1000)
    assert len(looks) == 5 and [b.void for b in job.ring.blocks()] == [False]


def test_a_short_or_strange_page_is_no_page(tmp_path):
    path = tmp_path / "control"
    for make in (
        lambda: path.write_bytes(b"DWCTRL1\n"),
        lambda: os.mkfifo(path),
        lambda: path.symlink_to(VECTORS),
    ):
        make()
        page = control.ControlPage(str(tmp_path))
        assert not page.look(0) and not page.mapped
        path.unlink()
    path.mkdir()
    assert not control.ControlPage(str(tmp_path)).look(0)


def test_a_page_that_is_there_and_cannot_be_had_is_told(tmp_path):
    job = Job(tmp_path)
    os.unlink(job.page.path)
    source = Source(job.loader())
    job.train(source, 20)
    assert job.errors == []
    os.symlink(job.page.path, job.page.path)
    job.train(source, 20)
    where, error = job.errors[0]
    assert where == "control page" and "Too many levels of symbolic links" in error


def test_observe_ends_a_running_block(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 40), (HOST, 40, 80)])
    source = Source(job.loader())
    job.train(source, 60)
    job.page.write(0)
    assert job.train(source, 20) == 20
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(False, 0), (True, 5)]


# --- parking --------------------------------------------------------------------------------------------------------


class Ended(BaseException):
    """The agent's SIGKILL."""


def park(job, until=3):
    naps = []

    def sleep(seconds):
        naps.append(seconds)
        if len(naps) == until:
            raise Ended

    job.test._parking._sleep = sleep
    return naps


def test_parks_where_the_last_block_ends_and_finishes_it(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 40), (HOST, 40, 60)], park=60)
    naps = park(job)
    source = Source(job.loader())
    with pytest.raises(Ended):
        job.train(source, 100)
    assert len(job.seen) == 60 and len(naps) == 3
    assert [b.void for b in job.ring.blocks()] == [False, False]
    assert job.ring.marks() == [layout.TEST_BEGAN, layout.PARKED]
    assert job.ring.ints[layout.I_PARKED] == 1 and job.ring.longs[layout.Q_BLOCKS] == 2


def test_park_now_abandons_the_block(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 40)])
    park(job)
    source = Source(job.loader())
    job.train(source, 30)
    job.page.write(2)
    with pytest.raises(Ended):
        job.train(source, 1)
    assert [(b.void, b.reason) for b in job.ring.blocks()] == [(True, 5)]
    assert job.ring.ints[layout.I_PARKED] == 1


def test_goes_on_training_when_the_agent_is_gone(tmp_path):
    agent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 40)], park=40, agent=agent.pid)
    naps = []

    def sleep(seconds):
        naps.append(seconds)
        if len(naps) == 3:
            agent.kill()
            agent.wait()

    job.test._parking._sleep = sleep
    source = Source(job.loader())
    assert job.train(source, 100) == 100
    assert len(naps) == 3 and job.ring.ints[layout.I_PARKED] == 0
    assert [where for where, _ in job.errors] == ["parked"]
    assert [batch["index"] for batch in job.seen] == list(range(100))


def test_an_agent_that_cannot_be_seen_is_not_taken_for_dead(tmp_path):
    assert not control.Agent(0).gone()
    assert not control.Agent(2**31 - 1).gone()
    assert not control.Agent(os.getpid()).gone()


def test_a_zombie_is_gone(tmp_path):
    agent = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    seen = control.Agent(agent.pid)
    assert not seen.gone()
    agent.stdin.close()
    os.waitid(os.P_PID, agent.pid, os.WEXITED | os.WNOWAIT)  # it ended, and is still to be reaped
    assert seen.gone()
    agent.wait()


HOLD = """
import fcntl, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


def test_the_lock_on_the_page_tells_whether_an_agent_of_another_pid_namespace_lives(tmp_path):
    job = Job(tmp_path)
    agent = subprocess.Popen([sys.executable, "-c", HOLD, job.page.path], stdout=subprocess.PIPE)
    assert agent.stdout.readline() == b"held\n"
    stranger = os.getpid()  # that number means a living process here, and not the agent
    job.page.write(1, [(LIVE, 10, 40)], park=40, agent=stranger, held=True)
    naps = []

    def sleep(seconds):
        naps.append(seconds)
        if len(naps) == 3:
            agent.kill()
            agent.wait()

    job.test._parking._sleep = sleep
    assert job.train(Source(job.loader()), 100) == 100
    assert len(naps) == 3 and job.ring.ints[layout.I_PARKED] == 0
    assert control.Agent(stranger, job.page.path).gone() and not control.Agent(stranger).gone()
    os.unlink(job.page.path)  # an agent that ended removed its folder
    assert control.Agent(stranger, job.page.path).gone()


def test_a_rank_does_not_wait_for_ever_for_an_agent_that_hangs(tmp_path):
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10, 40)], park=40, agent=os.getpid())
    begin = job.clock.now
    assert job.train(Source(job.loader()), 100) == 100
    assert 600e9 < job.clock.now - begin < 620e9


def test_poll_costs_next_to_nothing_while_idle(tmp_path):
    """A guard against work on the idle path, not a benchmark: the bound is ten times what is measured."""
    job = Job(tmp_path)
    job.page.write(1, [(LIVE, 10**9, 10**9 + 100)])
    job.test.poll(1)
    poll = job.test.poll
    assert min(timeit.repeat(lambda: poll(2), number=1000, repeat=20)) / 1000 < 2e-6
