"""Requirement files: what stands in them is read strictly, and what is wrong is named by file, id and key."""

from dataclasses import FrozenInstanceError, asdict
from pathlib import Path

import pytest

from jointbench.errors import RequirementsError, UnknownRequirement
from jointbench.testing.requirements import Requirement, load

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
    with pytest.raises(RequirementsError, match=r"'line\.unplugged' is a statement"):
        requirements["line.unplugged"].check(0.0)


def test_an_unknown_one_is_named_with_those_of_its_file(tmp_path: Path) -> None:
    requirements = load(written(tmp_path))
    with pytest.raises(UnknownRequirement, match=r"'line\.answr'; there are line\.answer, line\.unplugged; write it"):
        requirements["line.answr"]
    with pytest.raises(RequirementsError, match=r"'port\.speed'; there are line; write it into port\.toml"):
        requirements["port.speed"]
    assert "line.answr" not in requirements
    assert requirements.get("line.answr") is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('id = "line.answer"\n', "", "requirement[0]: 'id' is missing"),
        ('"line.answer"', '"answer"', "'answer': id must begin with 'line.', its file's name"),
        ('"line.answer"', '"line."', "id must begin with 'line.'"),
        ('"line.answer"', '"line.unplugged"', "line.toml: id 'line.unplugged' is given twice"),
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
    with pytest.raises(RequirementsError) as raised:
        load(written(tmp_path, GOOD.replace(old, new, 1)))
    assert words in str(raised.value)
    assert str(raised.value).startswith(("line.toml", "requirements file "))


def test_a_folder_without_requirements_is_no_set_of_none(tmp_path: Path) -> None:
    """All of nothing hold."""
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(RequirementsError, match="holds no requirements; write them into"):
            load(folder)
