"""What the rings of a run tell a reader, without times: to see what a fault that nothing tells of has made unknown."""

from __future__ import annotations

import json
from typing import Any, Dict, List

IN_TIME = ("functions", "calls", "transforms")  # notes of what was found when time had come
SEEN_FIELDS = {"FETCH": ("ready", "batch"), "BATCH": ("samples", "worker")}  # which counters are read depends on time


def recorded(rings: List[Any]) -> Dict[str, Any]:
    """By name; each value can be compared."""
    told: Dict[str, Any] = {"rings": sorted(ring.declaration["producer"] for ring in rings)}
    for ring in rings:
        producer = ring.declaration["producer"]
        for name, value in ring.declaration.items():
            if value is None:
                told.setdefault("unknown", set()).add("%s %s" % (producer, name))
        for name in {note["note"] for note in ring.notes}.difference(IN_TIME):
            told.setdefault("notes", set()).add("%s %s" % (producer, name))
        told.setdefault("loaders", []).extend(_unnumbered(note) for note in ring.note("loader"))
        told.setdefault("state", []).append("%s %d %d" % (producer, ring.state, ring.hook))
        _add(told, "fetches", ring.fetches)
        _add(told, "steps", len(ring.all("STEP")))
        _add(told, "batches", len(ring.all("BATCH")))
        for kind in ("ITERATOR", "WORKER", "MARK", "BLOCK", "EXPOSED", "SOLO"):
            told.setdefault(kind, []).extend(_what(kind, record) for record in ring.all(kind))
        for kind, fields in SEEN_FIELDS.items():
            for field in fields:
                if any(record[field] is None for record in ring.all(kind)):
                    told.setdefault("unknown", set()).add("%s %s.%s" % (producer, kind, field))
    return {name: sorted(value) if isinstance(value, (set, list)) else value for name, value in told.items()}


def _add(told: Dict[str, Any], name: str, count: int) -> None:
    told[name] = told.get(name, 0) + count


def _unnumbered(note: Dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in note.items() if name != "loader"}, sort_keys=True)


def _what(kind: str, record: Any) -> str:
    if kind == "ITERATOR":
        return "%s of %s, %s ahead, %d" % (record.workers, record.length, record.prefetch, record.flags)
    if kind == "BLOCK":
        return "%s: %s" % (record.flags, record.reason)
    return str(record.ref if kind == "MARK" else kind)


def differing(usual: List[Dict[str, Any]], now: Dict[str, Any]) -> List[str]:
    """Names of what is as in none of the usual runs."""
    names = {name for run in usual for name in run} | set(now)
    return sorted(name for name in names if now.get(name) not in [run.get(name) for run in usual])
