"""Comments of a mapping, no line too long."""

from __future__ import annotations

import textwrap


def wrapped(text: str, before: str = "# ") -> list[str]:
    """A text as lines of comment."""
    return textwrap.wrap(text, 118, initial_indent=before, subsequent_indent="# " + " " * (len(before) - 2),
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip
