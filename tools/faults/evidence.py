"""What is left of a cell when it is over: outputs tick by tick, what stopped the host, and the recording as it lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jointbench.link.ledger import DEFAULT_LIMIT, Ledger
from jointbench.recording import examine, open_run
from jointbench.recording.contents import read_contents
from jointbench.recording.record_file import RecordKind
from jointbench.recording.run_directory import EVENTS, FRAMES, RESULT, read_result
from jointwire import own_schema

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
        armed, started: ticks at which the host last asked for ARM and START, 0 where it did not come to that.
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
    contents = read_contents((run / FRAMES).read_bytes(), own_schema().hash, {node: joint}, DEFAULT_LIMIT)
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
