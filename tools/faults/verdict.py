"""What is left of a cell when it is over, what the fault was called, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jointbench.bench import DEFAULT_LOSS_LIMIT, BoardLedger, Ledger
from jointbench.errors import BoardFault
from jointbench.recording import EVENTS, FRAMES, RESULT, RecordKind, examine, open_run, read_contents, read_result
from jointwire import State, Trip, own_schema
from tools.faults.cell import DRIVEN, Cell
from tools.faults.subject import CLAMP_MA, LEAST_DRIVEN, REPEATS

_WHOLE = (FRAMES, f"end of {FRAMES}", "frames", EVENTS)  # the doctor's findings on what was recorded
_SEALED = "SHA-256"  # the one more that he has where the recorder lived to its end


@dataclass(frozen=True)
class Recorded:
    """What the recording holds, read anew from its directory.

    Attributes:
        ledger: drawn up from its frames.
        kept: frames and byte strings that were none.
        damage: what the doctor finds wrong with its files; empty where they are whole.
        killed: whether it has no end.
        drift_ppm: of the board's clock against the host's, 0 where they count the same ticks.
    """

    ledger: Ledger
    kept: int
    damage: str
    killed: bool
    drift_ppm: float


@dataclass(frozen=True)
class Evidence:
    """All that a cell is judged by.

    Attributes:
        outputs: tick, enable and command [mA], from before the fault to the end of the session; empty of a host that
            was killed, which could not ask for them.
        shown: tick at which the fault was there first.
        armed, started: ticks at which the host last asked for ARM and START, 0 where it did not come to that;
            in RUNNING that at which the motion began.
        off_after: ticks until the motor was off, of a host that was killed; by then it was.
        error, trip: class of the error that stopped the host, and number of the board's trip, if any.
        second_error: what another program was told.
        latched: number of the trip with which the board was found afterwards.
        taken: what the recorder was given until then, and must hold.
        recorded: None where nothing was recorded yet.
        recovery: why the board did not play again; empty where it did.
        text: the error's words.
        strikes: how often the fault struck, as it is known where it was made; 0 of one that only its name can show.
        done: whether the host saw its motion end.
    """

    outputs: tuple[tuple[int, int, int], ...]
    shown: int
    armed: int
    started: int
    off_after: int | None
    error: str
    trip: int
    second_error: str
    latched: int
    taken: int
    recorded: Recorded | None
    recovery: str
    text: str
    strikes: int
    done: bool


def read_recorded(run: Path, joint: str, node: int) -> Recorded | None:
    """Read a recording as anybody does who finds it."""
    if not (run / FRAMES).exists():
        return None
    contents = read_contents((run / FRAMES).read_bytes(), own_schema().hash, {node: joint}, DEFAULT_LOSS_LIMIT)
    return Recorded(
        ledger=contents.ledger,
        kept=contents.counts[RecordKind.FRAME] + contents.counts[RecordKind.NOISE],
        damage="; ".join(_damage(run, contents.ledger)),
        killed=not (run / RESULT).exists(),
        drift_ppm=_drift_ppm(run),
    )


def _damage(run: Path, ledger: Ledger) -> list[str]:
    """What is wrong with a recording's files; a finding that the doctor does not have is damage, too."""
    result = read_result(run)
    asked = (*_WHOLE, *([_SEALED] if result else []))
    findings = {each.name: each for each in examine(run).findings}
    wrong = [f"{name}: {each.what}" for name, each in findings.items() if name.startswith(f"{_SEALED} of ")]
    wrong += [f"the doctor says nothing of {name}" for name in asked if name not in findings and not wrong]
    wrong += [f"{name}: {findings[name].what}" for name in asked if name in findings and not findings[name].ok]
    if result and Ledger.from_dict(result["ledger"]) != ledger:
        wrong.append(f"ledger: its {RESULT} says another than its frames")
    return wrong


def _drift_ppm(run: Path) -> float:
    """Of the only board, where its run has a clock of its own and samples to be placed on it."""
    if not (run / RESULT).exists():
        return 0.0
    try:
        clocks = open_run(run).clocks
    except ValueError:  # it ended before the first sample
        return 0.0
    return max((clock.drift_ppm for clock in clocks.values()), key=abs, default=0.0)


NONE = "NONE"
DRIFT_PPM = 100.0  # what a crystal may have


def name_of(evidence: Evidence) -> str:
    """The name of the fault as its user is told it, the loudest of those that told it."""
    if evidence.error == BoardFault.__name__ and evidence.trip:
        return Trip(evidence.trip).name
    if told := " and ".join(filter(None, (evidence.error, evidence.second_error))):
        return told
    if evidence.latched > 0:
        return Trip(evidence.latched).name
    if evidence.recorded is None:
        return NONE
    if evidence.recorded.killed:
        return "RECORDER_KILLED"
    if abs(evidence.recorded.drift_ppm) > DRIFT_PPM:
        return "CLOCK_DRIFT"
    return _name_in(evidence.recorded.ledger.boards[0])


def _name_in(ledger: BoardLedger) -> str:
    """What the ledger says was lost, the worst of it."""
    named = {
        "SAMPLES_DROPPED": ledger.board_dropped,
        "FRAMES_LOST": ledger.frames_lost,
        "DUPLICATES": ledger.duplicates,
        "TICKS_MISSED": ledger.ticks_missed,
    }
    return next((name for name, count in named.items() if count), NONE)


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
