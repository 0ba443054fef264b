"""A recorder that counts what it was given, to be held against what is in its file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jointbench.recording import Recorder
from jointwire import Chunk, Frame, MessageType


class CountedRecorder(Recorder):
    """Writes a run.

    Attributes:
        taken: frames and byte strings that were none, so far.
        blocks: frames of samples among them.
    """

    def __init__(self, directory: Path, provenance: Mapping[str, Any]) -> None:
        """Create the run's directory."""
        super().__init__(directory, provenance)
        self.taken = self.blocks = 0

    def chunk(self, time_us: int, node: int, chunk: Chunk) -> None:
        """Count it, then record it."""
        self.taken += 1
        self.blocks += isinstance(chunk.content, Frame) and chunk.content.type is MessageType.DATA
        super().chunk(time_us, node, chunk)
