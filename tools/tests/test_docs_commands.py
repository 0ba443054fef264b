"""The commands of README and docs do what they are printed for, in their order, on emulated boards."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from tools.docs.__main__ import SAME, draw, picture_difference
from tools.docs.commands import Command, commands_of
from tools.docs.sandbox import ROOT, CommandFailed, Sandbox
from tools.tests.test_docs import PAGES

COMMANDS = {page: commands_of(page) for page in PAGES}
MOST_UNTRIED = 0.1
"""Share of the commands of all pages that no test tries: real boards, package indices; the page itself says which."""


def is_run(command: Command) -> bool:
    return not command.why_not


def test_most_are_tried() -> None:
    known = [command for commands in COMMANDS.values() for command in commands]
    run, played = [list(filter(tried, known)) for tried in (is_run, lambda command: bool(command.played_by))]
    print(f"of {len(known)} commands {len(run)} are run for their page, {len(played)} are played by another test")
    untried = [command for command in known if not is_run(command) and not command.played_by]
    for command in untried:
        print(f"  {command.text.partition(chr(10))[0]}: {command.why_not}")

    assert len(untried) <= MOST_UNTRIED * len(known)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(each.played_by for each in COMMANDS[page])], ids=lambda page: page.stem
)
def test_who_plays_a_command_speaks_of_it(page: Path) -> None:
    """A test that plays a command has a telling word of it, or reads the page itself."""
    for command in COMMANDS[page]:
        if command.played_by:
            test = (ROOT / command.played_by).read_text(encoding="utf-8")
            named = telling_words(command) & set(re.findall(r"\w+", test))
            assert named or page.name in test, (
                f"{page.name}:{command.line}: {command.played_by} plays no {command.text}"
            )


def telling_words(command: Command) -> set[str]:
    """By what a test that plays a command is known: the verb, the program, or a function that the Python calls."""
    if command.is_python:
        return set(re.findall(r"(\w+)\(", command.text))
    program, verb, *_ = command.text.split()
    return {verb} if program in ("./run", "jointbench") else {program}


def test_a_command_that_does_not_do_it_is_told(tmp_path: Path) -> None:
    with closing(Sandbox(tmp_path)) as sandbox:
        assert sandbox.run(Command(1, "echo well")) == "well\n"
        sandbox.run(Command(1, "x = 2\n", is_python=True))
        sandbox.run(Command(1, ">>> x + y\n3\n", is_python=True, given="y = 1"))
        with pytest.raises(CommandFailed, match=r"`false` ended with 1, the page says 0"):
            sandbox.run(Command(1, "false"))
        with pytest.raises(CommandFailed, match=r"Expected:\s+4"):
            sandbox.run(Command(1, ">>> x\n4\n", is_python=True))
        with pytest.raises(CommandFailed, match="before it said anything"):
            sandbox.run(Command(1, "true", meanwhile=True))
        assert "goes on" in sandbox.run(Command(1, "sh -c 'echo goes on; sleep 1000'", meanwhile=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(map(is_run, COMMANDS[page]))], ids=lambda page: page.stem
)
def test_the_commands_of(page: Path, tmp_path: Path) -> None:
    with closing(Sandbox(tmp_path)) as sandbox:
        for command in filter(is_run, COMMANDS[page]):
            print(f"{page.relative_to(ROOT)}:{command.line}: {command.text}", flush=True)
            sandbox.run(command)


@pytest.mark.slow
def test_the_picture_of_the_filters_is_what_is_drawn(tmp_path: Path) -> None:
    assert picture_difference(draw("filters.png", tmp_path / "filters.png"), ROOT / "docs" / "filters.png") < SAME


def test_another_picture_is_told() -> None:
    assert picture_difference(*2 * [ROOT / "docs" / "filters.png"]) == 0.0
    assert picture_difference(ROOT / "docs" / "filters.png", ROOT / "docs" / "torques.png") > SAME
