"""What must fail although nothing that runs does: bench tiers that are not run, tools that are not there.

`./run hil`: what it asks of pytest, and its result; every requirement is shown by a test that reads its limit.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hil_tests.need_qemu import need_qemu
from jointbench.testing.requirements import Requirements, load
from tools import test
from tools.cpu_budget import cpu_seconds, slowed_down
from tools.hil import SUITE, SuiteResult, names_tests, parser, pytest_command
from tools.requirements import FOLDER, PAGE, missing_tests, page, unknown_ids, unread_limits
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


def options(*arguments: str) -> argparse.Namespace:
    return parser().parse_args(arguments)


def test_the_whole_suite_runs_on_the_named_bench() -> None:
    command = pytest_command(options("--bench", "qemu2", "--seed", "4", "--require", "functional"), Path("/out"))
    assert command[-1] == SUITE
    assert {"--bench=qemu2", "--bench-seed=4", "--bench-out=/out", "--require=functional"} < set(command)
    assert not any("slow" in word or word.startswith("--bench-port") for word in command)
    assert (ROOT / SUITE).is_dir()


def test_files_are_meant_from_where_the_user_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pytest runs from the checkout's folder."""
    monkeypatch.chdir(tmp_path)
    command = pytest_command(options("--bench", "lab.toml", "--campaign", "faults.json", "--quick"), Path("/out"))
    assert {f"--bench={tmp_path}/lab.toml", f"--bench-campaign={tmp_path}/faults.json"} < set(command)
    assert command[command.index("-m", 4) :][:2] == ["-m", "not slow"]


def test_the_command_that_runs_a_test_again_has_what_the_run_was_given() -> None:
    command = pytest_command(options("--bench", "serial", "--port", "/dev/my board", "--quick"), Path("/out"))
    again = "--bench-again=./run hil --bench {bench} --seed {seed} --port '/dev/my board' --quick {require} -- {test}"
    assert {again, "--bench-port=/dev/my board"} < set(command)


def test_named_tests_run_instead_of_the_suite() -> None:
    one = "hil_tests/suite/test_line.py::test_pings"
    assert pytest_command(options("--bench", "unix6", "--", one, "-x"), Path("/out"))[-2:] == [one, "-x"]
    assert pytest_command(options("--", "-k", "ping"), Path("/out"))[-3:] == [SUITE, "-k", "ping"]
    assert names_tests(["hil_tests/suite/test_nothing.py"])  # pytest says that it is not there
    assert not names_tests(["", "-x", "-k", "run", "--ignore=hil_tests/suite/test_line.py"])


def test_the_result_is_what_the_report_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "result.json").write_text(json.dumps({"command": "hil", "checks": []}))
    result = SuiteResult("hil", 0, refused=True, file=tmp_path / "result.json")
    result.write("-", 9.0)
    result.write(str(tmp_path / "copy.json"), 9.0)
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "copy.json").read_text())
    assert result.exit_code == 1


REQUIRED = """
about = "Lines."
[[requirement]]
id = "line.answer"
relation = "<="
limit = 20
unit = "ms"
rational = "design"
background = "Half | of all."
test = ["hil_tests/suite/test_line.py::test_answers", "tools/tests/test_load.py"]
[[requirement]]
id = "line.unplugged"
rational = "design"
background = "Named."
test = "hil_tests/test_port.py"
"""
FILES = {
    "hil_tests/requirements/line.toml": REQUIRED,
    "hil_tests/suite/test_line.py": 'def test_answers(measured):\n    measured("line.answer", 3)\n',
    "hil_tests/test_port.py": "def test_unplugged(): ...\n",
    "tools/load/judge.py": 'CHECKED = ["line.answer"]\n',
    "tools/tests/test_load.py": "def test_load(): ...\n",
}


@pytest.fixture(scope="module")
def ours() -> Requirements:
    return load(FOLDER)


def test_every_requirement_names_tests_that_exist(ours: Requirements) -> None:
    assert missing_tests(ours, ROOT) == [], "a test was removed or renamed: bring it back, or say what shows it now"


def test_every_limit_is_read_by_the_tests_it_names(ours: Requirements) -> None:
    assert unread_limits(ours, ROOT) == [], "hold the value by measured(id, value), or name the test that does"


def test_every_value_is_measured_against_a_requirement_that_exists(ours: Requirements) -> None:
    assert unknown_ids(ours, ROOT) == [], "write it into hil_tests/requirements/, or name another"


def test_the_page_is_current(ours: Requirements) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(ours), "write it anew: python -m tools.requirements"


def found(folder: Path, changes: dict[str, str | None]) -> tuple[list[str], list[str]]:
    """What both checks say of a made-up repository; None is a file that is not there."""
    for name, text in (FILES | changes).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_text(text, encoding="utf-8")
    requirements = load(folder / "hil_tests" / "requirements")
    return missing_tests(requirements, folder), unread_limits(requirements, folder)


FILE_GONE = (["line.unplugged: hil_tests/test_port.py"], [])
TEST_GONE = (["line.answer: hil_tests/suite/test_line.py::test_answers"], [])
NOT_READ = ([], ["line.answer: hil_tests/suite/test_line.py"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ([], [])),
        ({"hil_tests/test_port.py": None}, FILE_GONE),
        ({"hil_tests/test_port.py": "def helper(): ...\n"}, FILE_GONE),
        ({"hil_tests/suite/test_line.py": 'def test_other(): "line.answer"\n'}, TEST_GONE),
        ({"hil_tests/suite/test_line.py": 'def helper():\n    def test_answers(): "line.answer"\n'}, TEST_GONE),
        ({"hil_tests/suite/test_line.py": "def test_answers(): assert 3 <= 20  # line.answer\n"}, NOT_READ),
        ({"tools/load/judge.py": None}, ([], ["line.answer: tools/tests/test_load.py"])),
    ],
)
def test_the_checks_can_fail(tmp_path: Path, changes: dict[str, str | None], said: tuple[list[str], ...]) -> None:
    assert found(tmp_path, changes) == said


def test_an_id_that_nobody_wrote_down_is_found(tmp_path: Path) -> None:
    found(tmp_path, {"hil_tests/test_new.py": 'def test_new(measured):\n    measured("line.gone", 3)\n'})
    requirements = load(tmp_path / "hil_tests" / "requirements")
    assert unknown_ids(requirements, tmp_path) == ["hil_tests/test_new.py: line.gone"]


def test_a_page_tells_limits_statements_and_tests(tmp_path: Path) -> None:
    found(tmp_path, {})
    text = page(load(tmp_path / "hil_tests" / "requirements"))
    assert "\n## Line\n\nLines.\n\n| Id |" in text
    assert "\n| `line.answer` | <= 20 ms | design | Half \\| of all. | `hil_tests/suite/test_line.py::test_ans" in text
    assert "\n| `line.unplugged` | holds | design | Named. | `hil_tests/test_port.py` |\n" in text
