"""Where everything that is received goes: a recorder fills this role, and the link knows no more of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from jointbench.link.ledger import Ledger
from jointbench.link.tally import Tally
from jointwire import Chunk


class Sink(Protocol):
    """Takes chunks and events as they come, and counts what was lost."""

    holds: bool
    """Whether what comes waits for `flush`; set by who calls it after each wait."""

    @property
    def path(self) -> Path:
        """Where it is put."""
        ...

    @property
    def tally(self) -> Tally:
        """What was taken, counted."""
        ...

    def chunk(self, time_us: int, node: int, chunk: Chunk) -> None:
        """Take what came from this node's port, or in its turn on a shared line, at this time of the clock."""
        ...

    def flush(self) -> None:
        """Write what was held back."""
        ...

    def rest(self, time_us: int, node: int, data: bytes) -> None:
        """Take the bytes after the last delimiter: what was still coming in when listening ended."""
        ...

    def event(self, time_us: int, event: str, **fields: Any) -> None:
        """Take note of something that happened."""
        ...

    def close(self, outcome: str = "finished") -> Ledger:
        """Finish, and say what was lost."""
        ...
