"""A page's blocks of code with the invisible remarks before them, and the commands that it tells its reader to type.

A remark is an HTML comment on the lines before a block; the site and a reader of the file do not show it:

    <!-- not run: it needs a real board -->                   the whole block
    <!-- not run `jointbench repl`: somebody must type -->    its commands that begin so
    <!-- played by hil_tests/test_demos.py: minutes --> not run for this page, but by that test
    <!-- exit 1: a refused joint is a no -->                     the exit code that is meant, else 0
    <!-- meanwhile `./run sim`: until the page ends -->       it goes on beside the page's other commands
    <!-- given: ./run export cobot6 --out arm.urdf -->        how to get what its reader has already; it is run before
    <!-- beside: ./run sim BENCH -->                          what its reader has going on already

`python -m tools.docs.commands PAGE LANGUAGE [N]` prints a page's block of a language, the first or Nth.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from jointbench.cli.parser import build_parser

_REMARK = re.compile(
    r"<!--\s*(not run|played by [\w./]+|exit \d|meanwhile|given|beside)\b(?: `([^`]+)`)?: (.+?)\s*-->", re.DOTALL
)
_FENCE = re.compile(r"\s*```(\w*)\s*$")


@dataclass(frozen=True)
class Remark:
    """A page's remark on its next block: a word, the beginning of the commands it is about ("": all), and why."""

    word: str
    about: str
    why: str


@dataclass(frozen=True)
class Block:
    """Some code of a page: `language` is the fence's word, or "indented"; `line` is its first line, from 1."""

    language: str
    line: int
    lines: tuple[str, ...]
    remarks: tuple[Remark, ...]

    @property
    def text(self) -> str:
        """The code as one text."""
        return "\n".join(self.lines) + "\n"


def blocks_of(path: Path) -> list[Block]:
    """The fenced and indented blocks of a Markdown file, in order."""
    found: list[Block] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    before = at = 0  # where the text before the next block begins
    while at < len(lines):
        fence, begins = _FENCE.match(lines[at]), _is_indented(lines, at)
        if not fence and not begins:
            at += 1
            continue
        first = at + 1 if fence else at
        end = first
        while end < len(lines) and (not _FENCE.match(lines[end]) if fence else _goes_on(lines, end)):
            end += 1
        remarks = tuple(Remark(*found) for found in _REMARK.findall("\n".join(lines[before:at])))
        margin = min((len(line) - len(line.lstrip()) for line in lines[first:end] if line.strip()), default=0)
        block = tuple(line[margin:].rstrip() for line in lines[first:end])
        found.append(Block(fence[1] if fence else "indented", first + 1, block, remarks))
        before = at = end + 1 if fence else end
    return found


def _is_indented(lines: list[str], at: int) -> bool:
    return lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip())


def _goes_on(lines: list[str], at: int) -> bool:
    following = next((line for line in lines[at:] if line.strip()), "")
    return following.startswith("    ") and not (not lines[at].strip() and _FENCE.match(following))


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


ROOT = Path(__file__).resolve().parents[2]


def verbs_of_run() -> set[str]:
    """Verbs that `./run` does itself or hands to tools/."""
    text = (ROOT / "run").read_text(encoding="utf-8")
    return {"setup", *re.findall(r"^ +tool (\w+) ", text, re.MULTILINE), *re.findall(r"%s\\n' ([\w-]+) ", text)}


def fault_of(text: str) -> str:
    """Fault of a command line for `./run` or `jointbench`; "" for one that parses, and for any other program.

    >>> fault_of("./run fit runs/mine --friction choose"), fault_of("cc -o x x.c")
    ('', '')
    >>> print(fault_of("jointbench fit runs/mine --law x"))
    jointbench: unrecognized arguments: --law x; `jointbench --help` shows what it takes
    """
    words = shlex.split(text, comments=True)
    words = words[: next((at for at, word in enumerate(words) if word in ("&&", "|", "&", ";", ">")), len(words))]
    if not words or words[0] not in ("./run", "jointbench"):
        return ""
    if words[0] == "./run" and (len(words) == 1 or words[1] in verbs_of_run()):
        return ""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            build_parser().parse_args(words[1:])
        except SystemExit as end:
            return said.getvalue().strip() if end.code else ""
    return ""


def main(page: str, language: str, which: str = "1") -> int:
    """Print a page's block of a language, the first or the one of this number; exit code 1 when it has no such one."""
    blocks = [block for block in blocks_of(Path(page)) if block.language == language]
    if not 1 <= int(which) <= len(blocks):
        print(f"{page} has {len(blocks)} blocks of {language!r}, and no number {which}", file=sys.stderr)
        return 1
    print(blocks[int(which) - 1].text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
