"""`jointbench VERB …`: finds the verb's file, times it, writes its result, and turns errors into sentences."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from types import ModuleType

from jointbench.cli import fit, import_, info, list_, plan, report, run, validate
from jointbench.cli.console import Console
from jointbench.errors import JointbenchError

VERBS: tuple[ModuleType, ...] = (list_, info, plan, run, import_, fit, validate, report)


def build_parser() -> argparse.ArgumentParser:
    """The command line: one sub-command a verb, each with --json."""
    parser = argparse.ArgumentParser(
        prog="jointbench", description="Identify the dynamics of a robot from its joint boards."
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for module in VERBS:
        sentence = (module.__doc__ or "").splitlines()[0]
        verb = verbs.add_parser(
            module.VERB, help=sentence, description=sentence, epilog=f"example: {module.EXAMPLE}"
        )
        module.add_arguments(verb)
        verb.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
        verb.set_defaults(module=module)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb; exit code 0, 1 (the verdict is no) or 2 (it could not be done, and why)."""
    options = build_parser().parse_args(arguments)
    console = Console(options.json)
    started = time.monotonic()
    try:
        result = options.module.run(options, console)
    except JointbenchError as error:
        print(f"jointbench {options.verb}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\njointbench {options.verb}: stopped by Ctrl-C", file=sys.stderr)
        return 130
    if options.json:
        result.write(options.json, time.monotonic() - started)
    return result.exit_code
