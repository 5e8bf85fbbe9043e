"""Which files and objects are sampled while batches are built, and that looking costs the script nothing but time."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import HOOK

from datawait import layout, reads

READ, WRITE = os.O_RDONLY | os.O_CLOEXEC, os.O_WRONLY | os.O_CREAT


@pytest.fixture
def sample(hook):
    made = reads.Reads()
    made.begin()
    return made


def names(sample):
    return [reading[2] for reading in sample.taken]


def test_a_file_is_the_same_by_text_and_bytes_and_another_is_not(sample):
    for path in "data/1.jpg", b"data/1.jpg", "data/2.jpg":
        sample.opened(path, READ)
    first, again, other = names(sample)
    assert first == again != other


def test_what_is_written_or_runs_code_to_say_its_name_is_left_out(sample):
    sample.opened("log.txt", WRITE)
    sample.opened(pathlib.PurePosixPath("a"), READ)
    sample.opened("no flags", None)
    assert sample.taken == []


def test_an_object_is_its_path_and_range_whatever_its_signature(sample):
    ask = b"GET /bucket/key?Signature=%b HTTP/1.1\r\nHost: s\r\n%b\r\n"
    parts = b"", b"", b"Range: bytes=0-9\r\n", b"Range: bytes=10-19\r\n"
    for signature, part in enumerate(parts):
        sample.asked(ask % (b"%d" % signature, part))
    whole, again, head, tail = names(sample)
    assert whole == again and len({whole, head, tail}) == 3
    assert {reading[0] for reading in sample.taken} == {layout.REQUEST}


def test_the_sample_is_a_fair_part_of_the_names_and_the_same_in_every_process(hook, sample):
    other = reads.Reads()
    for one in sample, other:
        one.begin()
        for n in range(12000):
            hook.clock.now += 10_000_000  # a hundred a second: it is the number of names that is too large
            one.opened("images/%08d.jpg" % n, READ)
    assert sample.limit == other.limit < 1 << 31
    kept = {name for name in names(sample) if name < sample.limit}
    assert kept == {name for name in names(other) if name < other.limit} == sample.names
    expected = 12000 * sample.limit / 2**32
    assert abs(len(kept) - expected) < 5 * expected**0.5


def test_a_crowd_of_readings_lowers_the_limit_until_there_are_few_a_second(hook, sample):
    for _ in range(20):  # seconds
        begun = len(sample.taken)
        for n in range(5000):
            hook.clock.now += 200_000
            sample.opened("images/%d.jpg" % (n % 1000), READ)
    assert len(sample.taken) - begun <= reads.MOST_A_SECOND
    assert sample.halvings >= 4


def test_an_error_in_here_stays_in_here_and_ends_the_sample(hook, sample, monkeypatch):
    def broken(name):
        raise RuntimeError("broken")

    monkeypatch.setattr(reads, "crc32", broken)
    sample.opened("a", READ)
    sample.begin()
    assert sample.taken is None and sample.limit == 0


def test_it_fits_into_memory(hook, sample):
    import tracemalloc

    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for n in range(10000):
        hook.clock.now += 10_000_000
        sample.opened("images/%08d.jpg" % n, READ)
        if n % 100 == 99:
            sample.end()
            sample.begin()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most - before < 2 << 20


PROGRAM = """
import os, sys
import torch.utils.data as data
folder = sys.argv[1]
class Files(data.Dataset):
    def __len__(self): return 40
    def __getitem__(self, i):
        with open(os.path.join(folder, str(i))) as file: file.read()
        with open(os.path.join(folder, "index")) as file: file.read()
        return i
if __name__ == "__main__":
    for epoch in range(2):
        for batch in data.DataLoader(Files(), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[2]): pass
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_write_what_they_read_for_each_batch(job, torch_python, tmp_path, method):
    """Forty files once an epoch, and one that is opened for every sample."""
    for name in [*map(str, range(40)), "index"]:
        (tmp_path / name).write_text(name)
    done = job(PROGRAM, str(tmp_path), method, python=torch_python)
    assert done.returncode == 0, done.stderr
    readings = [record for ring in job.workers() for record in ring.all("READ")]
    times = {}
    for record in readings:
        times[record.hash] = times.get(record.hash, 0) + 1
    assert sorted(times.values()) == [2] * 40 + [80]


def test_open_works_where_there_is_no_room_for_the_hook_to_look_at_it():
    """Each call one frame deeper, to the recursion limit: open() fails no earlier than a call of one frame does."""
    code = """
import os
from datawait import meter
meter.audit(); meter.reads.begin()
def deeper(left, act):
    return act() if left == 0 else deeper(left - 1, act)
def fits(left, act):
    try:
        deeper(left, act)
        return True
    except RecursionError:
        return False
def frame():
    return None
opens = lambda: os.close(os.open('/dev/null', os.O_RDONLY))
most = max(n for n in range(900, 1000) if fits(n, lambda: frame()))
assert fits(most, opens), most
meter.reads.begin()
print(meter.reads.limit, meter.reads.trouble)
"""
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": HOOK}, capture_output=True, text=True)
    assert done.stdout == "0 None\n", done.stderr


def test_open_works_although_the_hook_is_broken():
    code = """
from datawait import meter, reads
meter.audit(); meter.reads.begin()
reads.crc32 = None
open('/dev/null').close()
print(meter.reads.limit)
"""
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": HOOK}, capture_output=True, text=True)
    assert done.stdout == "0\n", done.stderr
