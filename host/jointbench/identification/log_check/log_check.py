"""Look at a log before anything is fitted to it, and say what looks wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from jointbench.errors import LogCheckError
from jointbench.identification.log_check.log_signals import Finding, LogSignals, Word
from jointbench.identification.log_check.motion import (
    check_limits,
    check_speed,
    check_still,
    check_stuck,
    check_velocities,
)
from jointbench.identification.log_check.torques import check_information, check_mixed_up, check_saturation
from jointbench.recording.run import Run

_COUNTS = "compare drive.ratio and the encoders' counts in the boards' config.json with the data sheets"
_AT_THE_BOARDS = {
    "limits": _COUNTS,
    "speed": _COUNTS,
    "swapped sign": "check the wiring of encoder and current sensor, and the sign of drive.ratio: `jointbench check "
    "BENCH --seconds 10` compares the encoders while the joint is turned by hand",
    "exchanged": "check which cable goes to which board, and the joints that the bench file gives them",
    "still joint": "if the joint did move, look at its encoder's cable and supply; if not, nothing of its own is "
    "identified",
    "stuck samples": "look at the encoder's cable and supply",
    "velocity": _COUNTS,
    "torque scale": "check torque constant and ratio in the robot's file, current.scale of the board, and the masses",
    "unexplained": "check the robot's file (masses, gravity, axes), the board's current sensor, and the payload",
}
"""What to do about a finding where boards recorded, and there is no mapping to correct, by its name."""


@dataclass(frozen=True)
class LogCheck:
    """What a look at a log found; it judges itself.

    Attributes:
        findings: one or more for each thing that was looked at.
        left_out: what could not be looked at, and why.
    """

    findings: tuple[Finding, ...]
    left_out: tuple[str, ...]

    @property
    def word(self) -> Word:
        """The worst word of all findings."""
        words = {finding.word for finding in self.findings}
        return "wrong" if "wrong" in words else "suspicious" if "suspicious" in words else "fine"

    @property
    def verdict(self) -> str:
        """One sentence."""
        counts = Counter(finding.word for finding in self.findings)
        parts = ", ".join(f"{counts[word]} {word}" for word in ("wrong", "suspicious", "fine") if counts[word])
        return f"the log looks {self.word}: {parts}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not fine, a sentence each."""
        return tuple(f"{finding}; {finding.advice}" for finding in self.findings if finding.word != "fine")

    def lines(self) -> Iterator[str]:
        """For people: the verdict, each finding with what to do, and what was left out."""
        yield self.verdict
        for finding in self.findings:
            yield f"  {finding}"
            if finding.word != "fine":
                yield f"    {finding.advice}"
        for reason in self.left_out:
            yield f"  not looked at: {reason}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "word": self.word,
            "findings": [finding.to_dict() for finding in self.findings],
            "left_out": list(self.left_out),
        }


def check_log(run: Run) -> LogCheck:
    """Look for what is often wrong with logs: units, signs, order of columns, dead or saturated signals.

    Positions are held against the robot's limits, logged velocities against differences of the positions, and torques
    against what the robot file's own inertias, and friction that slows down, make of the motion.

    Args:
        run: imported or recorded.

    Returns:
        The findings. A log that looks fine may still be wrong: what motion cannot tell, nobody here can.
    """
    try:
        signals = LogSignals.of_run(run)
    except LogCheckError as error:
        return LogCheck((), (str(error),))
    left_out: list[str] = []
    findings = [
        *check_limits(signals),
        *check_speed(signals),
        *check_still(signals),
        *check_stuck(signals),
        *check_velocities(signals, left_out),
        *check_saturation(signals),
        *check_information(signals),
        *check_mixed_up(signals, left_out),
    ]
    if "board" in run.provenance:
        findings = [replace(each, advice=_AT_THE_BOARDS.get(each.name, each.advice)) for each in findings]
    return LogCheck(tuple(findings), tuple(left_out))
