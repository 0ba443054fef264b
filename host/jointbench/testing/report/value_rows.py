"""Limits and values: how much of each limit was left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jointbench.results.digits import NOT_A_NUMBER, percent
from jointbench.testing.report.content import ValueRow
from jointbench.testing.report.summary import Summary


def value_rows(summary: Summary) -> tuple[ValueRow, ...]:
    """Return a row for each requirement that a test held a value against, those that were missed first."""
    rows = [_row(value) for value in summary.values]
    return tuple(sorted(rows, key=lambda row: row.ok))


def used(value: float | None, relation: str, limit: float | None) -> float | None:
    """Share of a limit that a value takes, 1 where it just keeps it; None where there is no such share.

    >>> used(2.0, "<=", 8.0), used(10.0, ">=", 8.0), used(0.0, "<=", 0.0), used(3.0, "==", 3.0)
    (0.25, 0.8, None, None)
    """
    if value is None or limit is None or value < 0.0 or limit <= 0.0 or relation == "==":
        return None
    if relation == "<=":
        return value / limit
    return limit / value if value else None


def _row(value: Mapping[str, Any]) -> ValueRow:
    share = used(value["value"], value["relation"], value["limit"])
    return ValueRow(
        id=str(value["id"]),
        background=str(value.get("background", "")),
        value=number(value["value"]),
        relation={"<=": "≤", ">=": "≥", "==": "="}.get(str(value["relation"]), str(value["relation"])),
        limit=number(value["limit"]),
        unit=str(value["unit"]),
        margin=percent(1.0 - share) if share is not None else NOT_A_NUMBER,
        used=None if share is None else round(100.0 * min(share, 1.0), 1),
        ok=bool(value["ok"]),
        tests=tuple(value["tests"]),
    )


def number(value: float | None) -> str:
    """Return a whole number in full and any other to four digits, with a true minus sign.

    >>> number(1024.0), number(-0.012347), number(None)
    ('1024', '−0.01235', '–')
    """
    if value is None:
        return NOT_A_NUMBER
    text = f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return text.replace("-", "−")
