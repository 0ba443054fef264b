"""The loss ledgers of the runs that a test recorded in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jointbench.foreign import json_values, text_of


def ledgers_in(folder: Path) -> list[dict[str, Any]]:
    """Return run, verdict and plain ledger of each run in a folder, in the order of their names."""
    return [entry for path in sorted(folder.glob("*/result.json")) for entry in _entry(path)]


def _entry(path: Path) -> list[dict[str, Any]]:
    """A run's result is written last and by rename: what is there is whole. Other commands' have no ledger."""
    result = json_values(text_of(path))
    ledger = result.get("ledger") if isinstance(result, dict) else None
    return [{"run": path.parent.name, "verdict": ledger["verdict"], "ledger": ledger}] if ledger else []
