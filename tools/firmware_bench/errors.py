"""What goes wrong while counting."""

from __future__ import annotations

import ast


class CountFailed(Exception):
    """Base of the errors of this package."""


class NotAKernel(CountFailed):
    """The firmware's source uses what cannot be said in C."""

    def __init__(self, where: ast.AST | None, what: str, allowed: str) -> None:
        """`where` gives the line, `what` was found there, `allowed` is what may stand there instead."""
        line = getattr(where, "lineno", None)
        super().__init__(f"{'' if line is None else f'line {line}: '}{what}; allowed: {allowed}")


class PeerFailed(CountFailed):
    """A compiler refused a kernel; what it said is in the text."""


class KernelsDiffer(CountFailed):
    """Two versions of one kernel left different memory or another result: their costs cannot be compared."""


class LoopStopped(CountFailed):
    """The main loop did something else than what was to be counted."""
