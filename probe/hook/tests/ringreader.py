"""A second reader of rings, written from probe/recording/SPEC.md alone: tests hold the hook against it."""

from __future__ import annotations

import glob
import json
import os
import struct
from typing import Any, Dict, List

NAMES = {1: "FETCH", 2: "STEP", 3: "ITERATOR", 4: "MARK", 5: "BLOCK", 6: "EXPOSED", 7: "SOLO", 8: "WORKER",
         32: "BATCH", 33: "COST", 34: "IO", 35: "READ", 36: "STACK", 37: "TRANSFORM",
         38: "SAMPLER"}  # fmt: skip

# kind -> fields as (name, offset, type) of SPEC §2
FIELDS: Dict[str, str] = {
    "FETCH": "enter:8Q exit:16Q batch:24I epoch:28I step:32I thread:36I cpu:40Q ready:48I block:52I",
    "STEP": "begin:8Q end:16Q step:24I thread:28I cpu:32Q",
    "ITERATOR": "begin:8Q end:16Q epoch:24I workers:28I length:32I prefetch:36I",
    "MARK": "begin:8Q end:16Q value:24Q detail:32Q",
    "BLOCK": "begin:8Q end:16Q block:24I first:28I steps:32I fetches:36I wait:40Q reason:48I ready:52I",
    "EXPOSED": "t:8Q idle:16Q span:24Q fetch:32I loader:36I",
    "SOLO": "t:8Q batch:24I epoch:28I",
    "WORKER": "t:8Q pid:16I worker:20I epoch:24I",
    "BATCH": "received:8Q begin:16Q end:24Q sent:32Q batch:40I resumes:44I samples:48I worker:52I",
    "COST": "cpu:8Q process_cpu:16Q run_queue:24Q collate:32Q bytes:40Q files:48I requests:52I tensors:56I",
    "STACK": "t:8Q on:16Q off:24Q unclear:32Q call:40I samples:44I",
    "TRANSFORM": "t:8Q calls:16Q ns:24Q transform:32I",
    "SAMPLER": "t:8Q looks:16Q samples:24Q outside:32Q cpu:40Q wall:48Q",
    "IO": "rchar:8Q read_bytes:16Q syscr:24Q voluntary:32Q involuntary:40Q",
    "READ": "t:8Q hash:16I halvings:20I",
}


class Record(Dict[str, Any]):
    """A decoded record; unknown fields are None."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class Ring:
    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self.raw = raw = file.read()
        self.path = path
        assert raw[:8] == b"DWRING1\n", path
        self.version, self.header, self.size, self.capacity = struct.unpack_from("<4I", raw, 8)
        assert (self.version, self.header, self.size) == (1, 65536, 64)
        assert len(raw) == 65536 + 64 * self.capacity
        self.head, self.note_bytes, self.notes_lost, self.errors = struct.unpack_from("<4Q", raw, 24)
        self.state, self.hook = struct.unpack_from("<2I", raw, 56)
        self.monotonic, self.realtime, self.step = struct.unpack_from("<3Q", raw, 64)
        self.unit, self.parked = struct.unpack_from("<2I", raw, 88)
        self.blocks, self.fetches, self.length, self.batch = struct.unpack_from("<4Q", raw, 96)
        lines = raw[4096 : 4096 + self.note_bytes].splitlines()
        self.declaration = json.loads(lines[0])
        self.notes = [json.loads(line) for line in lines[1:]]
        self.records = self._records()

    def _records(self) -> List[Record]:
        records = []
        for number in range(max(1, self.head - self.capacity + 1), self.head + 1):
            at = 65536 + (number - 1) % self.capacity * 64
            seq, kind, flags, ref = struct.unpack_from("<IBBH", self.raw, at)
            (again,) = struct.unpack_from("<I", self.raw, at + 60)
            assert seq == again == number & 0xFFFFFFFF, (number, seq, again)
            record = Record(number=number, kind=NAMES[kind], flags=flags, ref=ref)
            for field in FIELDS[NAMES[kind]].split():
                name, where = field.split(":")
                (value,) = struct.unpack_from("<" + where[-1], self.raw, at + int(where[:-1]))
                unknown = 0xFFFFFFFF if where[-1] == "I" else 0xFFFFFFFFFFFFFFFF
                record[name] = None if value == unknown else value
            records.append(record)
        return records

    def all(self, kind: str) -> List[Record]:
        return [record for record in self.records if record["kind"] == kind]

    def note(self, name: str) -> List[Dict[str, Any]]:
        return [note for note in self.notes if note.get("note") == name]

    def totals(self, loader: int) -> Dict[str, int]:
        names = ("fetches", "wait", "between", "no_grad", "last_end", "built", "first_begin", "reserved")
        return dict(zip(names, struct.unpack_from("<8Q", self.raw, 1024 + 64 * min(loader, 31))))


def rings(folder: str) -> List[Ring]:
    return [Ring(path) for path in sorted(glob.glob(os.path.join(folder, "ring-*.dwr")))]


def one(folder: str, producer: str = "main") -> Ring:
    (ring,) = [ring for ring in rings(folder) if ring.declaration["producer"] == producer]
    return ring
