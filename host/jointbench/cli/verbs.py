"""The verbs and the file of each, found without importing one: that takes as long as all that the verb needs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

VERBS: Mapping[str, str] = {
    "list": "list_",
    "info": "info",
    "assemble": "assemble",
    "check": "check",
    "plan": "plan",
    "sweep": "sweep",
    "run": "run",
    "monitor": "monitor",
    "import": "import_",
    "friction": "friction",
    "drives": "drives",
    "fit": "fit",
    "stance": "stance",
    "validate": "validate",
    "compare": "compare",
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


def sentence(verb: str) -> str:
    """What a verb does: the first line of its file, which is not imported for it."""
    with Path(__file__).with_name(f"{VERBS[verb]}.py").open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')


def module_of(verb: str) -> ModuleType:
    """A verb's file, imported: it has VERB, EXAMPLE, add_arguments, run and perhaps WHEN_STOPPED."""
    return import_module(f"jointbench.cli.{VERBS[verb]}")
