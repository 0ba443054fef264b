"""The machine a figure was measured on, and what processes take of it."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def machine() -> dict[str, Any]:
    """What the figures were measured on, and how busy it was: beside other programs they are worse."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    packages = {name: metadata.version(name) for name in ("numpy", "numba", "construct")}
    load = {"cores": os.cpu_count(), "load": os.getloadavg()}
    return {"processor": model, **load, "python": platform.python_version(), **packages}


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in RAM (RSS).

    Raises:
        FileNotFoundError: there is no such process.
    """
    return _PAGE * int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used so far, the kernel's part included [s].

    Raises:
        FileNotFoundError: there is no such process.
    """
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


def parent_of(pid: int) -> int:
    """The process that started another.

    Raises:
        FileNotFoundError: there is no such process.
    """
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on: the second, a name in brackets, may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
