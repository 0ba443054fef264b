"""A cell of the matrix: one fault in one state, on one kind of board, by one seed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hil_tests.virtual_bench.bench_file import EMULATED, UNIX
from jointwire import State
from tools.faults.errors import UnknownCell
from tools.faults.faults import Fault
from tools.faults.states import DRIVEN, MOMENTS_US

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
    """Every fault in every state."""
    return [Cell(fault, state, EMULATED[board], seed) for fault in matrix.values() for state in MOMENTS_US]


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
