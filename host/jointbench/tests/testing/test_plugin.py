"""The pytest plugin: which tests run on which bench, tiers that must run, and boards that are gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jointbench.errors import BenchLost, BoardFault, BoardLost, BoardSilent
from jointbench.testing.session import broken_by
from jointbench.tests.testing.test_taking_turns import TESTS, run, with_bench

pytest_plugins = ["pytester"]


@pytest.fixture
def desk(pytester: pytest.Pytester) -> pytest.Pytester:
    return with_bench(pytester)


def test_a_skip_names_what_the_bench_lacks(desk: pytest.Pytester) -> None:
    desk.makepyfile(TESTS)
    result = run(desk)
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "*bench desk lacks torque_sensor",
            "*realtime tests need a bench whose clock is wall; bench desk has clock virtual",
        ]
    )
    assert result.ret == 0


@pytest.mark.parametrize(
    ("clock", "skipped"), [("virtual", "test_jitter"), ("icount", "test_jitter"), ("wall", "test_torque")]
)
def test_tiers_go_by_the_clock(pytester: pytest.Pytester, clock: str, skipped: str) -> None:
    with_bench(pytester, clock, ("motor", "torque_sensor", "supply")).makepyfile(TESTS)
    result = run(pytester, "-v")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines([f"*::{skipped} SKIPPED*"])


def test_without_a_bench_every_bench_test_is_skipped_and_no_other(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS + "\ndef test_sum(): assert 1 + 1 == 2\n")
    result = run(pytester, bench="")
    result.assert_outcomes(passed=1, skipped=3)
    result.stdout.fnmatch_lines(["*there is no bench; give --bench=NAME or --bench=FILE"])


def test_the_bench_is_started_once_with_the_seed_and_ended(desk: pytest.Pytester) -> None:
    desk.makepyfile(
        "from jointbench.testing import functional\n"
        "@functional\ndef test_a(bench_under_test): print('A', bench_under_test.seed)\n"
        "@functional\ndef test_b(bench_under_test): print('B')\n"
    )
    result = run(desk, "-s", "--bench-seed", "7")
    result.stdout.fnmatch_lines(["bench: *desk.toml, seed 7", "*START", "A 7", ".B", ".END"])
    assert result.stdout.str().count("START") == 1


@pytest.mark.parametrize("named", [("--bench", "desk"), pytest.param((), marks=pytest.mark.slow)])
def test_all_processes_leave_their_results_in_one_folder(desk: pytest.Pytester, named: tuple[str, ...]) -> None:
    desk.makepyfile(
        "from jointbench.testing import functional\n"
        "@functional\ndef test_a(bench_under_test): raise AssertionError(f'OUT {bench_under_test.out} END')\n"
    )
    desk.makeini("[pytest]\njointbench_bench = desk\n")
    result = run(desk, *named, "-n", "1", bench="")
    out = Path(result.stdout.str().rpartition("Error: OUT ")[2].partition(" END")[0])
    folders = list((desk.path / "runs").glob("*"))
    assert folders == ([out] if named else [])
    assert out.exists() == bool(named)


def test_without_a_bench_test_no_bench_is_started(desk: pytest.Pytester) -> None:
    desk.makepyfile("def test_sum(): assert 1 + 1 == 2\n")
    result = run(desk, "-s")
    result.assert_outcomes(passed=1)
    assert "START" not in result.stdout.str()


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("@functional\n@needs('moter')", "*test_a needs 'moter', which is no feature; there are current, *motor, *"),
        ("@functional\n@needs()", "*test_a: needs() must name features*"),
        ("@needs('motor')", "*test_a runs on a bench and has no tier; mark it with one of functional, determin*"),
        ("", "*test_a runs on a bench and has no tier*"),
        ("@functional\n@realtime", "*test_a is marked functional and realtime; a test has one tier"),
    ],
)
def test_marks_that_say_nothing_are_refused(desk: pytest.Pytester, test: str, said: str) -> None:
    desk.makepyfile(
        f"from jointbench.testing import functional, needs, realtime\n{test}\ndef test_a(bench_under_test): ...\n"
    )
    result = run(desk)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])


def test_a_bench_may_have_features_of_its_own(pytester: pytest.Pytester) -> None:
    with_bench(pytester, features=("brake",)).makepyfile(
        "from jointbench.testing import functional, needs\n@functional\n@needs('brake')\ndef test_a(): ...\n"
    )
    pytester.makeini("[pytest]\njointbench_features =\n    brake: each joint has a brake\n")
    run(pytester).assert_outcomes(passed=1)
    pytester.makeini("[pytest]\n")
    pytester.makepyfile("from jointbench.testing import functional\n@functional\ndef test_a(): ...\n")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*desk.toml: features has brake; there are current, *"])


@pytest.mark.parametrize(
    ("bench", "said"),
    [
        ("chair", "*--bench chair: there is no such bench; there are desk in *"),
        ("chair.toml", "*--bench chair.toml: there is no such file"),
    ],
)
def test_a_bench_that_is_not_there(desk: pytest.Pytester, bench: str, said: str) -> None:
    result = run(desk, bench=bench)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_a_run_without_benches_loads_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\n"
        "def test_light():\n"
        "    heavy = {'numpy', 'serial', 'jinja2', 'jointwire', 'jointbench.bench', 'jointbench.model'}\n"
        "    assert not heavy & sys.modules.keys()\n"
    )
    result = pytester.runpytest_subprocess("-p", "jointbench.testing.plugin", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)


ALL = ("motor", "torque_sensor", "supply")


def test_all_of_a_required_tier_ran(pytester: pytest.Pytester) -> None:
    with_bench(pytester, features=ALL).makepyfile(TESTS)
    result = run(pytester, "--require", "functional, deterministic")
    result.assert_outcomes(passed=2, skipped=1)  # the realtime one, which is not required
    assert result.ret == 0
    assert "required tiers" not in result.stdout.str()


def test_a_skip_in_a_required_tier_fails_the_run(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(TESTS)
    result = run(pytester, "--require", "functional,deterministic")
    result.assert_outcomes(passed=1, skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*required tiers*",
            "the required tier deterministic skipped 1 of 1 tests: *::test_torque (bench desk lacks torque_sensor)",
        ]
    )
    assert "tier functional" not in result.stdout.str()


def test_a_required_tier_without_tests_fails_the_run(pytester: pytest.Pytester) -> None:
    with_bench(pytester, features=ALL).makepyfile(TESTS)
    result = run(pytester, "--require", "deterministic", "-k", "motor")
    result.assert_outcomes(passed=1, deselected=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["the required tier deterministic has no test in this run"])


def test_no_test_at_all_fails_the_run(pytester: pytest.Pytester) -> None:
    result = run(with_bench(pytester), "--require", "functional")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_without_a_bench_nothing_required_can_pass(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    result = run(pytester, "--require", "functional", bench="")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["the required tier functional skipped 1 of 1 tests: *there is no bench*"])


@pytest.mark.parametrize(
    "excuse", ["@pytest.mark.skip(reason='a')", "@pytest.mark.xfail(reason='a')", "@pytest.mark.xfail(run=False)"]
)
def test_no_excuse_counts(pytester: pytest.Pytester, excuse: str) -> None:
    with_bench(pytester).makepyfile(
        f"import pytest\nfrom jointbench.testing import functional\n{excuse}\n@functional\ndef test_a(): assert False\n"
    )
    result = run(pytester, "--require", "functional")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["the required tier functional skipped 1 of 1 tests: *::test_a (*)"])


def test_a_failed_test_stays_the_failure(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(
        "from jointbench.testing import functional\n@functional\ndef test_a(): assert False\n"
    )
    result = run(pytester, "--require", "functional")
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "required tier functional" not in result.stdout.str()


def test_skips_of_other_processes_count_too(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(TESTS)
    result = run(pytester, "--require", "functional,deterministic", "-n", "1")
    result.assert_outcomes(passed=1, skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["the required tier deterministic skipped 1 of 1 tests: *"])


@pytest.mark.parametrize("processes", [(), pytest.param(("-n", "1"), marks=pytest.mark.slow)])
def test_a_file_that_is_skipped_as_a_whole_counts_too(pytester: pytest.Pytester, processes: tuple[str, ...]) -> None:
    with_bench(pytester, features=ALL).makepyfile(
        TESTS, test_tool="import pytest\npytest.skip('no tool', allow_module_level=True)\n"
    )
    result = run(pytester, "--require", "functional", *processes)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["the required tier functional skipped 1 of 2 tests: test_tool.py (no tool)"])


def test_listing_tests_requires_nothing(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(TESTS)
    assert run(pytester, "--require", "deterministic", "--collect-only").ret == 0


def test_an_unknown_tier_is_refused(pytester: pytest.Pytester) -> None:
    result = run(with_bench(pytester), "--require", "functional,perfect")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'perfect' is no tier; there are functional, deterministic, realtime"])


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
