"""The emulated device to the nanosecond, on a clock that the test moves, and its busy log against the vectors."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time

import pytest
from conftest import HOOK, Clock

from datawait import emulated

MS = 1_000_000


def make(clock, folder=None, **options):
    return emulated.Gpu(clock=clock, sleep=clock.sleep, log_folder=folder, **options)


def entries(path):
    with open(path, "rb") as file:
        raw = file.read()
    return raw[:64], [struct.unpack_from("<QQffII", raw, at) for at in range(64, len(raw), 32)]


def test_launches_queue_one_after_the_other():
    clock = Clock(now=0)
    gpu = make(clock)
    gpu.launch(0.010)
    gpu.launch(0.005)
    assert clock.now == 0  # launches return at once
    assert gpu.busy_seconds == 0
    clock.now = 12 * MS
    assert gpu.busy_seconds == pytest.approx(0.012)
    gpu.synchronize()
    assert clock.now == 15 * MS and gpu.busy_seconds == pytest.approx(0.015)
    clock.now = 100 * MS
    gpu.launch(0.001)  # an idle device starts at once
    gpu.synchronize()
    assert clock.now == 101 * MS and gpu.busy_seconds == pytest.approx(0.016)


def test_a_full_queue_blocks_until_one_has_ended():
    clock = Clock(now=0)
    gpu = make(clock, depth=2)
    for _ in range(2):
        gpu.launch(0.010)
    assert clock.now == 0
    gpu.launch(0.010)
    assert clock.now == 10 * MS
    gpu.launch(0.010)
    assert clock.now == 20 * MS


def test_a_blocking_copy_waits_for_what_is_before_it():
    clock = Clock(now=0)
    gpu = make(clock)
    gpu.launch(0.010)
    gpu.copy(0.002)
    assert clock.now == 12 * MS
    gpu.copy(0.002, non_blocking=True)
    assert clock.now == 12 * MS
    gpu.synchronize()
    assert clock.now == 14 * MS


def test_resident_data_needs_no_copy():
    clock = Clock(now=0)
    gpu = make(clock)
    gpu.resident_data = True
    gpu.copy(0.5)
    gpu.synchronize()
    assert clock.now == 0 and gpu.busy_seconds == 0


def test_events_tell_device_time():
    clock = Clock(now=0)
    gpu = make(clock)
    gpu.launch(0.010)
    first = gpu.record_event()  # when the kernel ends
    assert not first.query()
    clock.now = 4 * MS
    second = gpu.record_event()
    assert first.elapsed(second) == 0  # the device was busy all the while
    clock.now = 13 * MS
    third = gpu.record_event()
    assert first.elapsed(third) == pytest.approx(0.003)
    assert first.query() and third.query()


def test_durations_cannot_be_negative():
    with pytest.raises(ValueError):
        make(Clock()).launch(-1)
    with pytest.raises(ValueError):
        make(Clock(), depth=0)


def test_current_is_the_last_one_made():
    made = make(Clock(), index=3)
    assert emulated.current() is made


def test_busy_log_matches_the_vectors(spool, monkeypatch):
    with open(os.path.join(HOOK, "../recording/testdata/vectors.json"), encoding="utf-8") as file:
        vectors = json.load(file)
    header = {f["name"]: f["value"] for f in vectors["busy_header"]["fields"]}
    entry = {f["name"]: f["value"] for f in vectors["busy_entry"]["fields"]}
    packed = emulated._header.pack(
        header["magic"].encode(), header["version"], header["index"], header["created"], header["uuid"].encode()
    )
    assert packed.hex() == vectors["busy_header"]["hex"]
    packed = emulated._entry.pack(*(entry[k] for k in ("start", "end", "sm", "tensor", "kind", "number")))
    assert packed.hex() == vectors["busy_entry"]["hex"]


def test_busy_log_says_what_ran_when(spool):
    clock = Clock(now=50)
    gpu = make(clock, spool, index=1)
    gpu.launch(0.010, sm=0.5, tensor=0.25)
    gpu.copy(0.001, non_blocking=True)
    head, log = entries(os.path.join(spool, "gpu-1.busy"))
    assert head[:8] == b"DWBUSY1\n" and struct.unpack_from("<IIQ", head, 8) == (1, 1, 50)
    assert head[24:].rstrip(b"\0").decode() == gpu.uuid and gpu.uuid.startswith("GPU-emulated-")
    assert log == [
        (50, 50 + 10 * MS, 0.5, 0.25, emulated.KERNEL, 1),
        (50 + 10 * MS, 50 + 11 * MS, 0.0, 0.0, emulated.COPY, 2),
    ]


@pytest.mark.parametrize("trouble", ["full", "short", "closed", "reused"])
def test_a_log_that_cannot_go_on_gives_up_its_name_and_the_device_goes_on(spool, monkeypatch, trouble):
    path = os.path.join(spool, "gpu-0.busy")
    clock = Clock(now=0)
    gpu = make(clock, spool)
    gpu.launch(0.010)
    write, fd = os.write, gpu._log.fd
    own = os.path.join(spool, "checkpoint")

    def short(fd, data):
        if trouble == "short":
            return write(fd, data[:7])
        raise OSError(28, "No space left on device")

    if trouble in ("full", "short"):
        monkeypatch.setattr(os, "write", short)
    elif trouble == "closed":
        os.close(fd)
    else:
        theirs = os.open(own, os.O_WRONLY | os.O_CREAT)
        os.dup2(theirs, fd)
        os.close(theirs)
    gpu.launch(0.005)
    monkeypatch.undo()
    gpu.launch(0.005)
    assert not os.path.exists(path)
    assert gpu.busy_seconds == 0 and gpu._end == 20 * MS
    assert trouble != "reused" or os.path.getsize(own) == 0
    if trouble != "closed":
        os.close(fd)


@pytest.mark.parametrize("trouble", ["missing", "full"])
def test_a_device_needs_no_log(spool, monkeypatch, trouble):
    def full(fd, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    gpu = make(Clock(now=0), os.path.join(spool, "gone") if trouble == "missing" else spool)
    gpu.launch(0.010)
    assert gpu._end == 10 * MS and os.listdir(spool) == []


def test_one_process_per_device(spool):
    script = "import os; from datawait import emulated; g = emulated.Gpu(); print('made', flush=True); input()"
    environment = {"PYTHONPATH": HOOK, "DATAWAIT_BUSY_DIR": spool}
    other = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout.readline() == b"made\n"
        with pytest.raises(RuntimeError, match="in use"):
            make(Clock(), spool)
    finally:
        other.communicate(b"\n")
    make(Clock(), spool)


def test_the_same_device_made_again_goes_on(spool):
    clock = Clock(now=0)
    make(clock, spool).launch(0.010)
    make(clock, spool).launch(0.005)
    _, log = entries(os.path.join(spool, "gpu-0.busy"))
    assert [(start, end, number) for start, end, _, _, _, number in log] == [
        (0, 10 * MS, 1),
        (10 * MS, 15 * MS, 2),
    ]


def test_a_worker_that_outlives_its_rank_holds_nothing(spool):
    script = (
        "import os, sys, time; from datawait import emulated; g = emulated.Gpu()\n"
        "if os.fork() == 0:\n    os.close(1); time.sleep(20)\n"
    )
    environment = {"PYTHONPATH": HOOK, "DATAWAIT_BUSY_DIR": spool}
    rank = subprocess.Popen([sys.executable, "-c", script], env=environment, start_new_session=True)
    assert rank.wait(timeout=20) == 0
    try:
        for _ in range(100):  # until the worker has let go
            try:
                make(Clock(), spool)
                break
            except RuntimeError:
                time.sleep(0.02)
        else:
            pytest.fail("still in use")
    finally:
        os.killpg(rank.pid, signal.SIGKILL)


def test_a_restarted_rank_goes_on_in_the_log(spool):
    script = "import sys; from datawait import emulated; g = emulated.Gpu(); g.launch(0.001); g.synchronize()"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": HOOK, "DATAWAIT_BUSY_DIR": spool}, check=True)
        with open(os.path.join(spool, "gpu-0.busy"), "ab") as log:
            log.write(b"torn")  # it died in mid-append
    _, log = entries_of_torn(os.path.join(spool, "gpu-0.busy"))
    assert [entry[5] for entry in log] == [1, 2] and log[0][1] <= log[1][0]


def entries_of_torn(path):
    with open(path, "rb") as file:
        raw = file.read()
    whole = (len(raw) - 64) // 32
    return raw[:64], [struct.unpack_from("<QQffII", raw, 64 + 32 * n) for n in range(whole)]


def test_a_forked_worker_writes_no_log(spool):
    gpu = make(Clock(), spool)
    gpu.launch(0.001)
    pid = os.fork()
    if pid == 0:
        gpu.launch(0.001)
        os._exit(0)
    os.waitpid(pid, 0)
    assert len(entries(os.path.join(spool, "gpu-0.busy"))[1]) == 1


def test_uuid_is_the_job_s_and_the_index_s(spool, monkeypatch):
    monkeypatch.setenv("DATAWAIT_SPOOL", "/one")
    one = [make(Clock(), spool, index=i).uuid for i in (4, 5)]
    monkeypatch.setenv("DATAWAIT_SPOOL", "/two")
    other = make(Clock(), spool, index=6).uuid
    assert len({one[0], one[1], other}) == 3 and one[0][:-1] == one[1][:-1]
    assert all(len(uuid) <= 40 for uuid in [*one, other])
