"""docs/cli.md, rendered from the command line's own parsers: `python -m tools.cli_page` writes it anew."""

from __future__ import annotations

import argparse
from pathlib import Path

from jointbench.cli.parser import VERBS, VerbParser

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
_HEAD = """# Command line

Every verb, its arguments and an example, as `jointbench VERB --help` has them. Written by `python -m tools.cli_page`;
change the verb's file in `host/jointbench/cli`.

- `jointbench` alone says what is here (boards on USB, benches, plans, runs, models) and which command makes sense next.
- `--json FILE`, or `--json -` for standard output, writes the machine-readable result: `command`, `seed`, `seconds`,
  `checks`, and what the verb has to say. With `-` all that is for people goes to standard error.
- Exit codes: 0; 1 where a verdict or check says no; 2 where it could not be done, with one sentence on why and what to
  do; 3 where Jointbench has a bug, with one line that names the file to report it by; 130 after Ctrl-C, which switches
  motors off first and keeps what was recorded.
- Progress and colour are for terminals only. `NO_COLOR=1` leaves the colour out.
- TAB completes verbs, options, robots and files after `eval "$(jointbench completion bash)"`, or the same with `zsh`.
  It needs the extra `completion`.
"""


def page() -> str:
    """The whole page as Markdown, a section a verb."""
    return "\n".join([_HEAD, *map(_section, VERBS)])


def _section(verb: str) -> str:
    parser = VerbParser(verb=verb, prog=f"jointbench {verb}").fill()
    example = (parser.epilog or "").removeprefix("example: ")
    lines = [
        f"## {verb}\n",
        f"{parser.description}\n",
        f"```text\n{_one_a_line(example)}\n```\n",
        "| | |\n| --- | --- |",
    ]
    lines += [
        _row(action) for action in parser._actions if action.dest not in ("help", "json")
    ]  # argparse has no other list
    return "\n".join(lines) + "\n"


def _one_a_line(example: str) -> str:
    return example.replace("; ", "\n")


def _row(action: argparse.Action) -> str:
    """An argument's names and what it says of itself."""
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest)
    names = [f"{name} {value}" if action.nargs != 0 else name for name in action.option_strings] or [str(value)]
    text = (action.help or "") % {**vars(action), "prog": "jointbench"}
    cells = (", ".join(f"`{name}`" for name in names), text)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE} is written")
