"""docs/import.md prints what it shows: its commands, run in order on the public Kinova recording."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from jointbench.cli.main import main
from jointbench.identification.log_check import check_log
from jointbench.recording.proposal import propose_mapping
from jointbench.tests.identification.log_check.logs import data_folder

PAGE = Path(__file__).parents[4] / "docs" / "import.md"
TEXT = PAGE.read_text(encoding="utf-8")
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
TOLERANCE = 0.05
"""Of the numbers shown: sums in another order, and the solver's last digits, differ between machines."""


def commands() -> list[tuple[list[str], list[str], int]]:
    """Arguments, lines shown, and exit code of each command of the page."""
    found: list[tuple[list[str], list[str], int]] = []
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        for part in block.split("$ jointbench ")[1:]:
            first, *shown = part.splitlines()
            code = int(shown.pop()[-2]) if shown and shown[-1].startswith("(exit code") else 0
            found.append((first.split(), shown, code))
    return found


def same(shown: str, said: str) -> bool:
    """Whether two lines are the same but for the last digits of numbers."""
    if " ".join(NUMBER.sub("#", shown).split()) != " ".join(NUMBER.sub("#", said).split()):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(said), strict=True)
    return all(abs(float(a) - float(b)) <= max(TOLERANCE * abs(float(a)), 1e-3) for a, b in pairs)


def missing(shown: list[str], said: list[str]) -> str | None:
    """The first line shown that was not said in its turn; lines may be left out where an ellipsis stands."""
    place, free = 0, False
    for line in shown:
        if line == "…":
            free = True
            continue
        rest = range(place, len(said)) if free else range(place, min(place + 1, len(said)))
        found = next((k for k in rest if same(line, said[k])), None)
        if found is None:
            return line
        place, free = found + 1, False
    return None


def test_lines_are_held_against_each_other() -> None:
    assert same("joint_2  2.276  11.6%", "joint_2    2.280  11.5%")
    assert not same("joint_2  2.276", "joint_2  2.5")
    assert not same("joint_2 is weak", "joint_2 is refused")
    assert missing(["a 1", "…", "c"], ["a 1", "b", "b", "c"]) is None
    assert missing(["a 1", "c"], ["a 1", "b", "c"]) == "c"
    assert missing(["c", "…", "a"], ["a", "c"]) == "c"


def test_the_page_has_commands_and_names_what_there_is() -> None:
    verbs = {arguments[0] for arguments, _, _ in commands()}
    assert verbs == {"import", "fit", "validate", "report", "export", "compare"}
    assert propose_mapping.__name__ in TEXT
    assert check_log.__name__ in TEXT


@pytest.mark.slow
def test_its_commands_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in data_folder("kinova_gen3").iterdir():
        shutil.copyfile(path, tmp_path / path.name)
    monkeypatch.chdir(tmp_path)
    for arguments, shown, code in commands():
        assert main(arguments) == code, arguments
        said = [line for line in capsys.readouterr().out.splitlines() if not re.fullmatch(r"\d+ s in all", line)]
        assert missing(shown, said) is None, "\n".join([*arguments, *said])
    assert (tmp_path / "report.html").stat().st_size > 0
