"""What a fault was called: by the board's trip, the host's error, the ledger, the run's clocks or the doctor."""

from __future__ import annotations

from jointbench.errors import BoardFault
from jointbench.link.ledger import BoardLedger
from jointwire import Trip
from tools.faults.evidence import Evidence

NONE = "NONE"
DRIFT_PPM = 100.0  # what a crystal may have


def name_of(evidence: Evidence) -> str:
    """The name of the fault as its user is told it, the loudest of those that told it."""
    if evidence.error == BoardFault.__name__:
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
