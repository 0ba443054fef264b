"""Print the script that completes jointbench's verbs, options, robots and files in bash, zsh or tcsh."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from jointbench.checks import Result
from jointbench.cli.console import Console
from jointbench.cli.list_ import library_descriptions
from jointbench.extras import need

VERB = "completion"
EXAMPLE = 'eval "$(jointbench completion bash)"'

SHELLS = ("bash", "zsh", "tcsh")
_ROBOTS = ("ROBOT", "RUN|ROBOT")
_FOLDERS = ("RUN", "OTHER", "DIR", "FOLDER", "FIT_RUN", "VERIFICATION_RUN")
"""Metavariables of arguments that are robots, and folders; every other one that is not of a choice is a file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SHELL."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Prints it; the shell reads it at each start, or from a file of its own."""
    script = completion_script(options.shell)
    console.say(script.rstrip())
    return Result("completion", fields={"shell": options.shell, "script": script})


def completion_script(shell: str) -> str:
    """The script for a shell, which asks no program while it completes.

    Raises:
        MissingExtra: shtab, which writes it, is not installed.
    """
    need("completion", "completion", "shtab")
    import shtab

    from jointbench.cli.parser import build_parser

    parser = build_parser(whole=True)
    names = " ".join(library_descriptions())
    robots = {
        "bash": "_jointbench_robot",
        "zsh": "_jointbench_robot",
        "tcsh": f"({names})",
    }
    for action in _actions(parser):
        if action.metavar in _ROBOTS:
            action.complete = robots  # pyright: ignore[reportAttributeAccessIssue]
        elif action.choices is None and action.nargs != 0:
            action.complete = shtab.DIRECTORY if action.metavar in _FOLDERS else shtab.FILE  # pyright: ignore[reportAttributeAccessIssue]
    preamble = {
        "bash": f'_jointbench_robot() {{ compgen -W "{names}" -- "$1"; compgen -f -- "$1"; }}',
        "zsh": f"_jointbench_robot() {{ _alternative 'robots:robot:({names})' 'files:file:_files'; }}",
    }
    return str(shtab.complete(parser, shell, preamble=preamble.get(shell, "")))


def _actions(parser: argparse.ArgumentParser) -> Iterator[Any]:
    """Every argument of a parser and of the parsers of its verbs."""
    for action in parser._actions:  # argparse has no public list of them  # pyright: ignore[reportPrivateUsage]
        yield action
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            for verb in dict.fromkeys(action.choices.values()):
                yield from _actions(verb)
