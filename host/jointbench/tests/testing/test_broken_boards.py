"""A board that is gone: one error, then skips that name it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jointbench.errors import BenchLost, BoardFault, BoardLost, BoardSilent
from jointbench.testing.broken import broken_by
from jointbench.tests.testing.desks import run, with_bench

pytest_plugins = ["pytester"]

LOSING = """
from jointbench.errors import BoardLost
from jointbench.testing import functional, realtime

@functional
def test_first(): ...

@functional
def test_losing():
    try:
        raise BoardLost("j3", 3, "its process\\nhas ended")
    except BoardLost as error:
        raise RuntimeError("in a helper") from error

@functional
def test_later(): ...

@functional
def test_last(): raise BoardLost("j4", 4, "gone too")

def test_without_a_board(): ...
"""

BENCH = """
version = 1
name = "desk"
robot = "cobot6:1"

[[board]]
node = 1
joint = "j1"
url = "serial:{port}"
"""

TALKING = """
from jointbench.testing import functional

@functional
def test_hello(live_bench): ...

@functional
def test_again(live_bench): ...
"""


def test_one_error_then_skips_that_name_the_board(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(LOSING)
    result = run(pytester)
    result.assert_outcomes(passed=2, failed=1, skipped=2)
    result.stdout.fnmatch_lines(
        ["SKIPPED [[]2]*: board j3 (node 3) is broken since *::test_losing: its process has ended"]
    )


def test_under_require_the_skips_are_told_with_their_cause(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(LOSING)
    result = run(pytester, "--require", "functional")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["the required tier functional skipped 2 of 4 tests: *board j3 (node 3) is broken since*"]
    )


def test_a_loss_that_a_test_expects_breaks_nothing(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(
        "import pytest\nfrom jointbench.errors import BoardLost\nfrom jointbench.testing import functional\n"
        "@functional\ndef test_a():\n    with pytest.raises(BoardLost):\n        raise BoardLost('j1', 1, 'gone')\n"
        "@functional\ndef test_b(): ...\n"
    )
    run(pytester).assert_outcomes(passed=2)


def test_a_bench_that_does_not_start_is_tried_once(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makeconftest(
        "def pytest_jointbench_start(bench_file, options):\n    raise RuntimeError('no interpreter')\n"
    )
    pytester.makepyfile(LOSING)
    result = run(pytester)
    result.assert_outcomes(passed=1, errors=1, skipped=3)
    result.stdout.fnmatch_lines(["*: bench desk is broken since *::test_first: it did not start: no interpreter"])


@pytest.fixture
def silent_port() -> Iterator[Path]:
    """A serial port with nobody at its other end."""
    ours, theirs = os.openpty()
    yield Path(os.ttyname(theirs))
    os.close(ours)
    os.close(theirs)


def test_a_board_that_does_not_answer_before_a_test_is_broken(pytester: pytest.Pytester, silent_port: Path) -> None:
    pytester.path.joinpath("desk.toml").write_text(BENCH.format(port=silent_port))
    pytester.makepyfile(TALKING)
    result = run(pytester, bench="desk.toml")
    result.assert_outcomes(errors=1, skipped=1)
    result.stdout.fnmatch_lines(
        ["SKIPPED *: board j1 (node 1) is broken since *::test_hello: no answer to HELLO in 4 *"]
    )


def test_a_port_that_is_not_there_is_named(pytester: pytest.Pytester, tmp_path: Path, silent_port: Path) -> None:
    pytester.path.joinpath("desk.toml").write_text(BENCH.format(port=silent_port))
    pytester.makepyfile(TALKING)
    result = run(pytester, "--bench-port", str(tmp_path / "ttyUSB7"), bench="desk.toml")
    result.assert_outcomes(errors=1, skipped=1)
    result.stdout.fnmatch_lines([f"*: board j1 (node 1) is broken since *: port {tmp_path}/ttyUSB7 cannot be opened*"])


def test_one_port_cannot_stand_for_two(pytester: pytest.Pytester) -> None:
    second = '[[board]]\nnode = 2\njoint = "j2"\nurl = "serial:/dev/b"\n'
    pytester.path.joinpath("desk.toml").write_text(BENCH.format(port="/dev/a").replace(":1", ":2") + second)
    pytester.makepyfile(TALKING)
    result = run(pytester, "--bench-port", "/dev/c", bench="desk.toml")
    result.assert_outcomes(errors=1, skipped=1)
    result.stdout.fnmatch_lines(["*desk.toml has 2 ports, and --bench-port gives one; write the ports into a bench*"])


@pytest.mark.parametrize(
    ("error", "in_setup", "what"),
    [
        (BoardLost("j1", 1, "gone"), False, "board j1 (node 1)"),
        (BoardSilent("j1", 1, "said nothing"), True, "board j1 (node 1)"),
        (BoardSilent("j1", 1, "said nothing"), False, None),
        (BenchLost("it has ended"), False, "the bench"),
        (BoardFault("j1", 1, "over-current"), True, None),
        (AssertionError("1 != 2"), True, None),
    ],
)
def test_what_breaks_a_bench(error: Exception, in_setup: bool, what: str | None) -> None:
    broken = broken_by(error, "test_a", in_setup)
    assert (broken.what if broken else None) == what
