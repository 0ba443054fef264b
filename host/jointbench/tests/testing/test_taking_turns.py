"""Parts that wait side by side on one clock: who runs when, when time passes, and how they end.

Pytest runs of their own, in a folder with a bench file `desk` whose bench a conftest.py starts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from jointbench.bench import WallClock
from jointbench.testing.roles import TakingTurns


class SteppedClock:
    """A clock on which nothing arrives: each wait takes as long as it may."""

    name, common_ticks = "virtual", True

    def __init__(self) -> None:
        self.time_us, self.waits = 0, list[int]()

    def now_us(self) -> int:
        return self.time_us

    def wait(self, timeout_us: int, gather_us: int = 0, timed_us: int = 0) -> None:
        self.time_us += timeout_us
        self.waits.append(timeout_us)

    def close(self) -> None:
        self.waits.clear()


@pytest.fixture
def inner() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def clock(inner: SteppedClock) -> TakingTurns:
    return TakingTurns(inner)


def until(clock: TakingTurns, end_us: int) -> None:
    """Wait as all who wait must: whoever is woken early looks at the time again."""
    while (left_us := end_us - clock.now_us()) > 0:
        clock.wait(left_us)


def test_alone_it_is_the_clock_behind_it(clock: TakingTurns, inner: SteppedClock) -> None:
    clock.wait(70)
    assert (clock.now_us(), inner.waits, clock.name, clock.common_ticks) == (70, [70], "virtual", True)


def test_time_passes_to_what_is_due_first(clock: TakingTurns, inner: SteppedClock) -> None:
    seen: list[tuple[str, int]] = []

    def part(name: str, *times_us: int) -> Callable[[], None]:
        def run() -> None:
            for time_us in times_us:
                until(clock, time_us)
                seen.append((name, clock.now_us()))

        return run

    clock.run([part("a", 10, 30, 40), part("b", 20, 30), part("c", 5)])
    assert seen == [("c", 5), ("a", 10), ("b", 20), ("a", 30), ("b", 30), ("a", 40)]
    assert inner.waits == [5, 5, 10, 10, 10]


def test_whoever_is_woken_looks_again_before_time_passes(clock: TakingTurns) -> None:
    said: list[str] = []

    def listener() -> None:
        while not said:
            clock.wait(1000)
        assert clock.now_us() == 7

    def speaker() -> None:
        until(clock, 7)
        said.append("word")
        clock.wake()
        until(clock, 900)

    clock.run([listener, speaker])


def test_an_error_ends_all_and_is_raised_as_it_was(clock: TakingTurns) -> None:
    ended: list[int] = []

    def patient() -> None:
        try:
            until(clock, 10_000)
        except Exception:  # a part that takes every error for its own may not keep the others waiting
            pytest.fail("what ends a part is no error of its own")
        finally:
            ended.append(clock.now_us())

    def hasty() -> None:
        until(clock, 30)
        raise ZeroDivisionError("mine")

    def late() -> None:
        ended.append(-1)

    with pytest.raises(ZeroDivisionError, match="mine"):
        clock.run([patient, hasty, patient])
    assert ended == [30, 30]
    clock.run([late])  # it can be used again
    assert ended[-1] == -1


def test_a_part_behind_the_one_that_fails_at_once_does_not_begin(clock: TakingTurns) -> None:
    began: list[str] = []

    def fails() -> None:
        raise KeyError("at once")

    with pytest.raises(KeyError):
        clock.run([fails, lambda: began.append("second")])
    assert began == []


def test_parts_compute_under_the_callers_rules(clock: TakingTurns) -> None:
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        clock.run([lambda: np.float64(1.0) / np.float64(0.0)])


def test_on_the_wall_clock_parts_wait_side_by_side() -> None:
    wall = WallClock([])
    clock = TakingTurns(wall)
    order: list[str] = []

    def slow() -> None:
        until(clock, wall.now_us() + 20_000)
        order.append("slow")

    def fast() -> None:
        until(clock, wall.now_us() + 1_000)
        order.append("fast")

    clock.run([slow, fast])
    clock.close()
    assert order == ["fast", "slow"]


# Compiled modules cannot be loaded anew by each run: those that jointbench imports, and those it imports when needed.


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
