"""The loss ledgers of the runs that a test recorded in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def ledgers_in(folder: Path) -> list[dict[str, Any]]:
    """Return run, verdict and plain ledger of each run in a folder, in the order of their names."""
    return [_entry(path) for path in sorted(folder.glob("*/result.json"))]


def _entry(path: Path) -> dict[str, Any]:
    """A run's result is written last and by rename: what is there is whole."""
    ledger = json.loads(path.read_text(encoding="utf-8"))["ledger"]
    return {"run": path.parent.name, "verdict": ledger["verdict"], "ledger": ledger}
