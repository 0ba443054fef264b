"""A run in another program's format, and what was written by us back into a run."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jointbench.errors import FileError, FileNotWritten, FitError
from jointbench.files import foreign_code, toml_values, write_file
from jointbench.model import split_reference
from jointbench.recording import (
    CONVERTED,
    EVENTS,
    MAPPING,
    PROVENANCE,
    ROBOT,
    ROBOT_URDF,
    Run,
    Samples,
    file_sha256,
    new_run_path,
    open_run,
    save_samples,
)
from jointbench.results.converted_run import About, about_run, samples_sha256
from jointbench.results.mcap import is_own_mcap, read_own_mcap, write_mcap
from jointbench.results.rerun_file import write_rerun
from jointbench.results.run_tables import (
    is_own_csv,
    is_own_parquet,
    read_own_csv,
    read_own_parquet,
    write_csv,
    write_parquet,
)

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

_READERS: tuple[tuple[Callable[[Path], bool], Callable[[Path], tuple[About, Samples]]], ...] = (
    (is_own_csv, read_own_csv),
    (is_own_parquet, read_own_parquet),
    (is_own_mcap, read_own_mcap),
)
ENDINGS = (".csv", ".parquet", ".mcap")


def convert(run: Run | str | os.PathLike[str], path: str | Path, to: str | None = None) -> tuple[Path, ...]:
    """Write a run in another program's format; nothing is interpolated, and what is missing stays missing.

    Args:
        run: the run, or its directory.
        path: of the file; one that exists is never written over, nor one that goes beside it.
        to: a format of `FORMATS`; None: the one of the path's ending.

    Returns:
        What was written: the file, and with CSV the one that describes its columns.

    Raises:
        FitError: no such format, or the file's ending is another one's.
        FileNotWritten: a file exists already.
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
        raise FileNotWritten(f"{path} exists; a file is never overwritten, name another")


def _named(path: Path, to: str | None) -> str:
    known = "; ".join(f"{name} ({ending})" for name, (ending, _) in FORMATS.items())
    by_ending = {ending: name for name, (ending, _) in FORMATS.items()}
    by_name = by_ending.get(path.suffix.lower())
    if to is None and by_name is None:
        raise FitError(f"{path}: its ending tells no format; give one of {known}")
    name = to or str(by_name)
    if name not in FORMATS:
        raise FitError(f"format {to!r} is not known; the formats are {known}")
    if by_name not in (None, name):
        raise FitError(
            f"{path}: its ending is that of {by_name}, and the format is to be {name}; name it "
            f"{path.with_suffix(FORMATS[name][0]).name}, or take format {by_name}"
        )
    return name


def is_converted(path: str | Path) -> bool:
    """Return whether `convert` wrote this file, so that it can become a run without a mapping.

    Raises:
        MissingExtra: its format needs a package that is not installed.
        FileError: it is damaged, or not what its ending says.
    """
    with _damage_named(Path(path)):
        return Path(path).is_file() and any(is_own(Path(path)) for is_own, _ in _READERS)


def import_converted(path: str | Path, directory: str | Path | None = None) -> Run:
    """Make a run of a file that `convert` wrote; its samples are those of the first run, bit for bit.

    The recorded frames are not in such a file: what they said of clocks and starts is gone, while the loss ledger, the
    warnings and the hash of the frames are kept, and a run that was invalid stays so.

    Args:
        path: a .csv, .parquet or .mcap file.
        directory: of the run, to create. None: a new one in the folder `runs`.

    Raises:
        FileError: there is no such file, something else wrote it, it is damaged, or its values were changed.
        RunError: the directory exists.
        MissingExtra: its format needs a package that is not installed.
    """
    source = Path(path)
    if not source.exists():
        raise FileError(f"{source} cannot be read: there is no such file")
    with _damage_named(source):
        read = next((reader for is_own, reader in _READERS if is_own(source)), None)
    if read is None:
        raise FileError(
            f"{source} is no run that Jointbench converted; a mapping says what its columns mean: "
            f"jointbench import --robot ROBOT --log {source} --propose mapping.toml"
        )
    with _damage_named(source):
        about, samples = read(source)
        is_whole = samples_sha256(samples, about.columns) == about.samples_sha256
    if not is_whole:
        raise FileError(
            f"{source}: its values are no longer those of run {about.run}, so it cannot come back as that run; convert "
            f"the run again, or describe the changed file by a mapping: "
            f"jointbench import --robot ROBOT --log {source} --propose mapping.toml"
        )
    return _made(about, samples, source, None if directory is None else Path(directory))


@contextmanager
def _damage_named(source: Path) -> Iterator[None]:
    """Name the file, whatever a library of its format makes of damage: each has errors of its own, or none."""
    with foreign_code(FileError, f"{source} is damaged", "convert the run again, or take it from a copy"):
        yield


def _made(about: About, samples: Samples, source: Path, directory: Path | None) -> Run:
    provenance = _provenance(about, source)
    name = provenance.pop("robot")
    where = directory or new_run_path("runs", split_reference(name)[0], "import")
    converted = {
        "run": about.run,
        "sha256": about.sha256,
        "ledger": about.ledger,
        "warnings": list(about.warnings),
        "file": source.name,
        "file_sha256": file_sha256(source),
    }
    files = {CONVERTED: json.dumps(converted, indent=2, ensure_ascii=False).encode()}
    files |= {each: about.files[each].encode() for each in (EVENTS, MAPPING) if each in about.files}
    with tempfile.TemporaryDirectory() as folder:
        copies = [each for each in (ROBOT, ROBOT_URDF) if each in about.files]
        if not copies:
            raise FileError(f"{source} holds no robot file; convert the run again")
        for copy in copies:
            write_file(Path(folder) / copy, about.files[copy])
        modules = split_reference(name)[1]
        reference = str(Path(folder) / copies[0]) + ("" if modules is None else f":{modules}")
        path = save_samples(where, samples, {**provenance, "robot": reference}, files)
    return open_run(path)


def _provenance(about: About, source: Path) -> dict[str, Any]:
    """Return what run.toml said, but for what is said afresh."""
    try:
        values = toml_values(about.files[PROVENANCE])
        return {key: value for key, value in values.items() if key not in ("version", "jointbench", "sealed")}
    except (KeyError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"{source}: the run.toml in it is missing or damaged; convert the run again") from error
