"""Requirements of a suite, values held against their limits, and the fixture that does it."""

import json
import math
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import BeyondLimit, FileError
from jointbench.testing.requirements import Requirement, assert_within, load, nearest_folder

GOOD = """
about = "What is measured on a line."

[[requirement]]
id = "line.answer"
relation = "<="
limit = 20
unit = "ms"
rational = "empirical"
background = "Half of all requests."
test = "tests/test_line.py::test_answers"

[[requirement]]
id = "line.unplugged"
rational = "design"
background = "A line that is unplugged is named."
test = ["tests/test_line.py", "tests/test_port.py"]
"""


def written(folder: Path, text: str = GOOD, name: str = "line") -> Path:
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder


def test_limits_and_statements_are_read(tmp_path: Path) -> None:
    written(tmp_path, GOOD.replace("line.", "port.").replace("line.", "port."), "port")
    requirements = load(written(tmp_path))
    assert list(requirements) == ["line.answer", "line.unplugged", "port.answer", "port.unplugged"]
    assert len(requirements) == 4
    assert requirements["line.answer"] == Requirement(
        "line.answer", "<=", 20.0, "ms", "empirical", "Half of all requests.", ("tests/test_line.py::test_answers",)
    )
    assert requirements["line.answer"].allowed == "<= 20 ms"
    statement = requirements["line.unplugged"]
    assert (statement.relation, statement.limit, statement.unit, statement.allowed) == ("holds", None, "", "holds")
    assert statement.is_statement
    assert statement.tests == ("tests/test_line.py", "tests/test_port.py")
    assert requirements.about["line"] == "What is measured on a line."
    assert [each.id for each in requirements.of("port")] == ["port.answer", "port.unplugged"]


def test_a_requirement_cannot_be_changed_and_tells_itself(tmp_path: Path) -> None:
    requirement = load(written(tmp_path))["line.answer"]
    with pytest.raises(FrozenInstanceError):
        requirement.limit = 40.0  # pyright: ignore[reportAttributeAccessIssue]
    assert requirement.to_dict() == {**asdict(requirement), "tests": ["tests/test_line.py::test_answers"]}


def test_it_makes_a_commands_check(tmp_path: Path) -> None:
    requirements = load(written(tmp_path))
    check = requirements["line.answer"].check(20.5)
    assert (check.name, check.limit, check.relation, check.unit, check.ok) == ("line.answer", 20.0, "<=", "ms", False)
    assert requirements["line.answer"].check(20.0).ok
    with pytest.raises(FileError, match=r"'line\.unplugged' is a statement"):
        requirements["line.unplugged"].check(0.0)


def test_an_unknown_one_is_named_with_those_of_its_file(tmp_path: Path) -> None:
    requirements = load(written(tmp_path))
    with pytest.raises(FileError, match=r"'line\.answr'; there are line\.answer, line\.unplugged; write it"):
        requirements["line.answr"]
    with pytest.raises(FileError, match=r"'port\.speed'; there are line; write it into port\.toml"):
        requirements["port.speed"]
    assert "line.answr" not in requirements
    assert requirements.get("line.answr") is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('id = "line.answer"\n', "", "requirement[0]: 'id' is missing"),
        ('"line.answer"', '"answer"', "'answer': id must begin with 'line.', its file's name"),
        ('"line.answer"', '"line."', "id must begin with 'line.'"),
        ('"line.answer"', '"line.unplugged"', "line.toml: id 'line.unplugged' is there twice"),
        ('relation = "<="', 'relation = "<"', "'line.answer': relation = '<' must be one of '<=', '>=', '=='"),
        ('relation = "<="\n', "", "'line.answer': has a limit or a unit and no relation"),
        ('relation = "<="', 'relation = "holds"', "'line.answer': has a limit or a unit and no relation"),
        ("limit = 20\n", "", "'line.answer': 'limit' is missing"),
        ("limit = 20", "limit = nan", "limit = nan must be a finite number"),
        ("limit = 20", "limit = inf", "limit = inf must be a finite number"),
        ("limit = 20", "limit = true", "limit = True must be a finite number"),
        ("limit = 20", 'limit = "20"', "limit = '20' must be a finite number"),
        ('unit = "ms"\n', "", "'line.answer': 'unit' is missing"),
        ('unit = "ms"', 'unit = ""', "unit = '' says nothing"),
        ('unit = "ms"', 'unit = "%"', "unit = '%' is taken for a fraction by half of all readers"),
        ('unit = "ms"', 'unit = "fraction"', "limit = 20 is no fraction; write 3 % as 0.03"),
        ('"empirical"', '"guess"', "rational = 'guess' must be one of 'design', 'empirical'"),
        ('rational = "empirical"\n', "", "'rational' is missing"),
        ('background = "Half of all requests."\n', "", "'background' is missing"),
        ('"Half of all requests."', '" "', "background = ' ' says nothing"),
        ('test = "tests/test_line.py::test_answers"\n', "", "'test' is missing"),
        ('"tests/test_line.py::test_answers"', "3", "test = 3 must be a list of strings"),
        ('"tests/test_line.py::test_answers"', "[]", "test = [] names no test"),
        ('"tests/test_line.py::test_answers"', '"test_answers"', "test = 'test_answers' must be written folder/"),
        ('"tests/test_line.py::test_answers"', '"/tests/test_line.py"', "must be written folder/"),
        ('"tests/test_line.py::test_answers"', '"../test_line.py"', "must be written folder/"),
        ("limit = 20", "limit = 20\nlimitt = 3", "unknown key 'limitt'; did you mean 'limit'?"),
        ('about = "What is measured on a line."', "", "'about' is missing"),
        ("[[requirement]]\nid", "[requirement]\nid", "is not TOML"),
        ('about = "What is measured on a line."', "x = 1\nabout = '.'", "unknown key 'x'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(FileError) as raised:
        load(written(tmp_path, GOOD.replace(old, new, 1)))
    assert words in str(raised.value)
    assert str(raised.value).startswith(("line.toml", "requirements file "))


def test_a_folder_without_requirements_is_no_set_of_none(tmp_path: Path) -> None:
    """All of nothing hold."""
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileError, match="holds no requirements; write them into"):
            load(folder)


def required(relation: str, limit: float | None, unit: str = "ms") -> Requirement:
    return Requirement("line.answer", relation, limit, unit, "design", "why", ("test_line.py",))


@pytest.mark.parametrize("limit", [0.1, 3.0, -2.5, 1e-300, 1e300, 0.0])
def test_one_step_of_a_float_beyond_is_beyond(limit: float) -> None:
    above, below = math.nextafter(limit, math.inf), math.nextafter(limit, -math.inf)
    for relation, kept, broken in (("<=", below, [above]), (">=", above, [below]), ("==", limit, [above, below])):
        assert assert_within(limit, required(relation, limit)) == limit
        assert assert_within(kept, required(relation, limit)) == kept
        for value in broken:
            with pytest.raises(BeyondLimit) as raised:
                assert_within(value, required(relation, limit))
            assert repr(value) in str(raised.value)
            assert raised.value.value == value


def test_whole_numbers_are_compared_exactly() -> None:
    """As floats the two would be the same number."""
    count = 2**53
    assert_within(np.array([count, 1]), required("<=", float(count), "bytes"))
    with pytest.raises(BeyondLimit, match=r"9007199254740993, the worst of 2$"):
        assert_within(np.array([count + 1, 1]), required("<=", float(count), "bytes"))


def test_it_says_what_was_required_and_what_came() -> None:
    with pytest.raises(AssertionError, match=r"^line\.answer must be <= 20 ms, and is 20\.5$"):
        assert_within(20.5, required("<=", 20))
    with pytest.raises(AssertionError, match=r"^line\.answer must be >= 20 ms, and is 3, the worst of 3$"):
        assert_within([21, 3, 40], required(">=", 20))


@pytest.mark.parametrize("relation", ["<=", ">=", "=="])
@pytest.mark.parametrize(
    "value",
    [
        math.nan, math.inf, -math.inf, np.float32("nan"), [0.0, math.nan], np.array([0.0, np.nan]), [math.nan, 0.0],
        None, [None], [0, None], np.array([0, None]), np.ma.masked, np.ma.array([0.0, 0.0], mask=[False, True]),
        [], (), [[]], [[0.0], []], np.zeros(0), np.zeros((3, 0)), {}, {"value": 0.0}, range(0),
        pytest.param(iter([0.0]), id="iterator"), pytest.param(object(), id="object"),  # their repr is an address
        True, False, np.True_, [False], np.zeros(2, bool), np.timedelta64(0, "us"), np.zeros(2, "m8[us]"),
        "0", "0 ms", b"0", np.array(["0"]), 0j, Fraction(0), object,
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_number_never_passes(value: object, relation: str) -> None:
    with pytest.raises(BeyondLimit, match=r"no number|nothing was measured|nothing can be said|not measured") as raised:
        assert_within(value, required(relation, 0.0))
    assert raised.value.value is None


@pytest.mark.parametrize("limit", [math.inf, math.nan])
def test_a_limit_that_is_none_lets_nothing_pass(limit: float) -> None:
    """Such a requirement is not read from a file; one that is made nevertheless must not say yes to a NaN."""
    with pytest.raises(BeyondLimit):
        assert_within(math.nan, required("==", limit))


def test_the_other_relation_says_the_other_thing() -> None:
    for relation, value in (("<=", 30), (">=", 10), ("==", 10), ("==", 30)):
        with pytest.raises(BeyondLimit):
            assert_within(value, required(relation, 20))
    for relation, value in (("<=", 10), (">=", 30), ("==", 20)):
        assert_within(value, required(relation, 20))


def test_one_bad_value_among_many_is_found_wherever_it_is() -> None:
    for place in range(24):
        values = np.zeros((2, 3, 4))
        values.flat[place] = 21.0
        with pytest.raises(BeyondLimit, match=r"is 21\.0, the worst of 24"):
            assert_within(values, required("<=", 20))
        with pytest.raises(BeyondLimit, match=r"is -21\.0, the worst of 24"):
            assert_within(-values, required("==", 0))


def test_a_value_in_another_unit_does_not_pass() -> None:
    assert_within(3.0, required("<=", 20, "ms"), "ms")
    with pytest.raises(BeyondLimit, match="the value is in s: give it in ms"):
        assert_within(0.003, required("<=", 20, "ms"), "s")
    with pytest.raises(BeyondLimit, match="the value is in "):
        assert_within(3.0, required("<=", 20, "ms"), "")


def test_a_percentage_is_no_fraction_in_either_direction() -> None:
    """A window of ±300 % that was meant as 3 %; and 95 % that passes for more than nine tenths because it is 95."""
    assert_within([0.0, 0.03], required("<=", 0.03, "fraction"))
    assert_within([0.9, 1.0], required(">=", 0.9, "fraction"))
    for value, relation, limit in ((3, "<=", 0.03), (95, ">=", 0.9), (12, ">=", 0.9), (-0.01, "<=", 0.03)):
        with pytest.raises(BeyondLimit):
            assert_within(value, required(relation, limit, "fraction"))
    with pytest.raises(BeyondLimit, match=r"0\.95 … 95 are no fractions: 3 % is 0\.03"):
        assert_within([0.95, 95], required(">=", 0.9, "fraction"))


def test_a_limit_is_not_scaled_by_the_value() -> None:
    """A limit of 3 is 3, and not three times, or 3 % of, anything."""
    with pytest.raises(BeyondLimit):
        assert_within(100.0, required("<=", 3.0))
    with pytest.raises(BeyondLimit):
        assert_within(0.0, required(">=", 3.0))


def test_it_returns_the_worst() -> None:
    assert assert_within([3, 7, 5], required("<=", 20)) == 7
    assert assert_within(np.array([33.0, 27.0]), required(">=", 20)) == 27.0
    assert assert_within(np.float32(0.5), required("<=", 20)) == 0.5
    assert type(assert_within(np.int64(3), required("<=", 20))) is int


def test_a_statement_has_no_limit() -> None:
    with pytest.raises(FileError, match=r"'line\.answer' is a statement and has no limit"):
        assert_within(0.0, required("holds", None, ""))


def test_it_says_no_without_assertions() -> None:
    """Python -O leaves assert statements out."""
    program = """
from jointbench.testing.requirements import assert_within
from jointbench.testing.requirements import Requirement
assert_within(2, Requirement("a.b", "<=", 1, "ms", "design", "why", ("test_a.py",)))
"""
    ended = subprocess.run([sys.executable, "-O", "-c", program], stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.endswith("BeyondLimit: a.b must be <= 1 ms, and is 2\n")


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
    ended = pytester.runpytest_inprocess("-p", "jointbench.testing.requirements", "-p", "no:cacheprovider")
    ended.assert_outcomes(passed=1, failed=5)
    ended.stdout.fnmatch_lines(
        [
            "*BeyondLimit: line.answer must be <= 20 ms, and is 20.5",
            "*BeyondLimit: line.answer must be <= 20 ms, and there is no value: nothing was measured",
            "*BeyondLimit: line.answer must be <= 20 ms, and is nan: nothing can be said of it",
            "*BeyondLimit: line.answer must be <= 20 ms, and the value is in s: give it in ms",
            "*FileError: *requirements has no requirement 'line.speed'; there are line.answer; write it into*",
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
    with pytest.raises(FileError, match=r"no folder requirements/ with \*\.toml files in it beside test_line"):
        nearest_folder(tmp_path / "a" / "b" / "test_line.py", tmp_path / "a" / "b")
