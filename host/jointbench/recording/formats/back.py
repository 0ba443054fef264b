"""A run back from a file that `convert` wrote: the same samples bit for bit, with the run's own words."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jointbench.errors import ImportedDataError
from jointbench.recording.formats.about import MAPPING, About, samples_sha256
from jointbench.recording.formats.csv_file import is_own_csv, read_own_csv
from jointbench.recording.formats.mcap_back import is_own_mcap, read_own_mcap
from jointbench.recording.formats.parquet_file import is_own_parquet, read_own_parquet
from jointbench.recording.recorder import new_run_path
from jointbench.recording.run import Run, open_run
from jointbench.recording.run_directory import (
    CONVERTED,
    EVENTS,
    PROVENANCE,
    ROBOT,
    ROBOT_URDF,
    SAMPLES,
    create_run_directory,
)
from jointbench.recording.samples import Samples, write_samples
from jointbench.robot import split_reference

_READERS: tuple[tuple[Callable[[Path], bool], Callable[[Path], tuple[About, Samples]]], ...] = (
    (is_own_csv, read_own_csv),
    (is_own_parquet, read_own_parquet),
    (is_own_mcap, read_own_mcap),
)
ENDINGS = (".csv", ".parquet", ".mcap")


def is_converted(path: str | Path) -> bool:
    """Whether `convert` wrote this file, so that it can become a run without a mapping.

    Raises:
        MissingExtra: its format needs a package that is not installed.
        ImportedDataError: it is damaged, or not what its ending says.
    """
    return Path(path).is_file() and any(is_own(Path(path)) for is_own, _ in _READERS)


def import_converted(path: str | Path, directory: str | Path | None = None) -> Run:
    """Make a run of a file that `convert` wrote; its samples are those of the first run, bit for bit.

    The recorded frames are not in such a file: what they said of clocks and starts is gone, while the loss ledger, the
    warnings and the hash of the frames are kept, and a run that was invalid stays so.

    Args:
        path: a .csv, .parquet or .mcap file.
        directory: of the run, to create. None: a new one in the folder `runs`.

    Raises:
        ImportedDataError: there is no such file, something else wrote it, it is damaged, or its values were changed.
        RunError: the directory exists.
        MissingExtra: its format needs a package that is not installed.
    """
    source = Path(path)
    if not source.exists():
        raise ImportedDataError(f"{source} cannot be read: there is no such file")
    read = next((reader for is_own, reader in _READERS if is_own(source)), None)
    if read is None:
        raise ImportedDataError(
            f"{source} is no run that Jointbench converted; a mapping says what its columns mean: "
            f"jointbench import --robot ROBOT --log {source} --propose mapping.toml"
        )
    about, samples = read(source)
    if samples_sha256(samples, about.columns) != about.samples_sha256:
        raise ImportedDataError(
            f"{source}: its values are no longer those of run {about.run}, so it cannot come back as that run; convert "
            f"the run again, or describe the changed file by a mapping: "
            f"jointbench import --robot ROBOT --log {source} --propose mapping.toml"
        )
    return _made(about, samples, source, None if directory is None else Path(directory))


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
        "file_sha256": _sha256(source),
    }
    files = {CONVERTED: json.dumps(converted, indent=2, ensure_ascii=False).encode()}
    files |= {each: about.files[each].encode() for each in (EVENTS, MAPPING) if each in about.files}
    with tempfile.TemporaryDirectory() as folder:
        copy = next((each for each in (ROBOT_URDF, ROBOT) if each in about.files), None)
        if copy is None:
            raise ImportedDataError(f"{source} holds no robot file; convert the run again")
        (Path(folder) / copy).write_text(about.files[copy], encoding="utf-8")
        modules = split_reference(name)[1]
        reference = str(Path(folder) / copy) + ("" if modules is None else f":{modules}")
        path = create_run_directory(where, {**provenance, "robot": reference}, files)
    unfinished = path / f"{SAMPLES}.new"
    write_samples(unfinished, samples)
    os.replace(unfinished, path / SAMPLES)
    return open_run(path)


def _provenance(about: About, source: Path) -> dict[str, Any]:
    """What run.toml said, but for what is said afresh."""
    try:
        values = tomllib.loads(about.files[PROVENANCE])
        return {key: value for key, value in values.items() if key not in ("version", "jointbench")}
    except (KeyError, tomllib.TOMLDecodeError) as error:
        raise ImportedDataError(f"{source}: the run.toml in it is missing or damaged; convert the run again") from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
