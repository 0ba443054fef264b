"""Whatever is edited in a sealed file is noticed, and named where it is a value."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from jointbench.errors import ExcitationError, FileError
from jointbench.excitation import load_excitation, random_excitation
from jointbench.files import is_sealed, sealed_json, what_changed, write_file
from jointbench.identification import fit, load_model
from jointbench.model import load_robot
from jointbench.tests.identification.synthetic import arm, synthetic_run

VALUES = {"name": "arm", "parameters": [1.0, 2.5e-7, None], "robot": {"joints": ["j1"]}}


def changed(text: str) -> str:
    return what_changed(text, json.loads(text))


def test_what_was_written_is_what_it_was() -> None:
    text = sealed_json(VALUES)
    assert is_sealed(text)
    assert changed(text) == ""
    assert {name: json.loads(text)[name] for name in VALUES} == VALUES
    assert not is_sealed(json.dumps(VALUES, indent=1))


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("2.5e-07", "2.5e-06", "in parameters"),
        ('"j1"', '"j2"', "in robot"),
        ('"name": "arm"', '"nome": "arm"', "in name, nome"),
        ('"name": "arm",', '"name":  "arm",', "in its text, though in none of its values"),
        ('"digest": "', '"digest": "0', "in its text, though in none of its values"),
        ('"digest"', '"dihest"', "in dihest"),
    ],
)
def test_an_edit_is_noticed_and_named(before: str, after: str, where: str) -> None:
    text = sealed_json(VALUES)
    assert before in text
    edited = text.replace(before, after)
    assert changed(edited) == f"was changed after it was written, {where}"
    assert is_sealed(edited)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fit(synthetic_run(arm(1), motion_seed=1, noise_seed=1)).save(tmp_path_factory.mktemp("fit") / "model.json")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    motion = random_excitation(load_robot("cobot6:2"), period=4.0)
    return write_file(tmp_path_factory.mktemp("plan") / "plan.json", sealed_json(motion.to_dict()))


def edits(text: str, count: int) -> list[str]:
    """A text with a character changed, left out or put in, at random."""
    rng = random.Random(1)
    found: list[str] = []
    while len(found) < count:
        at, new = rng.randrange(len(text)), rng.choice('0123456789.-eE,:[]{}" abcz\n')
        edited = rng.choice([text[:at] + new + text[at + 1 :], text[:at] + text[at + 1 :], text[:at] + new + text[at:]])
        if edited.strip() != text.strip():
            found.append(edited)
    return found


@pytest.mark.parametrize(
    ("which", "read", "error"), [("model", load_model, FileError), ("plan", load_excitation, ExcitationError)]
)
def test_every_edit_of_a_file_is_noticed(
    which: str, read: Callable[[str], object], error: type[Exception], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source: Path = request.getfixturevalue(which)
    read(str(source))
    path = tmp_path / source.name
    for edited in edits(source.read_text(encoding="utf-8"), 100):
        path.write_text(edited, encoding="utf-8")
        with pytest.raises(error):
            read(str(path))
