"""The budget of a quick test: what counts, what does not, and what is said when it is spent."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.cpu_budget import cpu_seconds, slowed_down

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
    assert cpu_seconds() >= before + 0.1
