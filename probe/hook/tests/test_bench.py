"""The benchmarks still fit the hook they measure, and what is made of their numbers is right."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

BENCH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench")
LINE = re.compile(r"Benchmark\S+ \d+( -?\d+(\.\d+)? \S+)+$")


@pytest.fixture(scope="module")
def output():
    """One round of all groups that need no PyTorch."""
    done = subprocess.run(
        [sys.executable, BENCH, "noop", "parts", "worker", "audit"], capture_output=True, text=True, timeout=120,
        check=False, env={**os.environ, "BENCH_ROUNDS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    import bars

    return bars


def test_every_line_is_one_that_benchstat_reads(output):
    lines = [line for line in output if line.startswith("Benchmark")]
    assert len(lines) > 15 and [line for line in lines if not LINE.match(line)] == []


def test_every_row_is_measured(output, bars):
    measured = {line.split()[0] + ":" + unit for line in output for unit in line.split()[3::2]}
    need_torch = ("BenchmarkLoader", "BenchmarkTraining", "BenchmarkBeside")
    rows = [key for _, key, _ in bars.ROWS if not key.startswith(need_torch)]
    assert len(rows) > 9 and [key for key in rows if key not in measured] == []


def test_the_interval_holds_the_median_in_95_of_100_cases(bars):
    """Ranks from the table of the binomial distribution: 6 values reach from the first to the last, 12 from 3 to 10."""
    assert bars.interval([float(n) for n in (6, 1, 5, 2, 4, 3)]) == (3.5, 1, 6)
    assert bars.interval([float(n) for n in range(12, 0, -1)]) == (6.5, 3, 10)
    assert bars.interval([float(n) for n in range(20)]) == (9.5, 5, 14)


def test_what_misses_its_bar_is_marked(bars):
    key = "BenchmarkX:added-ns/op"
    assert bars.verdict([2000.0] * 6, key, 3000) == "≤ 3.00 µs"
    assert bars.verdict([4000.0] * 6, key, 3000) == "≤ 3.00 µs: **missed**"
    assert bars.verdict([1000.0] * 5 + [4000.0], key, 3000) == "≤ 3.00 µs: not sure"
    assert bars.cell([2000.0] * 6, key) == "2.00 µs (2.00 – 2.00 µs, n = 6)"
