"""Holds a ring against the script's own account of the same run: every next() and every step, one by one."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from launcher import Pair, Run
from ringreader import Record, Ring

from datawait import layout

MICROSECOND = 1_000
MILLISECOND = 1_000_000


def unchanged(pair: Pair) -> None:
    """Nothing that the script did, made or said differs for being observed."""
    bare, observed = pair.bare.effects(), pair.observed.effects()
    for name in bare:
        assert {name: observed[name]} == {name: bare[name]}
    assert observed == bare


def agrees(pair: Pair) -> "Dict[str, List[Record]]":
    """The ring says what the script says. Returns the FETCH records by the script's name of their loader."""
    run, ring = pair.observed, pair.ring
    healthy(ring)
    matched = match(run, ring)
    numbers = same_loaders(matched)
    for row, record in matched:
        same_fetch(run, row, record)
    for name, number in numbers.items():
        same_totals(name, number, matched, ring)
    assert ring.fetches == sum(row["outcome"] == "delivered" for row in run.fetches if counted(row))
    close_in_time(matched)
    same_steps(run, ring)
    built_as_recorded(run, ring, pair.workers)
    return {name: [r for row, r in matched if row["loader"] == name] for name in numbers}


def healthy(ring: Ring) -> None:
    assert (ring.errors, ring.notes_lost, ring.hook) == (0, 0, layout.OBSERVING), ring.note("hook-error")
    assert ring.head <= ring.capacity, "the cell is too long for its ring: totals cannot be checked"


def match(run: Run, ring: Ring) -> "List[Tuple[Dict[str, Any], Record]]":
    """Each FETCH with the one next() of the script that it lies in; none of either is left over."""
    rows = sorted(run.fetches, key=lambda row: row["end"] - row["begin"])  # of nested ones the inner fits first
    matched = []
    for record in sorted(ring.all("FETCH"), key=lambda record: record.exit - record.enter):
        for at, row in enumerate(rows):
            if row["thread"] == record.thread and row["begin"] <= record.enter <= record.exit <= row["end"]:
                matched.append((rows.pop(at), record))
                break
        else:
            raise AssertionError("a fetch that the script did not make: %s" % record)
    assert not rows, "fetches of the script that are not recorded: %s" % rows
    return sorted(matched, key=lambda pair: pair[0]["begin"])


def same_loaders(matched: "List[Tuple[Dict[str, Any], Record]]") -> Dict[str, int]:
    """Script's name of a loader -> its number; one for one."""
    numbers: Dict[str, int] = {}
    for row, record in matched:
        assert numbers.setdefault(row["loader"], record.ref) == record.ref, row
    assert len(set(numbers.values())) == len(numbers), numbers
    return numbers


def counted(row: Dict[str, Any]) -> bool:
    """Whether the training itself waited in this next()."""
    return row["trains"] and not row["nested"]


def same_fetch(run: Run, row: Dict[str, Any], record: Record) -> None:
    flags = {
        layout.NESTED: row["nested"], layout.OFF_THREAD: not row["trains"], layout.CACHED: False,
        layout.END: row["outcome"] == "end", layout.DISCARDED: False, layout.FIRST: row["first"],
        layout.ERROR: row["outcome"] == "error", layout.NO_GRAD: not row["grad"],
    }  # fmt: skip
    assert record.flags == sum(flag for flag, is_set in flags.items() if is_set), (row, record)
    assert record.epoch == row["epoch"], (row, record)
    if row["batch"] is not None and row["outcome"] != "end":
        assert record.batch == row["batch"], (row, record)
    if run.steps and counted(row) and row["begin"] > run.steps[0]["begin"]:
        assert record.step == row["step"], (row, record)


def same_totals(name: str, number: int, matched: "List[Tuple[Dict[str, Any], Record]]", ring: Ring) -> None:
    """The header's running sums, which outlive the records."""
    own = [(row, record) for row, record in matched if row["loader"] == name and counted(row)]
    totals = ring.totals(number)
    delivered = [row for row, _ in own if row["outcome"] == "delivered"]
    assert totals["fetches"] == len(delivered), name
    assert totals["no_grad"] == sum(not row["grad"] for row in delivered), name
    assert totals["wait"] == sum(record.exit - record.enter for _, record in own), name
    assert totals["between"] == sum(b.enter - a.exit for (_, a), (_, b) in zip(own, own[1:])), name


def close_in_time(matched: "List[Tuple[Dict[str, Any], Record]]") -> None:
    """No recorded wait is longer than what the script's clock read around it (match saw to that), nor much shorter.

    What lies between is the hook's own work. A busy machine may take the CPU away in the middle of it, from most
    fetches where many want it, hence a tight bound on the least, one on the best quarter and a wide one on all. The
    first fetch of an iterator says what the loader is (and that of a process makes the ring): it is left out."""
    gaps = [
        (row["end"] - row["begin"]) - (record.exit - record.enter)
        for row, record in matched[1:]
        if not row["first"] and not row["nested"]
    ]
    if len(gaps) >= 8:
        assert min(gaps) < 200 * MICROSECOND, sorted(gaps)
        assert sorted(gaps)[len(gaps) // 4] < MILLISECOND, sorted(gaps)
        assert sum(gaps) < len(gaps) * MILLISECOND + 500 * MILLISECOND, sorted(gaps)


def same_steps(run: Run, ring: Ring) -> None:
    records = ring.all("STEP")
    assert len(records) == len(run.steps)
    for row, record in zip(run.steps, records):
        assert row["begin"] <= record.begin <= record.end <= row["end"], (row, record)
        assert record.step == row["step"], (row, record)
        assert record.thread == row["thread"], (row, record)
    if run.steps:
        assert (ring.unit, ring.step) == (layout.BY_OPTIMIZER, run.count)


def built_as_recorded(run: Run, ring: Ring, workers: "List[Ring]") -> None:
    """Every item the data set built lies in a BATCH of the worker that built it."""
    assert {record.pid for record in ring.all("WORKER")} == {worker.declaration["pid"] for worker in workers}
    for worker in workers:
        healthy(worker)
        items = [row for row in run.built.get(worker.declaration["pid"], []) if row[0] != "rng"]
        for record in worker.all("BATCH"):
            inside = [row for row in items if record.begin <= row[2] <= row[3] <= record.end]
            raised = bool(record.flags & layout.RAISED)
            assert len(inside) < record.samples if raised else len(inside) == record.samples, record
            assert {row[0] for row in inside} <= {record.worker}, record
            items = [row for row in items if row not in inside]
        if run.loose and worker.all("BATCH"):  # a worker may be ended in the middle of a batch
            items = [row for row in items if row[2] < worker.all("BATCH")[-1].end]
        assert not items, "built outside of any batch: %s" % items
