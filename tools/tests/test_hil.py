"""`./run hil`: what it asks of pytest, and its result; every requirement is shown by a test that reads its limit."""

import argparse
import json
from pathlib import Path

import pytest

from jointbench.testing.requirements import Requirements, load
from tools.hil import ROOT, SUITE, SuiteResult, names_tests, parser, pytest_command
from tools.requirements import FOLDER, PAGE, missing_tests, page, unknown_ids, unread_limits


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
