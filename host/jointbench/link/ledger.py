"""The loss ledger: every sample a board took is either received or accounted for by where it was lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

DEFAULT_LIMIT = 0.001


@dataclass(frozen=True)
class BoardLedger:
    """What one board took, and where it went.

    Attributes:
        node, joint: the board.
        frames: valid frames received, duplicates not counted.
        frames_lost: sequence numbers that never came.
        duplicates: frames that came again; their samples are not counted twice.
        bad_frames: byte strings between delimiters that were no frame.
        samples_taken: by the board's own count, None where its opening or closing STATUS is missing.
        samples_received: different ticks received.
        link_lost: sent by the board and never received.
        board_dropped: taken, but the board's transmit buffer was full.
        ticks_missed: sampling periods the board itself missed.
        unexplained: samples taken that no kind of loss explains; the ledger closes when it is 0.
        fault: why the ledger does not close; empty when it does.
    """

    node: int
    joint: str
    frames: int
    frames_lost: int
    duplicates: int
    bad_frames: int
    samples_taken: int | None
    samples_received: int
    link_lost: int
    board_dropped: int
    ticks_missed: int
    unexplained: int
    fault: str = ""

    @property
    def closes(self) -> bool:
        """Whether taken == received + link_lost + board_dropped, by independent counts on both sides."""
        return not self.fault

    @property
    def samples_lost(self) -> int:
        """Sampling periods without a sample in the recording, whatever lost them."""
        return self.link_lost + self.board_dropped + self.ticks_missed + max(self.unexplained, 0)


@dataclass(frozen=True)
class Ledger:
    """The ledgers of all boards of a run; it judges itself.

    Attributes:
        boards: one a joint.
        limit: largest fraction of samples that may be lost in a valid run.
    """

    boards: tuple[BoardLedger, ...]
    limit: float = DEFAULT_LIMIT

    @property
    def samples_received(self) -> int:
        """Of all boards."""
        return sum(board.samples_received for board in self.boards)

    @property
    def samples_lost(self) -> int:
        """Of all boards, whatever lost them."""
        return sum(board.samples_lost for board in self.boards)

    @property
    def lost_fraction(self) -> float:
        """Samples lost of samples that should be there, over all boards; 1 when there is none at all."""
        expected = self.samples_received + self.samples_lost
        return self.samples_lost / expected if expected else 1.0

    @property
    def closes(self) -> bool:
        """Whether every board's ledger closes."""
        return all(board.closes for board in self.boards)

    @property
    def is_valid(self) -> bool:
        """Whether the run may be used: every board's ledger closes and the loss is within the limit."""
        return bool(self.boards) and self.closes and self.lost_fraction <= self.limit

    @property
    def verdict(self) -> str:
        """One sentence: "valid: ..." or "invalid: ..." with the reason."""
        lost = f"{self.samples_lost} of {self.samples_received + self.samples_lost} samples lost"
        if not self.boards:
            return "invalid: no board was recorded"
        faults = [f"{board.joint}: {board.fault}" for board in self.boards if board.fault]
        if faults:
            return f"invalid: {'; '.join(faults)} ({lost})"
        if self.lost_fraction > self.limit:
            return f"invalid: {lost}, {self.lost_fraction:.3%} is more than the limit of {self.limit:.3%}"
        return f"valid: {lost}"

    def text(self) -> str:
        """The ledger as a table for people, the verdict below it."""
        heads = ("joint", "frames", "taken", "received", "link lost", "dropped", "missed", "bad frames", "closes")
        rows = [heads] + [
            (
                board.joint,
                str(board.frames),
                "unknown" if board.samples_taken is None else str(board.samples_taken),
                str(board.samples_received),
                str(board.link_lost),
                str(board.board_dropped),
                str(board.ticks_missed),
                str(board.bad_frames),
                "yes" if board.closes else "no",
            )
            for board in self.boards
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*lines, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the sums and the verdict for those who read only JSON."""
        return {
            "limit": self.limit,
            "boards": [asdict(board) for board in self.boards],
            "samples_received": self.samples_received,
            "samples_lost": self.samples_lost,
            "closes": self.closes,
            "verdict": self.verdict,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Ledger:
        """The ledger that `to_dict` gave these values for."""
        return Ledger(tuple(BoardLedger(**board) for board in values["boards"]), values["limit"])
