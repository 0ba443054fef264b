"""A fault: how it is made, and what must come of it in each state, as matrix.toml says."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jointwire import State
from tools.faults.errors import MatrixError
from tools.faults.states import AT_REST, MOMENTS_US

MATRIX = Path(__file__).with_name("matrix.toml")
GROUPS = ("wire", "board", "sensor", "drive", "host", "program")
WAYS = ("line", "inject", "echo", "host", "program", "restart", "drift_ppm")
_KEYS = {"name", "group", *WAYS, "named", "says", "within", "from_start", "open", "power", "why"}


@dataclass(frozen=True)
class Fault:
    """One row of the matrix.

    Attributes:
        name: unique; wire faults are called by direction and kind.
        group: wire, board, sensor, drive, host or program.
        way, setting: how it is made, one of WAYS, and what with.
        named: what it must be called, by state: a trip, a class of the host's errors, or a word of naming.py.
        says: words that must be in what its user is told; empty where the name says it all.
        within: ticks from the fault, or at rest from the first driven one after it, to the first with the motor off.
        from_start: why a fault that is there before START is counted from START only; empty of all others.
        open: states in which the ledger cannot close, and must say so.
        power: states after which the board needs its power taken to be well again.
        why: the reason for all this.
    """

    name: str
    group: str
    way: str
    setting: Any
    named: Mapping[State, str]
    says: str
    within: int
    from_start: str
    open: frozenset[State]
    power: frozenset[State]
    why: str

    @property
    def line(self) -> str:
        """Options of a fault:// URL; empty for other faults."""
        return str(self.setting) if self.way == "line" else ""


def read_matrix(path: Path = MATRIX) -> dict[str, Fault]:
    """The faults of the matrix by name, in its order.

    Raises:
        MatrixError: an entry is missing, unknown, mistyped or contradictory; says which of which fault.
    """
    rows: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
    faults = [_fault(row) for row in rows]
    by_name = {fault.name: fault for fault in faults}
    if len(by_name) < len(faults):
        twice = sorted({each.name for each in faults if [other.name for other in faults].count(each.name) > 1})
        raise MatrixError(f"{path.name}: {', '.join(twice)} is there twice")
    return by_name


def _fault(row: dict[str, Any]) -> Fault:
    name = row.get("name", "a fault without name")
    if missing := {"name", "group", "named", "why"} - row.keys():
        raise MatrixError(f"{name}: {', '.join(sorted(missing))} is missing")
    if unknown := row.keys() - _KEYS:
        raise MatrixError(f"{name}: {', '.join(sorted(unknown))} is unknown; there are {', '.join(sorted(_KEYS))}")
    if row["group"] not in GROUPS:
        raise MatrixError(f"{name}: group {row['group']!r} is none of {', '.join(GROUPS)}")
    ways = [way for way in WAYS if way in row]
    if len(ways) != 1:
        raise MatrixError(f"{name}: must be made in one way of {', '.join(WAYS)}; it has {', '.join(ways) or 'none'}")
    return Fault(
        name=name,
        group=row["group"],
        way=ways[0],
        setting=row[ways[0]],
        named=_by_state(name, row["named"]),
        says=row.get("says", ""),
        within=row.get("within", 0),
        from_start=row.get("from_start", ""),
        open=frozenset(_state(name, each) for each in row.get("open", [])),
        power=frozenset(_state(name, each) for each in row.get("power", [])),
        why=row["why"],
    )


def _by_state(name: str, named: Mapping[str, str]) -> dict[State, str]:
    """One name for each state; `all` stands for those not given, `at_rest` for those of them in which nothing moves."""
    given = {_state(name, key): value for key, value in named.items() if key not in ("all", "at_rest")}
    names = {state: named["all"] for state in MOMENTS_US} if "all" in named else {}
    names |= dict.fromkeys(AT_REST, named["at_rest"]) if "at_rest" in named else {}
    names |= given
    if missing := [state.name for state in MOMENTS_US if state not in names]:
        raise MatrixError(f"{name}: says no name for {', '.join(missing)}")
    return names


def _state(name: str, word: str) -> State:
    if word not in State.__members__:
        raise MatrixError(f"{name}: {word!r} is no state; there are {', '.join(State.__members__)}")
    return State[word]
