"""What must fail although nothing that runs does: bench tiers that are not run, tools that are not there."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hil_tests.need_qemu import need_qemu
from tools import test
from tools.cpu_budget import cpu_seconds, slowed_down
from tools.tests.local_mirror import ROOT


def test_the_bench_tiers_are_required_of_a_whole_run() -> None:
    assert test.chosen([]) == ["-m", "not slow", "--require", "functional,deterministic"]
    assert test.chosen(["--slow"]) == ["--require", "functional,deterministic"]
    assert test.chosen(["host"]) == ["-m", "not slow", "host"]
    assert test.chosen(["--slow", "host"]) == ["host"]
    assert test.chosen(["-m", "slow"]) == ["-m", "slow"]


def test_a_check_that_fails_ends_the_run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(test, "checks", lambda _: {"ruff": ["false"], "pytest": ["echo", "ran"]})
    monkeypatch.setattr(test, "BESIDE", {"pyright": ["echo", "no errors"]})
    assert test.main([]) == 1
    captured = capfd.readouterr()
    assert "ruff failed: no test was run" in captured.err
    assert "ran\n" not in captured.out


def test_a_check_beside_the_tests_fails_the_run_and_is_told_after_them(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(test, "checks", lambda _: {"pytest": ["echo", "ran"]})
    monkeypatch.setattr(test, "BESIDE", {"pyright": ["sh", "-c", "echo 1 error; exit 1"]})
    assert test.main([]) == 1
    captured = capfd.readouterr()
    assert captured.out.index("ran\n") < captured.out.index("1 error\n")
    assert captured.err == "pyright failed\n"
    monkeypatch.setattr(test, "BESIDE", {"pyright": ["true"]})
    assert test.main([]) == 0


@pytest.fixture
def ci(tmp_path: Path) -> Path:
    """CI's script, with a `run` that says how it was called and fails for a verb named by FAILS."""
    script = tmp_path / ".ci" / "run"
    script.parent.mkdir()
    shutil.copy2(ROOT / ".ci" / "run", script)
    run = tmp_path / "run"
    run.write_text('#!/bin/sh\necho "CI=$CI $*"\n[ "$1" != "$FAILS" ]\n')
    run.chmod(0o755)
    return script


def call(script: Path, fails: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "CI"} | {"FAILS": fails}
    return subprocess.run([script], env=env, cwd="/", capture_output=True, text=True, check=False)


def test_ci_requires_all_that_it_runs(ci: Path) -> None:
    done = call(ci, "")
    assert done.stdout.splitlines() == [
        "CI=true test --slow",
        "CI=true hil --bench qemu2 --require functional,deterministic",
    ]
    assert done.returncode == 0


@pytest.mark.parametrize("verb", ["test", "hil"])
def test_ci_fails_with_each_of_its_parts(ci: Path, verb: str) -> None:
    assert call(ci, verb).returncode == 1


@pytest.mark.parametrize(("ci", "what"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_qemu_may_be_missing_on_a_desk_but_not_in_ci(
    ci: str, what: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JOINTBENCH_QEMU", str(tmp_path / "qemu-system-arm"))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(what, match="no qemu-system-arm at"):
        need_qemu()


pytest_plugins = ["pytester"]

BURN = "import time\ndef burn(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite with a budget of 0.2 s, on a machine that is quiet whatever this one is."""
    monkeypatch.setattr("os.getloadavg", lambda: (0.5, 0.5, 0.5))
    pytester.makeini("[pytest]\ncpu_budget_s = 0.2\nmarkers = slow: takes long\n")
    pytester.makeconftest('pytest_plugins = ["tools.cpu_budget"]')
    return pytester


def outcome(suite: pytest.Pytester, tests: str) -> tuple[dict[str, int], str]:
    suite.makepyfile(f"import pytest, subprocess, sys, time\n{BURN}{tests}")
    result = suite.runpytest_inprocess("-p", "no:xdist", "-p", "no:cacheprovider")
    return result.parseoutcomes(), result.stdout.str()


def test_a_test_that_burns_too_much_fails_with_what_to_do(suite: pytest.Pytester) -> None:
    outcomes, text = outcome(suite, "def test_a(): burn(0.3)\ndef test_b(): burn(0.01)\n")
    assert outcomes == {"passed": 2, "errors": 1}
    assert "::test_a took 0.3 CPU-seconds; 0.2 are allowed. Make it cheaper, or mark it slow" in text


def test_waiting_is_free_and_a_slow_test_may_burn(suite: pytest.Pytester) -> None:
    tests = "def test_a(): time.sleep(0.3)\n@pytest.mark.slow\ndef test_b(): burn(0.3)\n"
    assert outcome(suite, tests)[0] == {"passed": 2}


def test_a_child_process_counts(suite: pytest.Pytester) -> None:
    program = BURN + "burn(0.3)"
    outcomes, _ = outcome(suite, f"def test_a(): subprocess.run([sys.executable, '-Sc', {program!r}])\n")
    assert outcomes == {"passed": 1, "errors": 1}


def test_a_shared_fixture_counts_apart_and_has_a_budget_of_its_own(suite: pytest.Pytester) -> None:
    fixture = "@pytest.fixture(scope='module')\ndef made(): burn({})\ndef test_a(made): pass\ndef test_b(made): pass\n"
    assert outcome(suite, fixture.format(0.3))[0] == {"passed": 2}
    outcomes, text = outcome(suite, fixture.format(0.5))
    assert outcomes == {"passed": 1, "errors": 1}
    assert "the fixture 'made' took 0.5 CPU-seconds; 0.4 are allowed" in text


@pytest.mark.parametrize(("load", "factor"), [(0.1, 1.0), (1.5, 1.5), (9.0, 2.0)])
def test_a_busy_machine_allows_up_to_twice(load: float, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.getloadavg", lambda: (2.0 * load, 0.0, 0.0))
    assert slowed_down() == factor


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="running processes are read from /proc")
def test_a_process_that_still_runs_is_counted() -> None:
    before = cpu_seconds()
    with subprocess.Popen([sys.executable, "-Sc", "while True: pass"]) as process:
        while cpu_seconds() < before + 0.1:
            time.sleep(0.01)
        process.kill()
    # The system rounds user's and system's time of an ended process down to ticks of 10 ms, each by itself.
    assert cpu_seconds() >= before + 0.08
