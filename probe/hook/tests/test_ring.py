"""Rings byte for byte: the shared vectors, overruns, notes, and folders in which none may be made."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct

import pytest
import ringreader

from datawait import layout, place
from datawait.identity import start_ticks
from datawait.ring import Ring

VECTORS = os.path.join(os.path.dirname(__file__), "../../recording/testdata/vectors.json")

PACKERS = {
    "FETCH": layout.pack_fetch, "STEP": layout.pack_step, "ITERATOR": layout.pack_iterator, "MARK": layout.pack_mark,
    "BLOCK": layout.pack_block, "EXPOSED": layout.pack_exposed, "SOLO": layout.pack_solo,
    "WORKER": layout.pack_worker, "BATCH": layout.pack_batch, "COST": layout.pack_cost, "IO": layout.pack_io,
    "READ": layout.pack_read,
    "STACK": layout.pack_stack, "TRANSFORM": layout.pack_transform, "SAMPLER": layout.pack_sampler,
}  # fmt: skip


@pytest.fixture(scope="module")
def vectors():
    with open(VECTORS, encoding="utf-8") as file:
        return json.load(file)


def value(field):
    if field["value"] is None:
        return {"u16": layout.UNKNOWN16, "u32": layout.UNKNOWN32, "u64": layout.UNKNOWN64}[field["type"]]
    return field["value"]


def test_every_record_of_the_hook_matches_its_vectors(vectors):
    seen = set()
    for vector in vectors["records"]:
        if vector["number"] >= 64:
            continue  # the agent's
        seen.add(vector["kind"])
        assert getattr(layout, vector["kind"]) == vector["number"]
        fields = [value(field) for field in sorted(vector["fields"], key=lambda field: field["at"])]
        packed = PACKERS[vector["kind"]](
            vector["seq"], vector["number"], vector["flags"], vector["ref"], *fields, vector["seq"]
        )
        assert packed.hex() == vector["hex"], vector["kind"]
    assert seen == set(PACKERS)


def test_header_fields_lie_where_the_vectors_have_them(vectors, spool):
    ring = Ring(spool, 1024, {})
    where = {field["name"]: field for field in vectors["ring_header"]["fields"]}
    longs = {
        "head": layout.Q_HEAD, "note_bytes": layout.Q_NOTE_BYTES, "notes_dropped": layout.Q_NOTES_LOST,
        "hook_errors": layout.Q_ERRORS, "monotonic": layout.Q_MONOTONIC, "realtime": layout.Q_REALTIME,
        "step": layout.Q_STEP, "block": layout.Q_BLOCKS, "fetches": layout.Q_FETCHES,
        "epoch_length": layout.Q_LENGTH, "epoch_batch": layout.Q_BATCH, "own_time": layout.Q_OWN_NS,
        "own_looks": layout.Q_OWN_FETCHES,
    }  # fmt: skip
    ints = {"state": layout.I_STATE, "hook": layout.I_HOOK, "step_unit": layout.I_UNIT, "parked": layout.I_PARKED}
    for name, index in longs.items():
        assert where[name]["at"] == 8 * index, name
        ring.longs[index] = value(where[name])
    for name, index in ints.items():
        assert where[name]["at"] == 4 * index, name
        ring.ints[index] = value(where[name])
    struct.pack_into("<I", ring.map, 20, where["capacity"]["value"])
    assert bytes(ring.map[:144]).hex() == vectors["ring_header"]["hex"]


def test_totals_match_their_vector(vectors, spool):
    from datawait.totals import Totals

    ring = Ring(spool, 1024, {})
    totals = Totals(5, True, None)
    named = {field["name"]: field["value"] for field in vectors["totals"]["fields"]}
    for name in ("fetches", "wait", "between", "no_grad", "last_end", "first_begin"):
        setattr(totals, name, named[name])
    totals.store(ring.longs)
    expected = bytearray.fromhex(vectors["totals"]["hex"])
    struct.pack_into("<Q", expected, 40, totals.fetches)  # a loader without workers builds what it delivers
    assert bytes(ring.map[1024 + 5 * 64 : 1024 + 6 * 64]) == bytes(expected)


def test_a_new_ring_reads_as_one(spool):
    ring = Ring(spool, 1024, {"producer": "main", "pid": os.getpid()})
    assert os.path.basename(ring.path) == "ring-%d-%d.dwr" % (os.getpid(), start_ticks())
    assert os.stat(ring.path).st_mode & 0o777 == 0o600
    ring.mark(layout.ENDED, 5, 6, 7)
    ring.close()
    read = ringreader.Ring(ring.path)
    assert read.declaration == {"producer": "main", "pid": os.getpid()}
    assert (read.head, read.state, read.hook, read.unit, read.parked) == (1, 2, 1, 0, 0)
    assert read.length == read.batch == layout.UNKNOWN64
    assert [n["note"] for n in read.notes] == ["clock"] and read.notes[0]["monotonic"] == read.monotonic
    assert read.records == [
        {"number": 1, "kind": "MARK", "flags": 0, "ref": 7, "begin": 5, "end": 6, "value": 7, "detail": 0}
    ]


def test_a_script_that_replaces_itself_is_observed_on(job):
    script = """
import os, sys, datawait
for batch in datawait.watch(range(int(sys.argv[1])), workers=0):
    if sys.argv[1] != "5" and batch == int(sys.argv[1]) - 1:
        os.execv(sys.executable, [sys.executable, sys.argv[0], str(int(sys.argv[1]) - 1)])
"""
    assert job(script, "7").returncode == 0
    rings = sorted(job.rings(), key=lambda ring: ring.declaration["opened"])
    assert len({(ring.declaration["pid"], ring.declaration["start_ticks"]) for ring in rings}) == 1
    assert [ring.state for ring in rings] == [1, 1, 2]
    assert [ring.totals(0)["fetches"] for ring in rings][2] == 5
    names = [os.path.basename(ring.path).split("-", 3)[3:] for ring in rings]
    assert names == [[], ["2.dwr"], ["3.dwr"]]


def test_the_declaration_says_in_which_pid_namespace_its_pid_counts(hook):
    from datawait import stream

    assert stream.declare("main")["pid_namespace"] == os.stat("/proc/self/ns/pid").st_ino


def test_overrun_keeps_the_newest(spool):
    ring = Ring(spool, 1024, {})
    for number in range(3000):
        ring.mark(1, number, number)
    read = ringreader.Ring(ring.path)
    assert read.head == 3000
    assert [record["begin"] for record in read.records] == list(range(3000 - 1024, 3000))


def test_notes_that_do_not_fit_are_counted(spool):
    ring = Ring(spool, 1024, {})
    room = 65536 - ring.notes_end
    assert ring.note({"x": "y" * (room - len('{"x":""}\n'))})
    assert not ring.note({})
    read = ringreader.Ring(ring.path)
    assert read.notes_lost == 1 and len(read.notes) == 2


def test_no_space_leaves_no_file(spool, monkeypatch):
    def full(fd, offset, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError):
        Ring(spool, 1024, {})
    assert os.listdir(spool) == []


def test_a_hook_without_space_is_off_and_says_so(hook, monkeypatch):
    def full(fd, offset, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    observed = hook.iterator(lambda _: "batch")
    assert observed() == "batch" and observed() == "batch"
    assert hook.core.off and hook.core.ring is None
    with open(os.path.join(hook.spool, "seen-%d" % os.getpid()), encoding="utf-8") as seen:
        assert "refused: " in seen.read()


@pytest.mark.parametrize(
    "kind, refused",
    [
        ("nfs4", True), ("fuse.sshfs", True), ("fuseblk", True), ("virtiofs", True), ("lustre", True), ("btrfs", True),
        ("zfs", True), ("ext4", False), ("xfs", False), ("tmpfs", False), ("overlay", False),
    ],
)  # fmt: skip
def test_only_file_systems_that_write_in_place_are_taken(spool, tmp_path, monkeypatch, kind, refused):
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(
        "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n36 21 0:50 / %s rw,nosuid shared:1 - %s server:/x rw\n"
        % (os.path.realpath(spool), kind)
    )
    assert place.filesystem(spool, str(mountinfo)) == kind
    assert place.filesystem(os.path.dirname(spool), str(mountinfo)) == "ext4"
    monkeypatch.setattr(place, "filesystem", lambda folder: kind)
    if refused:
        with pytest.raises(place.Refused, match=kind):
            place.check(spool)
    else:
        place.check(spool)


def test_an_overlay_over_one_that_copies_on_write_is_refused(hook, monkeypatch):
    monkeypatch.setattr(fcntl, "ioctl", lambda fd, request, flags: flags)
    observed = hook.iterator(lambda _: "batch")
    assert observed() == "batch"
    assert hook.core.off and hook.core.ring is None
    assert [name for name in os.listdir(hook.spool) if name.startswith("ring-")] == []


def test_open_folders_and_links_are_refused(spool, tmp_path):
    os.chmod(spool, 0o777)
    with pytest.raises(place.Refused):
        place.check(spool)
    os.chmod(spool, 0o700)
    link = tmp_path / "link"
    link.symlink_to(spool)
    with pytest.raises(place.Refused):
        place.check(str(link))


def test_rings_shrink_beside_a_small_shm(spool, monkeypatch):
    class Space:
        f_frsize = 1 << 20
        f_bavail = f_blocks = 64  # Docker's default /dev/shm

    monkeypatch.setattr(os, "statvfs", lambda folder: Space)
    assert place.ring_bytes(place.capacity(spool, 65536)) <= 4 << 20
    assert place.capacity(spool, 16384) == 16384
    Space.f_bavail = 0
    with pytest.raises(place.Refused):
        place.capacity(spool, 16384)


def test_a_hole_among_the_rings_takes_no_room(spool):
    with open(os.path.join(spool, "ring-1-2.dwr"), "wb") as hole:
        hole.truncate(1 << 40)
    assert place.capacity(spool, 16384) == 16384


class Killed(BaseException):
    """The process ends here."""


class DyingMap:
    """A ring's memory whose process is killed at a write to its records."""

    def __init__(self, memory):
        self.memory = memory

    def __setitem__(self, where, what):
        if where.start >= layout.HEADER_BYTES:
            raise Killed
        self.memory[where] = what


def test_sums_never_tell_of_records_that_a_kill_kept_from_being_written(hook):
    observed = hook.iterator(lambda _: None)
    for _ in range(30):
        observed()
        hook.clock.now += 100_000
    ring = hook.core.ring
    memory, ring.map = ring.map, DyingMap(ring.map)
    with pytest.raises(Killed):
        for _ in range(30):
            observed()
            hook.clock.now += 100_000
    ring.map = memory
    left = ringreader.one(hook.spool)  # as it was at that moment: nothing is written any more
    assert left.totals(0)["fetches"] == len(left.all("FETCH")) == left.fetches == left.step > 0


def test_a_record_is_put_off_for_a_millisecond_whatever_is_written_in_between(hook):
    observed = hook.iterator(lambda _: None)
    for _ in range(8):
        observed()
        hook.core.ring.mark(layout.CUDA_SEEN, hook.clock.now, hook.clock.now, 0)  # writes what is pending along
    hook.clock.now += 1_500_000
    observed()
    assert len(ringreader.one(hook.spool).all("FETCH")) == 9  # hook.read() would write what is pending
