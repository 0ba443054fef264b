"""A cell of the matrix: one fault in one state, on one kind of board, by one seed; and the campaign's errors."""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.bench_file import EMULATED, UNIX
from jointbench.errors import JointbenchError
from jointwire import State


class MatrixError(JointbenchError, ValueError):
    """The matrix of faults has a missing, unknown, mistyped or contradictory entry."""


class UnknownCell(JointbenchError, KeyError):
    """There is no such fault, state or group."""


class StateNotReached(JointbenchError):
    """A board was not in the state in which a fault was to strike it."""


class CellNotRun(JointbenchError):
    """A cell could not be run, so that nothing can be said of it."""


class WorkerLost(JointbenchError):
    """A process in which a cell ran has ended without its verdict."""


# [µs] of true time. A board tells its STATUS each second, and a recording begins with one; by then it is where it is to
# be. Power comes at 0, so that a fault of BOOT is there before the first tick; a motion takes a second to reach DONE.
MOMENTS_US: dict[State, int] = {
    State.BOOT: 0,
    State.DISARMED: 1_200_000,
    State.LOADED: 1_200_000,
    State.ARMED: 1_200_000,
    State.RUNNING: 1_500_000,
    State.DONE: 2_200_000,
    State.FAULT: 1_200_000,
}
AT_REST = (State.DISARMED, State.LOADED, State.DONE, State.FAULT)
DRIVEN = (State.ARMED, State.RUNNING)


MATRIX = Path(__file__).with_name("matrix.toml")
GROUPS = ("wire", "board", "sensor", "drive", "host", "program")
WAYS = ("line", "inject", "echo", "host", "program", "restart", "drift_ppm", "feedforward")
_KEYS = {"name", "group", *WAYS, "floats", "fed", "named", "says", "within", "from_start", "open", "power", "why"}


@dataclass(frozen=True)
class Fault:
    """One row of the matrix.

    Attributes:
        name: unique; wire faults are called by direction and kind.
        group: wire, board, sensor, drive, host or program.
        way, setting: how it is made, one of WAYS, and what with.
        floats: whether the motor that it strikes in RUNNING floats; such a fault has no cell in another state.
        fed: whether each motion comes with the feed-forward of a right model, and its board watches for pushes.
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
    floats: bool
    fed: bool
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
        floats=row.get("floats", False),
        fed=row.get("fed", False),
        named=_by_state(name, row["named"], (State.RUNNING,) if row.get("floats") else tuple(MOMENTS_US)),
        says=row.get("says", ""),
        within=row.get("within", 0),
        from_start=row.get("from_start", ""),
        open=frozenset(_state(name, each) for each in row.get("open", [])),
        power=frozenset(_state(name, each) for each in row.get("power", [])),
        why=row["why"],
    )


def _by_state(name: str, named: Mapping[str, str], states: tuple[State, ...]) -> dict[State, str]:
    """Return one name for each of the states.

    `all` stands for those that are not given, `at_rest` for those of them in which nothing moves.
    """
    given = {_state(name, key): value for key, value in named.items() if key not in ("all", "at_rest")}
    names = {state: named["all"] for state in states} if "all" in named else {}
    names |= dict.fromkeys(AT_REST, named["at_rest"]) if "at_rest" in named else {}
    names |= given
    if missing := [state.name for state in states if state not in names]:
        raise MatrixError(f"{name}: says no name for {', '.join(missing)}")
    return names


def _state(name: str, word: str) -> State:
    if word not in State.__members__:
        raise MatrixError(f"{name}: {word!r} is no state; there are {', '.join(State.__members__)}")
    return State[word]


ROUND_TRIPS = 20  # ticks for a request with its refusal and a STOP with its answer


@dataclass(frozen=True)
class Cell:
    """One fault in one state.

    Attributes:
        fault, state: of the matrix.
        board: what emulates the board.
        seed: of the campaign; the cell's own follows from it and its name, so that it is the same alone as among all.
        mutation: of its firmware, by the name in mutations.py; none as a rule.
    """

    fault: Fault
    state: State
    board: str
    seed: int
    mutation: str = ""

    @property
    def id(self) -> str:
        """As it is asked for: the fault and the state."""
        return f"{self.fault.name}@{self.state.name}"

    @property
    def own_seed(self) -> int:
        """Of its bench and of its line's faults."""
        return zlib.crc32(f"{self.seed} {self.id}".encode())

    @property
    def expected(self) -> str:
        """What the fault must be called here."""
        return self.fault.named[self.state]

    @property
    def within(self) -> int:
        """Ticks to the motor's being off; where a board at rest refuses to go on, those in which its host says STOP."""
        return max(self.fault.within, ROUND_TRIPS if self.refused_at_rest else 0)

    @property
    def refused_at_rest(self) -> bool:
        """Whether nobody is to know before the board refuses what its host goes on with."""
        return self.expected == "BoardRefused" and self.state not in DRIVEN

    @property
    def from_start(self) -> bool:
        """Whether ticks count from START where that came after the fault, not from the fault or ARM already."""
        return bool(self.fault.from_start) or self.refused_at_rest

    @property
    def command(self) -> str:
        """What to type to have it again, byte for byte."""
        board = "" if self.board == UNIX else f" --board {self.board}"
        without = f" --without {self.mutation}" if self.mutation else ""
        return f"./run faults --cell {self.id}{board}{without} --seed {self.seed}"

    @property
    def folder(self) -> Path:
        """Where it is kept, below that of its campaign: apart from the same cell on another kind of board."""
        return Path(self.board.strip(":").replace(":", "-"), *filter(None, [self.mutation]), self.id)


def all_cells(matrix: Mapping[str, Fault], board: str, seed: int) -> list[Cell]:
    """Every fault in every state; those of motors that float in RUNNING alone."""
    return [
        Cell(fault, state, EMULATED[board], seed)
        for fault in matrix.values()
        for state in MOMENTS_US
        if state in fault.named
    ]


def chosen_cells(cells: Iterable[Cell], names: Iterable[str], only: str = "") -> list[Cell]:
    """Those of the given ids, or, without any, those whose group, fault or state is `only`, or all.

    Raises:
        UnknownCell: there is none of that name; says how they are named.
    """
    cells, names = list(cells), list(names)
    by_id = {cell.id: cell for cell in cells}
    if unknown := [name for name in names if name not in by_id]:
        states = ", ".join(state.name for state in MOMENTS_US)
        raise UnknownCell(
            f"there is no cell {unknown[0]!r}; a cell is FAULT@STATE, as in rx.drop@RUNNING, with {states}"
        )
    if names:
        return [by_id[name] for name in names]
    chosen = [cell for cell in cells if not only or only in (cell.fault.group, cell.fault.name, cell.state.name)]
    if not chosen:
        groups = ", ".join(dict.fromkeys(cell.fault.group for cell in cells))
        raise UnknownCell(f"--only {only}: is no group ({groups}), no fault of the campaign and no state")
    return chosen
