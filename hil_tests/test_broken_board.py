"""A board that dies under the pytest plugin: one error, then skips that name it, in a pytest run of its own."""

import json
from pathlib import Path

import pytest

from hil_tests.pendulum import COBOT6_PLANT

pytest_plugins = ["pytester"]

BENCH = f"""
version = 1
name = "two"
robot = "cobot6:2"
plant = {json.dumps(str(COBOT6_PLANT))}
board = [{{ node = 1, joint = "j1", url = "unix:" }}, {{ node = 2, joint = "j2", url = "unix:" }}]
"""

TESTS = """
import os, signal, tomllib
from jointbench.bench import open_bench
from jointbench.testing import functional, needs

@functional
@needs("several_boards")
def test_whole(live_bench):
    with open_bench(live_bench) as bench:
        bench.connect()

@functional
def test_deadly(live_bench):
    pids = {board["joint"]: board["pid"] for board in tomllib.loads(live_bench.read_text())["board"]}
    os.kill(pids["j2"], signal.SIGKILL)

@functional
def test_next(live_bench): ...

@functional
def test_last(live_bench): ...
"""


@pytest.mark.slow
def test_a_dead_board_ends_one_test_and_is_the_reason_why_others_do_not_run(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    bench = tmp_path / "two.toml"
    bench.write_text(BENCH)
    pytester.makeconftest("from hil_tests.conftest import pytest_jointbench_start")
    pytester.makepyfile(test_two=TESTS)
    where = (f"--bench={bench}", "--bench-out=out", "--require=functional")
    plugins = ("-p", "jointbench.testing.plugin", "-p", "no:cacheprovider", "-rs")
    result = pytester.runpytest_inprocess(*plugins, *where)
    result.assert_outcomes(passed=2, errors=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "the required tier functional skipped 1 of 4 tests: test_two.py::test_last (board j2 (node 2) is broken *",
            "SKIPPED *: board j2 (node 2) is broken since test_two.py::test_next: its process has ended: *",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
