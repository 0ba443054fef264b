"""The boards that tests ran on, and what they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jointbench.testing.report.content import BoardRow
from jointbench.testing.report.fingerprint import fingerprint
from jointbench.testing.report.summary import Summary

_PICTURE = "The picture is drawn from the hash of its image: other firmware, other picture."


def board_rows(summary: Summary) -> tuple[BoardRow, ...]:
    """Return a row for each board, and one more for each other firmware it had."""
    return tuple(_row(board) for board in summary.boards)


def board_note(summary: Summary) -> str:
    """Return what the boards' firmware comes to: all the same, or not."""
    images = {str(board["image_sha256"]) for board in summary.boards}
    if not summary.boards:
        return "No board was greeted: no test came so far."
    if len(images) == 1:
        return f"All boards ran the same firmware. {_PICTURE}"
    return f"The boards ran {len(images)} different firmwares. {_PICTURE}"


def _row(board: Mapping[str, Any]) -> BoardRow:
    image = str(board["image_sha256"])
    return BoardRow(
        node=str(board["node"]),
        joint=str(board["joint"]),
        url=str(board["url"]),
        kind=str(board["board"]),
        uid=str(board["uid"]),
        firmware=str(board["firmware_version"]),
        fingerprint=fingerprint(image) if image else "",
        image=image,
    )
