"""What a report says of the bench and of its boards, as plain values to be noted of a test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointbench.foreign import text_of, toml_values

if TYPE_CHECKING:
    from jointbench.link import Board


def bench_facts(name: str, clock: str, seed: int, features: Iterable[str]) -> dict[str, Any]:
    """Say which bench a test runs on."""
    return {"name": name, "clock": clock, "seed": seed, "features": sorted(map(str, features))}


def urls_in(bench_file: Path) -> dict[int, str]:
    """Return the URL of each node as a bench file has it: an emulated board's port has another name in each run."""
    boards = toml_values(text_of(bench_file)).get("board", [])
    return {int(node): str(board["url"]) for board in boards for node in board.get("nodes", [board.get("node", 0)])}


def board_facts(board: Board) -> dict[str, Any]:
    """Say who a board is, by its own words when it was last greeted."""
    who = board.identity
    place = {"node": board.node, "joint": board.joint, "port": board.port.url}
    said = (
        {"board": "", "uid": "", "firmware_version": "", "image_sha256": "", "wire": ""}
        if who is None
        else {
            "board": who.board,
            "uid": who.uid,
            "firmware_version": who.firmware_version,
            "image_sha256": who.image_sha256,
            "wire": who.wire,
        }
    )
    return place | said
