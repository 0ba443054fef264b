"""A pytest plugin: a quick test that takes more CPU time than pyproject.toml allows fails, unless it is marked slow.

CPU time is that of the test and of the processes it starts, so that waiting for a busy machine does not count. What
fixtures of a module or session take is their tests' in common: each may take twice the budget of a test.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

LIMIT = "cpu_budget_s"
_SHARED = pytest.StashKey[float]()
_START = pytest.StashKey[float]()
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Return the CPU time of this process and all that it has started, those that still run included."""
    return sum(os.times()[:4]) + sum(_running(os.getpid()))


def _running(parent: int) -> Iterator[float]:
    """CPU time of each process below another one, and of those it has waited for; nothing where there is no /proc."""
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        for child in _read(task).split():
            fields = _read(Path(f"/proc/{child}/stat")).rpartition(")")[2].split()
            yield sum(map(int, fields[11:15])) / _TICKS
            yield from _running(int(child))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended meanwhile
        return ""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting."""
    parser.addini(LIMIT, "CPU time that a test may take which is not marked slow [s]", default="0")


def limit_of(item: pytest.Item) -> float | None:
    """Return what an item may take, if it is limited: a debugger takes time of its own, other boards theirs."""
    limit = float(item.config.getini(LIMIT))
    other_boards = item.config.getoption("--board", None)
    unlimited = not limit or item.get_closest_marker("slow") or other_boards or sys.gettrace()
    return None if unlimited else limit * slowed_down()


def slowed_down() -> float:
    """Return by how much this machine may be slower than a quiet one, 1 to 2.

    Threads that share a core and its caches take more CPU time for the same: 1.7 times as much was measured for bench
    tests with four programs on two cores.
    """
    return min(max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0), 2.0)


def fault(what: str, took: float, limit: float) -> str:
    """Say that something took too long, and what to do about it."""
    return (
        f"{what} took {took:.1f} CPU-seconds; {limit:g} are allowed. Make it cheaper, or mark it slow and have "
        "something quick show the same in the small. (In a fresh clone it may have been the compiler: try again.)"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Begin to count."""
    item.stash[_START] = cpu_seconds()
    item.stash[_SHARED] = 0.0
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """Count apart what is made once for many tests."""
    item: pytest.Item = request._pyfuncitem  # pyright: ignore[reportPrivateUsage]
    if fixturedef.scope == "function" or _START not in item.stash:
        return (yield)
    before = cpu_seconds()
    made = yield
    took = cpu_seconds() - before
    item.stash[_SHARED] += took
    limit = limit_of(item)
    if limit and took > 2.0 * limit:
        pytest.fail(fault(f"the fixture {fixturedef.argname!r}", took, 2.0 * limit), pytrace=False)
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test in its last phase when it has taken too much."""
    report = yield
    limit = limit_of(item)
    if call.when == "teardown" and report.passed and limit:
        took = cpu_seconds() - item.stash[_START] - item.stash[_SHARED]
        if took > limit:
            report.outcome, report.longrepr = "failed", fault(item.nodeid, took, limit)
    return report
