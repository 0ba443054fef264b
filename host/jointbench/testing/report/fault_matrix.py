"""A fault campaign as a matrix: every fault in every state of a board, and what did not pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jointbench.results.digits import count
from jointbench.testing.report.content import BadCell, Cell, Matrix, MatrixRow

_NOT_TRIED = Cell("none", "", "not tried")


def fault_matrices(campaign: Mapping[str, Any] | None) -> tuple[Matrix, ...]:
    """Return a matrix for each kind of board of a campaign; none without a campaign.

    Args:
        campaign: with `cells`, each a mapping with fault, state and ok; and, where there is something to say, id,
            group, board, expected, named, ticks, reason and command.
    """
    cells: Sequence[Mapping[str, Any]] = campaign["cells"] if campaign else ()
    boards = dict.fromkeys(str(cell.get("board", "")) for cell in cells)
    return tuple(_matrix(board, [cell for cell in cells if str(cell.get("board", "")) == board]) for board in boards)


def _matrix(board: str, cells: Sequence[Mapping[str, Any]]) -> Matrix:
    states = tuple(dict.fromkeys(str(cell["state"]) for cell in cells))
    faults: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for cell in cells:
        faults.setdefault(str(cell.get("group", "")), {}).setdefault(str(cell["fault"]), []).append(cell)
    groups = tuple(
        (group, tuple(MatrixRow(fault, _cells(of_fault, states)) for fault, of_fault in rows.items()))
        for group, rows in faults.items()
    )
    bad = tuple(
        BadCell(f"{cell['fault']} in {cell['state']}", str(cell.get("reason", "")), str(cell.get("command", "")))
        for cell in cells
        if not cell["ok"]
    )
    passed = len(cells) - len(bad)
    return Matrix(board or "all boards", f"{count(passed)} of {count(len(cells))} cells passed.", states, groups, bad)


def _cells(of_fault: Sequence[Mapping[str, Any]], states: Sequence[str]) -> tuple[Cell, ...]:
    return tuple(_cell([cell for cell in of_fault if cell["state"] == state]) for state in states)


def _cell(cells: Sequence[Mapping[str, Any]]) -> Cell:
    """One place of the matrix: usually one cell, several where a fault comes in kinds."""
    if not cells:
        return _NOT_TRIED
    passed = sum(bool(cell["ok"]) for cell in cells)
    verdict, mark = ("yes", "✓") if passed == len(cells) else ("no", "✗")
    several = f" {passed}/{len(cells)}" if len(cells) > 1 else ""
    return Cell(verdict, mark + several, "; ".join(map(_title, cells)))


def _title(cell: Mapping[str, Any]) -> str:
    ticks = cell.get("ticks")
    said = {
        "expected": cell.get("expected", ""),
        "named": cell.get("named", ""),
        "safe after": "" if ticks is None else f"{ticks} ticks",
        "because": cell.get("reason", ""),
    }
    told = [f"{key} {value}" for key, value in said.items() if value]
    return f"{cell['fault']} in {cell['state']}: {', '.join(told) or ('passed' if cell['ok'] else 'failed')}"
