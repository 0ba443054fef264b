"""The fixture `measured`, in pytest runs of their own: it fails tests, and notes what it held against what."""

import json
from pathlib import Path

import pytest

from jointbench.errors import RequirementsError
from jointbench.testing.measured import nearest_folder

pytest_plugins = ["pytester"]

REQUIRED = """
about = "Lines."
[[requirement]]
id = "line.answer"
relation = "<="
limit = 20
unit = "ms"
rational = "design"
background = "Why."
test = "tests/test_line.py"
"""
# What was noted, beside what became of each test.
CONFTEST = """
import json
import pytest
from jointbench.testing.record import noted

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call":
        with open(item.config.rootpath / "noted.jsonl", "a") as file:
            print(json.dumps([item.name, report.outcome, noted(item).get("measured", [])]), file=file)
    return report
"""
TESTS = """
import math

def test_kept(measured): measured("line.answer", [3, 19.5], "ms")
def test_beyond(measured): measured("line.answer", 20.5)
def test_nothing(measured): measured("line.answer", [])
def test_not_a_number(measured): measured("line.answer", math.nan)
def test_other_unit(measured): measured("line.answer", 0.01, "s")
def test_unknown(measured): measured("line.speed", 3)
"""


def test_it_fails_tests_and_notes_what_was_measured(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    tests = pytester.mkdir("tests")
    (tests / "test_line.py").write_text(TESTS, encoding="utf-8")
    (pytester.mkdir("requirements") / "line.toml").write_text(REQUIRED, encoding="utf-8")
    ended = pytester.runpytest_inprocess("-p", "jointbench.testing.measured", "-p", "no:cacheprovider")
    ended.assert_outcomes(passed=1, failed=5)
    ended.stdout.fnmatch_lines(
        [
            "*BeyondLimit: line.answer must be <= 20 ms, and is 20.5",
            "*BeyondLimit: line.answer must be <= 20 ms, and there is no value: nothing was measured",
            "*BeyondLimit: line.answer must be <= 20 ms, and is nan: nothing can be said of it",
            "*BeyondLimit: line.answer must be <= 20 ms, and the value is in s: give it in ms",
            "*UnknownRequirement: *requirements has no requirement 'line.speed'; there are line.answer; write it into*",
        ]
    )
    lines = (pytester.path / "noted.jsonl").read_text().splitlines()
    noted = {name: (outcome, facts) for name, outcome, facts in map(json.loads, lines)}
    assert {name: outcome for name, (outcome, _) in noted.items()} == {
        name: "passed" if name == "test_kept" else "failed" for name in noted
    }
    assert [(fact["value"], fact["ok"]) for fact in noted["test_kept"][1]] == [(19.5, True)]
    assert [(fact["value"], fact["ok"]) for fact in noted["test_beyond"][1]] == [(20.5, False)]
    for name in ("test_nothing", "test_not_a_number", "test_other_unit"):
        assert [(fact["value"], fact["ok"]) for fact in noted[name][1]] == [(None, False)]
    assert noted["test_unknown"][1] == []
    (fact,) = noted["test_kept"][1]
    assert (fact["id"], fact["relation"], fact["limit"], fact["unit"]) == ("line.answer", "<=", 20.0, "ms")


def test_the_nearest_folder_with_requirements_is_taken(tmp_path: Path) -> None:
    for folder in ("requirements", "a/requirements", "a/b/requirements"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("requirements/line.toml", "a/requirements/line.toml", "a/b/requirements/requirements.txt"):
        (tmp_path / name).touch()
    assert nearest_folder(tmp_path / "a" / "b" / "test_line.py", tmp_path) == tmp_path / "a" / "requirements"
    assert nearest_folder(tmp_path / "test_line.py", tmp_path) == tmp_path / "requirements"
    with pytest.raises(RequirementsError, match=r"no folder requirements/ with \*\.toml files in it beside test_line"):
        nearest_folder(tmp_path / "a" / "b" / "test_line.py", tmp_path / "a" / "b")
