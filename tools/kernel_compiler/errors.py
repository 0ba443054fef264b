"""What goes wrong while compiling a kernel: always something its author can change."""

from __future__ import annotations

import ast


class NotAKernel(Exception):
    """The source uses what the kernel language does not have."""

    def __init__(self, where: ast.AST | None, what: str, allowed: str) -> None:
        """`where` gives the line, `what` was found there, `allowed` is what may stand there instead."""
        line = getattr(where, "lineno", None)
        super().__init__(f"{'' if line is None else f'line {line}: '}{what}; allowed: {allowed}")


class OutOfReach(Exception):
    """A branch or an offset does not fit its instruction."""
