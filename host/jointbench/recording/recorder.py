"""Recording a run: a directory that is readable at any moment, also after the process was killed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from jointbench.errors import RunError
from jointbench.link.ledger import DEFAULT_LIMIT, Ledger
from jointbench.link.tally import Tally
from jointbench.recording.record_file import Record, RecordKind, RecordWriter
from jointbench.recording.run_directory import create_run_directory
from jointwire import Chunk, Frame


class Recorder:
    """Writes one run: run.toml first, then frames and events as they come, result.json last.

    As a context manager it closes the run whatever happens, and an error's text becomes its outcome.

    Args:
        directory: to create; an existing one is never written to.
        provenance: what run.toml will hold; `robot` (a library name or a path) and `board` (list of tables with node
            and joint, in joint order) are needed.
        limit: largest fraction of samples that may be lost in a valid run.

    Raises:
        RunError: the directory exists, or the provenance cannot be written.
    """

    def __init__(self, directory: str | Path, provenance: Mapping[str, Any], limit: float = DEFAULT_LIMIT) -> None:
        """Create the directory and write run.toml."""
        boards = provenance.get("board")
        if not boards:
            raise RunError("a recording needs provenance['board']: a list with node and joint of each board")
        self.path = create_run_directory(directory, provenance)
        self.tally = Tally({board["node"]: board["joint"] for board in boards}, limit)
        self._frames = RecordWriter(self.path / "frames.bin")
        self._events = (self.path / "events.jsonl").open("x", encoding="utf-8")
        self._records = 0
        self._closed = False

    def chunk(self, time_us: int, node: int, chunk: Chunk) -> None:
        """Record what came from this node's port at this time of the clock, unaltered."""
        is_frame = isinstance(chunk.content, Frame)
        kind = RecordKind.FRAME if is_frame else RecordKind.NOISE
        self._frames.write(Record(time_us, node, kind, chunk.encoded))
        self._records += 1
        if isinstance(chunk.content, Frame):
            self.tally.add(chunk.content)
        else:
            self.tally.add_noise(node)

    def event(self, time_us: int, event: str, **fields: Any) -> None:
        """Record something that happened: a command sent, a change of state, a fault."""
        self._events.write(json.dumps({"time_us": time_us, "event": event, **fields}, ensure_ascii=False) + "\n")
        self._events.flush()

    def close(self, outcome: str = "finished") -> Ledger:
        """Finish the run and return its ledger; closing twice changes nothing."""
        ledger = self.tally.ledger()
        if self._closed:
            return ledger
        self._closed = True
        self._frames.close()
        self._events.close()
        result = {
            "outcome": outcome,
            "records": self._records,
            "frames_sha256": hashlib.sha256((self.path / "frames.bin").read_bytes()).hexdigest(),
            "ledger": ledger.to_dict(),
        }
        unfinished = self.path / "result.json.new"
        unfinished.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(unfinished, self.path / "result.json")
        return ledger

    def __enter__(self) -> Recorder:
        """Return the recorder."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the run; it stays readable after an error."""
        self.close("finished" if error is None else f"stopped by {type(error).__name__}: {error}".rstrip(": "))


def new_run_path(root: str | Path, robot: str, kind: str) -> Path:
    """Path `<root>/<utc date-time>-<robot>-<kind>` that does not exist yet; a number is added where it does."""
    stem = f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}-{robot}-{kind}"
    path, number = Path(root) / stem, 2
    while path.exists():
        path, number = Path(root) / f"{stem}-{number}", number + 1
    return path
