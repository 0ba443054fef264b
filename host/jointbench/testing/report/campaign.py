"""A fault campaign's result, read to stand beside a run's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jointbench.errors import ReportError
from jointbench.foreign import json_values, text_of

NEEDED = ("id", "fault", "state", "ok")
"""What each cell must say."""


def read_campaign(path: str | Path) -> Mapping[str, Any]:
    """Read the JSON of a campaign.

    Raises:
        ReportError: it cannot be read, or is of something else.
    """
    path = Path(path)
    try:
        campaign = json_values(text_of(path))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} is no fault campaign: {error}; give the file of `./run faults --json`") from None
    cells = campaign.get("cells") if isinstance(campaign, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) and set(NEEDED) <= set(cell) for cell in cells):
        raise ReportError(f"{path} is no fault campaign: it has no cells with {', '.join(NEEDED)}")
    return campaign
