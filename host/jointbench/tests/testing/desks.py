"""Pytest runs of their own, in a folder with a bench file `desk` whose bench a conftest.py starts."""

from __future__ import annotations

import pytest

# Compiled modules cannot be loaded anew by each run: those that jointbench imports, and those it imports when needed.
import scipy.signal  # noqa: F401 # pyright: ignore[reportUnusedImport]

import jointbench.bench  # noqa: F401 # pyright: ignore[reportUnusedImport]

# A bench that is all there but for its boards: what the plugin asks of it is what any hook could give.
REPORT = "jointbench.testing.report"  # has tests of its own
CONFTEST = """
from contextlib import contextmanager
from jointbench.testing import BenchUnderTest

def pytest_jointbench_start(bench_file, options):
    return start(bench_file, options)

@contextmanager
def start(bench_file, options):
    print("START")
    yield BenchUnderTest(
        bench_file.stem, bench_file, {clock!r}, frozenset({features!r}), options.seed, options.out, (), {{}}
    )
    print("END")
"""

TESTS = """
from jointbench.testing import deterministic, functional, needs, realtime

@functional
@needs("motor")
def test_motor(bench_under_test): assert bench_under_test.name == "desk"

@deterministic
@needs("motor", "torque_sensor", "supply")
def test_torque(bench_under_test): ...

@realtime
def test_jitter(): ...
"""


def with_bench(
    pytester: pytest.Pytester, clock: str = "virtual", features: tuple[str, ...] = ("motor", "supply")
) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST.format(clock=clock, features=set(features)))
    pytester.mkdir("benches").joinpath("desk.toml").touch()
    return pytester


def run(pytester: pytest.Pytester, *arguments: str, bench: str = "desk") -> pytest.RunResult:
    """Run the tests of the folder."""
    plugins = ("-p", "jointbench.testing.plugin", "-p", f"no:{REPORT}", "-p", "no:cacheprovider", "-rs")
    where = ("--bench", bench, "--bench-out", "out") if bench else ()
    return pytester.runpytest_inprocess(*plugins, *where, *arguments)
