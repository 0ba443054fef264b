"""What became of a board that was to be flashed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Outcome = Literal["updated", "already", "planned", "reverted", "silent"]

_MEANING: dict[Outcome, str] = {
    "updated": "runs the new image, confirmed",
    "already": "runs this image already",
    "planned": "would be written; nothing was",
    "reverted": "runs the image it ran before: the new one failed its trial",
    "silent": "does not answer; take its power and give it back, and it starts the image it ran before",
}


@dataclass(frozen=True)
class FlashReport:
    """One board's part of `jointbench flash`.

    Attributes:
        joint, node: which board; of one with two motors both joints, and the first one's node.
        board: its kind.
        uid: of its microcontroller.
        outcome: see `text`.
        slot: that was or would be written, empty for none.
        before, image: SHA-256 of what ran before (empty where nobody answered) and of what was to run.
        firmware: version of the image.
        files, size: of the image, and bytes of them all.
        interpreter: that answered at the prompt, empty for an emulated board whose flash is a folder.
        backup: where its own files were copied to, None for nowhere.
        steps: what was or would be done to its files.
        notes: what the user should know.
    """

    joint: str
    node: int
    board: str
    uid: str
    outcome: Outcome
    slot: str
    before: str
    image: str
    firmware: str
    files: int
    size: int
    interpreter: str
    backup: Path | None
    steps: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the board runs what it should, or nothing was asked of it."""
        return self.outcome in ("updated", "already", "planned")

    @property
    def text(self) -> str:
        """The outcome in a line."""
        where = f", slot {self.slot}" if self.slot else ""
        return (
            f"{self.joint} (node {self.node}, {self.board}{where}): {_MEANING[self.outcome]}; "
            f"firmware {self.firmware}, image {self.image[:16]}, {self.files} files, {self.size} bytes"
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {**asdict(self), "backup": str(self.backup) if self.backup else None, "ok": self.ok}
