"""docs/biped.md names errors that exist, commands that parse, and imports that work."""

import re
import shlex
from pathlib import Path

import pytest

from jointbench import errors
from jointbench.cli.parser import build_parser

PAGE = (Path(__file__).parents[4] / "docs" / "biped.md").read_text(encoding="utf-8")


def test_every_error_of_the_page_is_one() -> None:
    named = re.findall(r"`((?:[A-Z][a-z]+){2,}|StanceError)`", PAGE[PAGE.index("## Refusals") :])

    assert {"StuckFootSensor", "FootOffGround", "RobotFell", "WrongTotalMass", "StanceError"} <= set(named)
    assert all(issubclass(getattr(errors, name), errors.StanceError) for name in named)


@pytest.mark.parametrize("line", [line for line in PAGE.splitlines() if line.startswith("jointbench ")])
def test_every_command_of_the_page_parses(line: str) -> None:
    assert build_parser().parse_args(shlex.split(line, comments=True)[1:]).verb == line.split()[1]


def test_the_program_of_the_page_names_what_there_is() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    imports = [line for line in program.splitlines() if line.startswith(("import", "from"))]

    exec("\n".join(imports), {})
