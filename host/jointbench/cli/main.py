"""`jointbench VERB …`: finds the verb's file and carries it out."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from jointbench.checks import Result, is_result
from jointbench.cli import here
from jointbench.cli.carry_out import bug, carry_out
from jointbench.cli.console import Console
from jointbench.cli.parser import build_parser
from jointbench.cli.verbs import VERBS
from jointbench.errors import FileIsThere


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; return 0, 1 (the verdict is no), 2 (it could not be done, and why) or 3 (a bug of ours)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _options(words)
    except Exception as error:
        return bug("jointbench", error, Console())
    if options.verb is None:
        return carry_out("jointbench", options, here.run)
    left: str = getattr(options.module, "WHEN_STOPPED", "")
    return carry_out(f"jointbench {options.verb}", options, _run_verb, when_stopped=left)


def _options(words: list[str]) -> argparse.Namespace:
    """Parse the command line; wrong use ends the program with 2."""
    parser = build_parser()
    if words and not words[0].startswith("-") and words[0] not in VERBS:
        near = difflib.get_close_matches(words[0], VERBS, 1)
        meant = f"; did you mean `{' '.join(['jointbench', near[0], *words[1:]])}`?" if near else ""
        parser.error(f"there is no verb {words[0]!r}{meant}")
    options, unknown = parser.parse_known_args(words)
    if unknown:
        options.parser.refuse(unknown)
    return options


def _run_verb(options: argparse.Namespace, console: Console) -> Result:
    """Carry out a verb, if no file that its options name would be overwritten unasked.

    Raises:
        FileIsThere: names the first one that would be.
    """
    named = [getattr(options, name) for name in getattr(options.module, "WRITES", ())]
    files = [file for each in named if each for file in ([each] if isinstance(each, str) else each)]
    for file in files:
        if Path(file).is_file() and not options.force:
            raise FileIsThere(f"{file} is there already; name another file, or replace it with --force")
    if options.json and Path(options.json).is_file() and not is_result(Path(options.json)):
        raise FileIsThere(f"--json {options.json} is there already, and is no earlier result; name another file")
    return options.module.run(options, console)
