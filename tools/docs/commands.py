"""What a page tells its reader to type: shell commands and Python, in order, and what it says of each."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from tools.docs.page import Block, Remark, blocks_of

PROGRAMS = ("./run", "jointbench", "pytest", "pip", "pipx", "cc", "cp", ".venv/bin/python", ".venv/bin/uv")
"""What a line begins with that is a command, in a block that shows output as well."""

_EXIT = re.compile(r"\(exit code (\d)\)")


@dataclass(frozen=True)
class Command:
    """One thing to type.

    Attributes:
        line: of the page, from 1.
        text: as printed, without the words beside it that say what it does.
        is_python: whether it is Python, all of a block, and not a line for the shell.
        why_not: why it is not run for this page; "" where it is.
        played_by: the test that does the same, as a path; "" where none does.
        exit_code: that is meant.
        meanwhile: whether it goes on beside the commands after it.
        given: how to get what its reader has already: commands for the shell, or Python.
        beside: a command that its reader has going on already.
    """

    line: int
    text: str
    is_python: bool = False
    why_not: str = ""
    played_by: str = ""
    exit_code: int = 0
    meanwhile: bool = False
    given: str = ""
    beside: str = ""


def commands_of(path: Path) -> list[Command]:
    """The commands of a page, in the order in which they stand there."""
    return [command for block in blocks_of(path) for command in _of_block(block)]


def _of_block(block: Block) -> list[Command]:
    if block.language == "python":
        return [_remarked(Command(block.line, block.text, is_python=True), block.remarks)]
    found: list[Command] = []
    for number, line in enumerate(block.lines, block.line):
        text = _command_in(line, block.language)
        if text:
            found.append(_remarked(Command(number, text, exit_code=_shown_code(block, number)), block.remarks))
    return _given_once(found)


def _given_once(commands: list[Command]) -> list[Command]:
    """What is given to the first of several commands, is there for the others."""
    found: list[Command] = []
    had: set[str] = set()
    for each in commands:
        found.append(
            replace(each, given=each.given * (each.given not in had), beside=each.beside * (each.beside not in had))
        )
        had |= {each.given, each.beside} if not each.why_not else set()
    return found


def _command_in(line: str, language: str) -> str:
    """The command that a line shows, without the words beside it.

    >>> _command_in("./run fit runs/mine      parameters ± σ", "indented")
    './run fit runs/mine'
    >>> _command_in("jointbench compare a.json b.json   # torques", "sh"), _command_in("$ ls", "console")
    ('jointbench compare a.json b.json', 'ls')
    >>> _command_in("jointbench: slot a runs", "indented"), _command_in("next: jointbench fit", "console")
    ('', '')
    """
    if language == "console":
        return line.removeprefix("$ ") if line.startswith("$ ") else ""
    if language not in ("", "sh", "indented") or line.split(" ")[0] not in PROGRAMS:
        return ""
    return re.split(r"\s{2,}|\s#\s", line)[0]


def _shown_code(block: Block, number: int) -> int:
    """The exit code that a console shows under the command on this line, else 0."""
    for line in block.lines[number - block.line + 1 :]:
        if line.startswith("$ "):
            break
        if shown := _EXIT.fullmatch(line.strip()):
            return int(shown[1])
    return 0


def _remarked(command: Command, remarks: tuple[Remark, ...]) -> Command:
    about = [remark for remark in remarks if command.text.startswith(remark.about)]
    said = {remark.word: remark.why for remark in about}
    players = [word.removeprefix("played by ") for word in said if word.startswith("played by ")]
    codes = [int(word.split()[1]) for word in said if word.startswith("exit")]
    return Command(
        command.line,
        command.text,
        command.is_python,
        why_not=said[f"played by {players[0]}"] if players else said.get("not run", ""),
        played_by=players[0] if players else "",
        exit_code=codes[0] if codes else command.exit_code,
        meanwhile="meanwhile" in said,
        given=said.get("given", ""),
        beside=said.get("beside", ""),
    )
