"""A run in another program's format, and what was written by us back into a run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from jointbench.errors import ExportError
from jointbench.recording.formats.about import About, about_run
from jointbench.recording.formats.csv_file import write_csv
from jointbench.recording.formats.mcap_file import write_mcap
from jointbench.recording.formats.parquet_file import write_parquet
from jointbench.recording.formats.rerun_file import write_rerun
from jointbench.recording.run import Run, open_run

FORMATS: dict[str, tuple[str, str]] = {
    "mcap": (".mcap", "for Foxglove, PlotJuggler and ROS 2: joint states, all channels, events, the robot's URDF"),
    "parquet": (".parquet", "for pandas, Polars, DuckDB and the like: one row a sample"),
    "csv": (".csv", "for everything else: one row a sample, every digit"),
    "rerun": (".rrd", "for the Rerun viewer: the robot moving, with its currents and torques"),
}
"""Ending and purpose of each format."""

_WRITERS: dict[str, Callable[[Run, About, Path], tuple[Path, ...]]] = {
    "mcap": write_mcap,
    "parquet": write_parquet,
    "csv": write_csv,
    "rerun": write_rerun,
}


def convert(run: Run | str | os.PathLike[str], path: str | Path, to: str | None = None) -> tuple[Path, ...]:
    """Write a run in another program's format; nothing is interpolated, and what is missing stays missing.

    Args:
        run: the run, or its directory.
        path: of the file; one that exists is never written over, nor one that goes beside it.
        to: a format of `FORMATS`; None: the one of the path's ending.

    Returns:
        What was written: the file, and with CSV the one that describes its columns.

    Raises:
        ExportError: no such format, the file's ending is another one's, or a file exists already.
        MissingExtra: the format needs a package that is not installed.
        RunError: the run cannot be opened.
    """
    target = Path(path)
    name = _named(target, to)
    _refuse_existing(target)
    opened = run if isinstance(run, Run) else open_run(Path(run))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=target.parent) as folder:
        written = _WRITERS[name](opened, about_run(opened), Path(folder) / target.name)
        finished = tuple(target.with_name(each.name) for each in written)
        for each in finished:
            _refuse_existing(each)
        for part, whole in zip(written, finished, strict=True):
            part.replace(whole)
    return finished


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise ExportError(f"{path} exists already; a file is never written over, name another")


def _named(path: Path, to: str | None) -> str:
    known = "; ".join(f"{name} ({ending})" for name, (ending, _) in FORMATS.items())
    by_ending = {ending: name for name, (ending, _) in FORMATS.items()}
    told = by_ending.get(path.suffix.lower())
    if to is None and told is None:
        raise ExportError(f"{path}: its ending tells no format; give one of {known}")
    name = to or str(told)
    if name not in FORMATS:
        raise ExportError(f"format {to!r} is not known; the formats are {known}")
    if told not in (None, name):
        raise ExportError(
            f"{path}: its ending is that of {told}, and the format is to be {name}; name it "
            f"{path.with_suffix(FORMATS[name][0]).name}, or take format {told}"
        )
    return name
