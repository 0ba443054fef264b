"""The plugin in pytest runs of its own, with benches that a conftest.py starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from jointbench.tests.testing.desks import TESTS, run, with_bench

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
        "    heavy = {'numpy', 'serial', 'jinja2', 'jointwire', 'jointbench.link', 'jointbench.robot'}\n"
        "    assert not heavy & sys.modules.keys()\n"
    )
    result = pytester.runpytest_subprocess("-p", "jointbench.testing.plugin", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
