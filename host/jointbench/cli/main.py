"""`jointbench VERB …`: finds the verb's file and carries it out."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

from jointbench.cli import here
from jointbench.cli.carry_out import carry_out
from jointbench.cli.parser import build_parser
from jointbench.cli.verbs import VERBS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb; exit code 0, 1 (the verdict is no) or 2 (it could not be done, and why)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = build_parser()
    if words and not words[0].startswith("-") and words[0] not in VERBS:
        near = difflib.get_close_matches(words[0], VERBS, 1)
        meant = f"; did you mean `{' '.join(['jointbench', near[0], *words[1:]])}`?" if near else ""
        parser.error(f"there is no verb {words[0]!r}{meant}")
    options, unknown = parser.parse_known_args(words)
    if unknown:
        options.parser.refuse(unknown)
    if options.verb is None:
        return carry_out("jointbench", options, here.run)
    left: str = getattr(options.module, "WHEN_STOPPED", "")
    return carry_out(f"jointbench {options.verb}", options, options.module.run, when_stopped=left)
