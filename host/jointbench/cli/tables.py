"""Columns for a person: first column left, numbers right."""

from __future__ import annotations

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines of aligned columns, the heads above a rule."""
    lines = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    texts = [
        "  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    ]
    texts.insert(1, "  " + "  ".join("-" * width for width in widths))
    return "\n".join(text.rstrip() for text in texts)
