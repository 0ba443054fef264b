"""`./run hil`: what it asks of pytest, and that its result is the report's file."""

import argparse
import json
from pathlib import Path

import pytest

from tools.hil import ROOT, SUITE, SuiteResult, names_tests, parser, pytest_command


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
