"""Parsers of the command line: one for all verbs, and one a verb, whose file is imported when it is asked for."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

VERBS: Mapping[str, str] = {
    "demo": "demo",
    "list": "list_",
    "info": "info",
    "init": "init",
    "assemble": "assemble",
    "check": "check",
    "bring-up": "bring_up",
    "commission": "commission",
    "plan": "plan",
    "sweep": "sweep",
    "run": "run",
    "identify": "identify",
    "prove": "prove",
    "float": "float_",
    "monitor": "monitor",
    "bridge": "bridge",
    "import": "import_",
    "friction": "friction",
    "drives": "drives",
    "gains": "gains",
    "fit": "fit",
    "payload": "payload",
    "stance": "stance",
    "validate": "validate",
    "compare": "compare",
    "history": "history",
    "watch": "watch",
    "residual": "residual",
    "report": "report",
    "export": "export",
    "convert": "convert",
    "doctor": "doctor",
    "accept": "accept",
    "repl": "repl",
    "flash": "flash",
    "completion": "completion",
}
"""Module by verb, in the order in which a robot meets them."""

DESCRIPTION = (
    "Identify the dynamics of a robot from its joint boards. Without a verb: what is here, and what to do next."
)


def sentence(verb: str) -> str:
    """Return what a verb does: the first line of its file, which is not imported for it."""
    with Path(__file__).with_name(f"{VERBS[verb]}.py").open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')


def module_of(verb: str) -> ModuleType:
    """A verb's file, imported: it has VERB, EXAMPLE, add_arguments, run and perhaps WHEN_STOPPED."""
    return import_module(f"jointbench.cli.{VERBS[verb]}")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line that says where help is, instead of all that could be given."""

    def __init__(self, **settings: Any) -> None:
        """Take lists of numbers for values, as in `--center-mm -0,-90,0`, which argparse itself takes for an option."""
        super().__init__(**settings)
        self._negative_number_matcher = _NUMBERS

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end with exit code 2."""
        joint = " " if message.endswith("?") else "; "
        self.exit(2, f"{self.prog}: {message}{joint}`{self.prog} --help` shows what it takes\n")

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Say that these words mean nothing here, and which option was perhaps meant."""
        options = self._option_string_actions  # argparse has no public list of them
        near = [match for word in unknown for match in difflib.get_close_matches(word.partition("=")[0], options, 1)]
        meant = f"; did you mean {near[0]}?" if near else ""
        self.error(f"does not know {' '.join(unknown)}{meant}")


_NUMBERS = re.compile(r"-[.\d][-+.,\deE]*$")
"""A negative number, or several with commas between them."""


class PrintVersion(argparse.Action):
    """Print the versions that a report of a fault needs, and end."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        """Ask for the version only here: the package index of the environment is slow to read."""
        import platform

        import jointbench

        print(f"jointbench {jointbench.__version__} (Python {platform.python_version()}, {platform.platform()})")
        parser.exit()


class VerbParser(Parser):
    """A verb's parser, empty until it is filled by the first line that is to be parsed."""

    def __init__(self, *, verb: str, **settings: Any) -> None:
        """Only name and sentence are known yet."""
        super().__init__(description=sentence(verb), **settings)
        self.verb = verb
        self._filled = False

    def fill(self) -> VerbParser:
        """Import the verb's file and take its arguments from there; filling twice is harmless."""
        if not self._filled:
            self._filled = True
            module = module_of(self.verb)
            self.epilog: str | None = f"example: {module.EXAMPLE}"
            module.add_arguments(self)
            if getattr(module, "WRITES", ()):
                self.add_argument("--force", action="store_true", help="replace named files that are there")
            add_json(self, argparse.SUPPRESS)  # what stands before the verb counts, too
            self.set_defaults(module=module, parser=self)
        return self

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Parse as every parser does, once it is filled."""
        self.fill()
        return super().parse_known_args(args, namespace)


def add_json(parser: argparse.ArgumentParser, default: Any = None) -> None:
    """Add the option that every command has."""
    parser.add_argument("--json", metavar="FILE|-", default=default, help="write the machine-readable result there")


def build_parser(*, whole: bool = False) -> Parser:
    """The command line: one sub-command a verb, each with --json.

    Args:
        whole: whether every verb's file is imported now, for whoever wants to see all arguments.
    """
    parser = Parser(prog="jointbench", description=DESCRIPTION, epilog="`jointbench VERB --help` shows an example.")
    add_json(parser)
    parser.add_argument("--version", action=PrintVersion, nargs=0, help="print the version, and that of Python")
    parser.set_defaults(parser=parser)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=VerbParser)
    for verb in VERBS:
        filled = verbs.add_parser(verb, verb=verb, help=sentence(verb))
        if whole:
            filled.fill()
    return parser
