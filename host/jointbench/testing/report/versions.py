"""What ran a report's tests."""

from __future__ import annotations

import platform
from importlib import metadata


def versions() -> dict[str, str]:
    """Versions by name: the host's, Python's, pytest's, and the system."""
    return {
        "jointbench": metadata.version("jointbench"),
        "python": platform.python_version(),
        "pytest": metadata.version("pytest"),
        "system": f"{platform.system()} {platform.machine()}",
    }
