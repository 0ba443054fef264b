"""Colour of what is said on a terminal, and nowhere else: https://no-color.org."""

from __future__ import annotations

import os
import re
from typing import TextIO

_RED, _GREEN, _YELLOW, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
_WORDS = {
    _GREEN: r"\bidentified\b|^ *ok\b",
    _YELLOW: r"\bweak\b|^ *warning\b",
    _RED: r"\brefused\b|\bFAILED\b|^ *NO\b",
}
_VERDICTS = re.compile("|".join(f"(?P<c{i}>{words})" for i, words in enumerate(_WORDS.values())), re.MULTILINE)
_COLOURS = tuple(_WORDS)


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user has not asked for plain text."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str) -> str:
    r"""The text with its verdict words in colour: what is well, what is doubtful, what is not.

    >>> painted("j1: identified")
    'j1: \x1b[32midentified\x1b[0m'
    """
    return _VERDICTS.sub(lambda found: f"{_COLOURS[(found.lastindex or 1) - 1]}{found[0]}{_PLAIN}", text)


def alarming(text: str) -> str:
    """The text in red."""
    return f"{_RED}{text}{_PLAIN}"
