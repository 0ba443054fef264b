"""The loss ledger: every frame sent and every sample taken is received, or accounted for by where it was lost.

Frames: ``sent = received + damaged + vanished``. Samples: ``taken = received + damaged + vanished + dropped``. The left
sides are the board's own counts (its STATUS frames), the right sides what the host found: sequence numbers, ticks, and
bytes that were no frame. Ticks that the board itself missed were never samples and stand beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

DEFAULT_LOSS_LIMIT = 0.001
_FRAME_HEADS = ("joint", "frames sent =", "received +", "damaged +", "vanished")
_SAMPLE_HEADS = (
    "joint", "samples =", "received +", "damaged +", "vanished +", "dropped", "missed", "closes",
)  # fmt: skip


@dataclass(frozen=True)
class BoardLedger:
    """Frames sent and samples taken by one board between its first and its last STATUS, and where each went.

    Which of two missing frames left a damaged rest behind cannot be known; nor whose samples they were. In a gap of
    both kinds the samples are shared out in proportion; each sum is exact all the same.

    Attributes:
        node, joint: the board.
        frames_sent: by the board's own count, None where its opening or closing STATUS is missing.
        frames_received: valid frames, duplicates not counted.
        frames_damaged: missing frames in whose place bytes came that failed COBS, length or CRC.
        frames_vanished: missing frames of which nothing came.
        samples_taken: by the board's own count, None like `frames_sent`.
        samples_received: in the frames received.
        crc_lost: samples in damaged frames.
        link_lost: samples in vanished frames.
        board_dropped: taken, but the board's transmit buffer was full.
        ticks_missed: sampling periods the board itself missed.
        duplicates: frames that came again, or after they were given up; they are left out.
        stray: byte strings that were no frame and in no frame's place, such as a boot message; no loss.
        requests_damaged: what the host sent and the board found damaged; requests are repeated, so this is no loss.
        unexplained_frames: frames sent that were neither received nor are missing by their sequence numbers.
        unexplained: samples taken that no kind of loss explains, or, negative, samples too many.
        fault: why the ledger does not close; empty when it does.
    """

    node: int
    joint: str
    frames_sent: int | None
    frames_received: int
    frames_damaged: int
    frames_vanished: int
    samples_taken: int | None
    samples_received: int
    crc_lost: int
    link_lost: int
    board_dropped: int
    ticks_missed: int
    duplicates: int = 0
    stray: int = 0
    requests_damaged: int = 0
    unexplained_frames: int = 0
    unexplained: int = 0
    fault: str = ""

    @property
    def closes(self) -> bool:
        """True if both equations hold, by independent counts on both sides."""
        return not self.fault

    @property
    def frames_lost(self) -> int:
        """Frames that are missing, whatever became of them."""
        return self.frames_damaged + self.frames_vanished

    @property
    def bad_frames(self) -> int:
        """Byte strings between delimiters that were no frame."""
        return self.frames_damaged + self.stray

    @property
    def samples_lost(self) -> int:
        """Sampling periods without a sample in the recording, whatever lost them."""
        return self.crc_lost + self.link_lost + self.board_dropped + self.ticks_missed + max(self.unexplained, 0)


@dataclass(frozen=True)
class Ledger:
    """The ledgers of all boards of a run; it judges itself.

    Attributes:
        boards: one a joint.
        limit: largest fraction of samples that may be lost in a valid run.
    """

    boards: tuple[BoardLedger, ...]
    limit: float = DEFAULT_LOSS_LIMIT

    @property
    def samples_received(self) -> int:
        """Samples received of all boards."""
        return sum(board.samples_received for board in self.boards)

    @property
    def samples_lost(self) -> int:
        """Samples lost of all boards, whatever lost them."""
        return sum(board.samples_lost for board in self.boards)

    @property
    def lost_fraction(self) -> float:
        """Samples lost of samples that should be there, over all boards; 1 when there is none at all."""
        expected = self.samples_received + self.samples_lost
        return self.samples_lost / expected if expected else 1.0

    @property
    def closes(self) -> bool:
        """True if every board's ledger closes."""
        return all(board.closes for board in self.boards)

    @property
    def is_valid(self) -> bool:
        """True if the run may be used: every board's ledger closes and the loss is within the limit."""
        return bool(self.boards) and self.closes and self.lost_fraction <= self.limit

    @property
    def verdict(self) -> str:
        """One sentence: "valid: ..." or "invalid: ..." with the reason."""
        expected = self.samples_received + self.samples_lost
        lost = f"{self.samples_lost} of {expected} samples lost" if expected else "no sample was received"
        if not self.boards:
            return "invalid: no board was recorded"
        faults = [f"{board.joint}: {board.fault}" for board in self.boards if board.fault]
        if faults:
            return f"invalid: {'; '.join(faults)} ({lost})"
        if not expected:
            return f"invalid: {lost}"
        if self.lost_fraction > self.limit:
            return f"invalid: {lost}, {self.lost_fraction:.3%} is more than the limit of {self.limit:.3%}"
        return f"valid: {lost}"

    def text(self) -> str:
        """For people: the verdict alone where nothing is missing, else the two equations of every board before it."""
        if self.is_clean:
            return self.verdict
        lines = [
            *_aligned([_FRAME_HEADS, *map(_frame_cells, self.boards)]),
            "",
            *_aligned([_SAMPLE_HEADS, *map(_sample_cells, self.boards)]),
        ]
        notes = [f"{board.joint}: {note}" for board in self.boards if (note := _note(board))]
        return "\n".join([*lines, *notes, self.verdict])

    @property
    def is_clean(self) -> bool:
        """True if every count closes and nothing was lost, dropped, missed, repeated or damaged."""
        lost = ("frames_damaged", "frames_vanished", "crc_lost", "link_lost", "board_dropped", "ticks_missed")
        return all(
            board.closes and not any(getattr(board, name) for name in lost) and not _note(board)
            for board in self.boards
        )

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


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _frame_cells(board: BoardLedger) -> tuple[str, ...]:
    numbers = (board.frames_sent, board.frames_received, board.frames_damaged, board.frames_vanished)
    return (board.joint, *map(_count, numbers))


def _sample_cells(board: BoardLedger) -> tuple[str, ...]:
    numbers = (
        board.samples_taken, board.samples_received, board.crc_lost, board.link_lost, board.board_dropped,
        board.ticks_missed,
    )  # fmt: skip
    return (board.joint, *map(_count, numbers), "yes" if board.closes else "no")


def _count(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _note(board: BoardLedger) -> str:
    counts = {
        "duplicate frames left out": board.duplicates,
        "byte strings that were in no frame's place": board.stray,
        "damaged requests, sent again": board.requests_damaged,
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)
