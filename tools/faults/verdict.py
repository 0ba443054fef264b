"""The verdict on a cell: struck, safe, rightly named, nothing lost, accounted for, and well again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jointbench.link.ledger import BoardLedger
from jointwire import State
from tools.faults.cell import Cell
from tools.faults.evidence import Evidence
from tools.faults.naming import NONE, name_of
from tools.faults.states import DRIVEN
from tools.faults.subject import CLAMP_MA, LEAST_DRIVEN, REPEATS

_GOES_ON = frozenset((NONE, "FRAMES_LOST", "DUPLICATES", "SAMPLES_DROPPED", "TICKS_MISSED", "CLOCK_DRIFT"))
_IN_TIME = 1  # tick in which a request is on its way; the board's time is asked for before it


@dataclass(frozen=True)
class Verdict:
    """What came of a cell, and what of that is not as it must be.

    Attributes:
        cell: what was asked.
        named: what the fault was called.
        ticks: from the fault, or the first driven one after it, to a motor that is off; None where it goes on.
        missed, unsafe, misnamed, stopped, lost, unaccounted, stuck: why not, each empty where all is well; a fault is
            missed that did not strike, and a motion stopped that should have been played to its end.
        words: of the error that the host's user read.
    """

    cell: Cell
    named: str
    ticks: int | None
    missed: str
    unsafe: str
    misnamed: str
    stopped: str
    lost: str
    unaccounted: str
    stuck: str
    words: str

    @property
    def problems(self) -> tuple[str, ...]:
        """All that is not as it must be."""
        of_fault = (self.missed, self.unsafe, self.misnamed, self.stopped)
        return tuple(filter(None, (*of_fault, self.lost, self.unaccounted, self.stuck)))

    @property
    def ok(self) -> bool:
        """Whether the cell passes."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        cell = self.cell
        return {
            "id": cell.id,
            "group": cell.fault.group,
            "fault": cell.fault.name,
            "state": cell.state.name,
            "board": cell.board,
            "ok": self.ok,
            "expected": cell.expected,
            "named": self.named,
            "ticks": self.ticks,
            "within": cell.within,
            "reason": "; ".join(self.problems),
            "words": self.words,
            "command": cell.command,
        }


def judge(cell: Cell, evidence: Evidence) -> Verdict:
    """Hold what came of a cell against the matrix."""
    named = name_of(evidence)
    ticks = ticks_to_off(cell, evidence)
    return Verdict(
        cell=cell,
        named=named,
        ticks=ticks,
        missed=_missed(cell, evidence, named),
        unsafe=_unsafe(cell, evidence, ticks),
        misnamed=_misnamed(cell, evidence, named),
        stopped=_stopped(cell, evidence),
        lost=_lost(cell, evidence),
        unaccounted=_unaccounted(cell, evidence),
        stuck=evidence.recovery,
        words=evidence.text,
    )


def ticks_to_off(cell: Cell, evidence: Evidence) -> int | None:
    """Ticks to the first with the motor off: from the fault, or where the board was at rest from the first driven one.

    From START only where the matrix says why.
    """
    if cell.expected in _GOES_ON or evidence.off_after is not None or cell.fault.setting == "second_client":
        return evidence.off_after
    driven = [tick for tick, enable, command in evidence.outputs if (enable or command) and tick >= evidence.shown]
    if not driven:
        return 0
    met = evidence.shown if cell.state in DRIVEN else driven[0]
    if cell.from_start and evidence.started:
        met = max(met, evidence.started + _IN_TIME)
    return max(0, driven[-1] + 1 - met)


def _missed(cell: Cell, evidence: Evidence, named: str) -> str:
    """Whether the fault was never there; one of the board's program or clock has nothing but its name to show it."""
    shown_by_name = cell.fault.way in ("echo", "drift_ppm") and named != NONE
    return "" if evidence.strikes or shown_by_name else "the fault did not strike"


def _misnamed(cell: Cell, evidence: Evidence, named: str) -> str:
    if named != cell.expected:
        return f"named {named}, expected {cell.expected}"
    return "" if cell.fault.says in evidence.text else f"says {evidence.text!r}, and not {cell.fault.says!r}"


def _stopped(cell: Cell, evidence: Evidence) -> str:
    """Whether a fault that must stop nothing has kept the motion from being played to its end."""
    if cell.expected not in _GOES_ON or cell.fault.setting == "killed":
        return ""
    if not evidence.done:
        return "the motion was not played to its end"
    least = LEAST_DRIVEN * (REPEATS if cell.state is State.RUNNING else 1)
    driven = sum(enable and tick >= evidence.started for tick, enable, _ in evidence.outputs)
    return "" if driven >= least else f"the motor was on for {driven} ticks of {least} of the motion"


def _unsafe(cell: Cell, evidence: Evidence, ticks: int | None) -> str:
    outputs = evidence.outputs
    if evidence.off_after is None and (not outputs or outputs[-1][1:] != (0, 0)):
        return "the motor was not off at the end"
    if ticks is not None and ticks > cell.within:
        return f"the motor was off after {ticks} ticks, allowed are {cell.within}"
    most = max((abs(command) for _, _, command in outputs), default=0)
    if most > CLAMP_MA:
        return f"a command of {most} mA is beyond limit.current, {CLAMP_MA} mA"
    driven = [tick for tick, enable, command in outputs if (enable or command) and tick >= evidence.shown]
    if cell.state not in DRIVEN and driven and not evidence.shown <= evidence.armed <= driven[0]:
        return f"the motor was on at tick {driven[0]}, without an ARM"
    return ""


def _lost(cell: Cell, evidence: Evidence) -> str:
    if evidence.recorded is None:
        # It could record, or it was not to.
        before = cell.state is State.BOOT and (evidence.error or cell.fault.setting == "killed")
        before = before or cell.fault.way == "program"
        return "" if before and not evidence.taken else f"nothing is left of {evidence.taken} records"
    if not evidence.recorded.kept:
        return "nothing was recorded"
    if evidence.recorded.kept < evidence.taken:
        return f"{evidence.taken - evidence.recorded.kept} of {evidence.taken} records are lost"
    return evidence.recorded.damage


def _unaccounted(cell: Cell, evidence: Evidence) -> str:
    if evidence.recorded is None:
        return ""
    (ledger,) = evidence.recorded.ledger.boards
    if cell.state in cell.fault.open:
        return "" if ledger.fault else "the ledger closes, though the board's last count cannot have come"
    return _equations(ledger)


def _equations(ledger: BoardLedger) -> str:
    return "" if ledger.closes else f"the ledger does not close: {ledger.fault}"
