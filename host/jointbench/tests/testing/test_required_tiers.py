"""--require: a run that left a required tier out, or a part of it, has not passed."""

from __future__ import annotations

import pytest

from jointbench.tests.testing.desks import TESTS, run, with_bench

pytest_plugins = ["pytester"]

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
