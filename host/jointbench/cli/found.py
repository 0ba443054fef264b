"""What there is to go on with: boards at this machine's ports; benches, plans, runs and models in a folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serial.tools import list_ports

from jointbench.foreign import text_of, toml_values

_RUN_FILE, _MODEL = "run.toml", "*model*.json"
_PLACES = ("", "*/", "runs/*/", "runs/*/*/")
_BENCHES = ("*.toml", "runs/*.toml", "runs/*/*.toml", "runs/*/*/bench.toml")
_HEAD = 300  # characters of a plan that tell it from other JSON


@dataclass(frozen=True)
class Found:
    """What there is, the newest of each kind last; paths as they would be typed in the folder.

    Attributes:
        ports: serial ports on USB, where boards are, with what they say of themselves.
        benches: bench files whose boards are at ports that are there.
        absent: bench files whose boards are not, such as that of a virtual bench that has ended.
        plans, runs, models: files and run directories.
        newest: of the benches, plans, runs and models; None where there is none.
    """

    ports: dict[str, str]
    benches: tuple[Path, ...]
    absent: tuple[Path, ...]
    plans: tuple[Path, ...]
    runs: tuple[Path, ...]
    models: tuple[Path, ...]
    newest: Path | None


def look(folder: Path) -> Found:
    """See what a folder, its `runs` and the machine's ports have."""
    benches = {path: ports for path in _by_age(folder, _BENCHES) if (ports := _bench_ports(folder / path))}
    present = [path for path, ports in benches.items() if all(map(_is_there, ports))]
    plans = tuple(path for path in _by_age(folder, ("*.json",)) if _is_plan(folder / path))
    runs = _by_age(folder, [f"{place}{_RUN_FILE}" for place in _PLACES])
    models = _by_age(folder, [f"{place}{_MODEL}" for place in _PLACES])
    last = [group[-1] for group in (tuple(present), plans, runs, models) if group]
    newest = max(last, key=lambda path: (folder / path).stat().st_mtime, default=None)
    return Found(
        ports={port.device: str(port.description) for port in sorted(list_ports.comports()) if port.vid is not None},
        benches=tuple(present),
        absent=tuple(path for path in benches if path not in present),
        plans=plans,
        runs=tuple(path.parent for path in runs),
        models=models,
        newest=newest.parent if newest in runs else newest,
    )


def _by_age(folder: Path, patterns: Iterable[str]) -> tuple[Path, ...]:
    """Files that match, each once, the oldest first, as seen from the folder."""
    files = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return tuple(path.relative_to(folder) for path in sorted(files, key=lambda path: (path.stat().st_mtime, path)))


def _bench_ports(path: Path) -> list[str]:
    """The ports of a bench file's boards; none where it is another file."""
    try:
        content: dict[str, Any] = toml_values(text_of(path))
    except (OSError, ValueError):
        return []
    boards = content.get("board")
    if path.name == _RUN_FILE or "robot" not in content or not isinstance(boards, list):
        return []
    entries = [board for board in boards if isinstance(board, dict)]
    return [str(board.get("url", "")).rpartition(";")[2].strip().removeprefix("serial:") for board in entries]


def _is_there(port: str) -> bool:
    """Whether a port is a device of this machine, or a URL of another."""
    return "://" in port or Path(port).exists()


def _is_plan(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        head = file.read(_HEAD)
    return '"family"' in head and head.lstrip().startswith("{")
