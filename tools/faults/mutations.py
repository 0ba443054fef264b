"""Safety rules taken out of the firmware, one at a time: a campaign that stays green then would be worth nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hil_tests.virtual_bench.bench_file import UNIX
from jointwire import State
from tools.faults.cell import DRIVEN, Cell, Fault, UnknownCell

if TYPE_CHECKING:
    from tools.faults.verdict import Verdict


@dataclass(frozen=True)
class Mutation:
    """A rule that is taken out.

    Attributes:
        rule: what the firmware no longer does.
        code: MicroPython that takes it out, before the firmware starts.
        faults: the part of the campaign that must see it, in the states in which the motor is driven.
        safe: why the motor is as safe without it, so that only the name gives it away; empty of all others.
    """

    rule: str
    code: str
    faults: tuple[str, ...]
    safe: str = ""

    def is_seen(self, verdict: Verdict) -> bool:
        """Whether a verdict says that the rule is missing: by a motor that is unsafe, or else by a wrong name."""
        return not verdict.missed and bool(verdict.misnamed if self.safe else verdict.unsafe)


_BOUND = """
from jointboard import bounds, tick
derive = bounds.derive
def without(cells):
    derive(cells)
    {changed}
bounds.derive = without
"""

MUTATIONS: dict[str, Mutation] = {
    "link_loss": Mutation(
        "a motor whose host falls silent loses its power",
        _BOUND.format(changed="cells[tick.TIMEOUT] = cells[tick.RAMP] = 1 << 29"),
        ("tx.lose", "host.stalled"),
    ),
    "over_current": Mutation(
        "a current beyond 1.25 times limit.current trips",
        _BOUND.format(changed="cells[tick.TRIP_COUNTS] = 1 << 29"),
        ("current.saturated", "drive.over_current"),
    ),
    "internal": Mutation(
        "an error in the program takes the motor's power",
        "app._fail = lambda board, error: None",
        ("board.error",),
    ),
    "encoder_stuck": Mutation(
        "a driven motor whose encoder shows no edge trips",
        _BOUND.format(changed="cells[tick.STUCK_TICKS] = 1 << 29"),
        ("encoder.stuck",),
        safe="FOLLOWING sees the joint that does not move.",
    ),
}

_CONTROL = ("torque.stuck", State.RUNNING)


def mutated_cells(matrix: Mapping[str, Fault], name: str, seed: int, states: tuple[State, ...] = DRIVEN) -> list[Cell]:
    """The cells that must turn red without a rule.

    Raises:
        UnknownCell: there is no such mutation.
    """
    need_mutation(name)
    return [Cell(matrix[fault], state, UNIX, seed, name) for fault in MUTATIONS[name].faults for state in states]


def control_cell(matrix: Mapping[str, Fault], name: str, seed: int) -> Cell:
    """The cell that must stay green without a rule, which it has no use for: the rest of the firmware works.

    Raises:
        UnknownCell: there is no such mutation.
    """
    need_mutation(name)
    return Cell(matrix[_CONTROL[0]], _CONTROL[1], UNIX, seed, name)


def need_mutation(name: str) -> None:
    """Go no further without one of this name.

    Raises:
        UnknownCell: there is no such mutation.
    """
    if name not in MUTATIONS:
        raise UnknownCell(f"there is no mutation {name!r}; there are {', '.join(MUTATIONS)}")
