"""`jointbench VERB …`: finds the verb's file and carries it out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from types import ModuleType

from jointbench.cli import (
    compare,
    doctor,
    drives,
    export,
    fit,
    flash,
    friction,
    import_,
    info,
    list_,
    plan,
    repl,
    report,
    residual,
    run,
    stance,
    sweep,
    validate,
)
from jointbench.cli.carry_out import carry_out

VERBS: tuple[ModuleType, ...] = (
    list_,
    info,
    doctor,
    plan,
    sweep,
    run,
    import_,
    friction,
    drives,
    fit,
    stance,
    validate,
    compare,
    residual,
    report,
    export,
    repl,
    flash,
)


def build_parser() -> argparse.ArgumentParser:
    """The command line: one sub-command a verb, each with --json."""
    parser = argparse.ArgumentParser(
        prog="jointbench", description="Identify the dynamics of a robot from its joint boards."
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for module in VERBS:
        sentence = (module.__doc__ or "").splitlines()[0]
        verb = verbs.add_parser(module.VERB, help=sentence, description=sentence, epilog=f"example: {module.EXAMPLE}")
        module.add_arguments(verb)
        verb.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
        verb.set_defaults(module=module)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb; exit code 0, 1 (the verdict is no) or 2 (it could not be done, and why)."""
    options = build_parser().parse_args(arguments)
    left: str = getattr(options.module, "WHEN_STOPPED", "")
    return carry_out(f"jointbench {options.verb}", options, options.module.run, when_stopped=left)
