"""A page's blocks of code, each with the invisible remarks that stand before it.

A remark is an HTML comment on the lines before a block; the site and a reader of the file do not show it:

    <!-- not run: it needs a real board -->                   the whole block
    <!-- not run `jointbench repl`: somebody must type -->    its commands that begin so
    <!-- played by hil_tests/test_demo_cobot6.py: minutes --> not run for this page, but by that test
    <!-- exit 1: a weak joint is a no -->                     the exit code that is meant, else 0
    <!-- meanwhile `./run sim`: until the page ends -->       it goes on beside the page's other commands
    <!-- given: ./run export cobot6 --out arm.urdf -->        how to get what its reader has already; it is run before
    <!-- beside: ./run sim BENCH -->                          what its reader has going on already
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_REMARK = re.compile(
    r"<!--\s*(not run|played by [\w./]+|exit \d|meanwhile|given|beside)\b(?: `([^`]+)`)?: (.+?)\s*-->", re.DOTALL
)
_FENCE = re.compile(r"\s*```(\w*)\s*$")


@dataclass(frozen=True)
class Remark:
    """What a page says of the next block: a word, the beginning of the commands it is about ("": all), and why."""

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
