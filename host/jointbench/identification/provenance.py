"""Where a result comes from."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
import scipy

from jointbench.identification.settings import FitSettings
from jointbench.recording.run import Run


def provenance(run: Run) -> dict[str, Any]:
    """Of one run: its place, its hash, what was recorded about it, and what computed the result."""
    return _of_run(run) | {"versions": _versions()}


def provenance_of_all(runs: Sequence[Run], settings: Sequence[FitSettings]) -> dict[str, Any]:
    """The same of one run, or under "runs" of several, each with the settings it was observed with."""
    if len(runs) == 1:
        return provenance(runs[0])
    each = [_of_run(run) | {"settings": chosen.to_dict()} for run, chosen in zip(runs, settings, strict=True)]
    return {"runs": each, "versions": _versions()}


def _of_run(run: Run) -> dict[str, Any]:
    edits = {"edits": list(run.edits)} if run.edits else {}
    return {"run": str(run.path), "sha256": run.sha256, "recorded": dict(run.provenance), **edits}


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "jointbench": _installed_version(),
    }


def _installed_version() -> str:
    try:
        return metadata.version("jointbench")
    except metadata.PackageNotFoundError:
        return "not installed"
