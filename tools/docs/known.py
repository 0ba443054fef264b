"""Whether a command can be what its page says, without running it: its verb exists, and its options are known."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

from jointbench.cli.parser import build_parser

ROOT = Path(__file__).resolve().parents[2]


def verbs_of_run() -> set[str]:
    """What `./run` does itself or hands to tools/."""
    text = (ROOT / "run").read_text(encoding="utf-8")
    return {"setup", *re.findall(r"^ +tool (\w+) ", text, re.MULTILINE), *re.findall(r"%s\\n' (\w+) ", text)}


def fault_of(text: str) -> str:
    """What is wrong with a command line for `./run` or `jointbench`; "" for one that parses, and for any other program.

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
