"""A run back from a file that `convert` wrote: the same samples bit for bit, with the run's own words."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jointbench.errors import ImportedDataError
from jointbench.files import write_file
from jointbench.foreign import foreign_code, toml_values
from jointbench.recording.formats.about import About, samples_sha256
from jointbench.recording.formats.csv_file import is_own_csv, read_own_csv
from jointbench.recording.formats.mcap_back import is_own_mcap, read_own_mcap
from jointbench.recording.formats.parquet_file import is_own_parquet, read_own_parquet
from jointbench.recording.recorder import new_run_path
from jointbench.recording.run import Run, open_run, save_samples
from jointbench.recording.run_directory import CONVERTED, EVENTS, MAPPING, PROVENANCE, ROBOT, ROBOT_URDF
from jointbench.recording.samples import Samples
from jointbench.recording.seal import file_sha256
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
        ImportedDataError: there is no such file, something else wrote it, it is damaged, or its values were changed.
        RunError: the directory exists.
        MissingExtra: its format needs a package that is not installed.
    """
    source = Path(path)
    if not source.exists():
        raise ImportedDataError(f"{source} cannot be read: there is no such file")
    with _damage_named(source):
        read = next((reader for is_own, reader in _READERS if is_own(source)), None)
    if read is None:
        raise ImportedDataError(
            f"{source} is no run that Jointbench converted; a mapping says what its columns mean: "
            f"jointbench import --robot ROBOT --log {source} --propose mapping.toml"
        )
    with _damage_named(source):
        about, samples = read(source)
        is_whole = samples_sha256(samples, about.columns) == about.samples_sha256
    if not is_whole:
        raise ImportedDataError(
            f"{source}: its values are no longer those of run {about.run}, so it cannot come back as that run; convert "
            f"the run again, or describe the changed file by a mapping: "
            f"jointbench import --robot ROBOT --log {source} --propose mapping.toml"
        )
    return _made(about, samples, source, None if directory is None else Path(directory))


@contextmanager
def _damage_named(source: Path) -> Iterator[None]:
    """Name the file, whatever a library of its format makes of damage: each has errors of its own, or none."""
    with foreign_code(ImportedDataError, f"{source} is damaged", "convert the run again, or take it from a copy"):
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
        copy = next((each for each in (ROBOT_URDF, ROBOT) if each in about.files), None)
        if copy is None:
            raise ImportedDataError(f"{source} holds no robot file; convert the run again")
        write_file(Path(folder) / copy, about.files[copy])
        modules = split_reference(name)[1]
        reference = str(Path(folder) / copy) + ("" if modules is None else f":{modules}")
        path = save_samples(where, samples, {**provenance, "robot": reference}, files)
    return open_run(path)


def _provenance(about: About, source: Path) -> dict[str, Any]:
    """What run.toml said, but for what is said afresh."""
    try:
        values = toml_values(about.files[PROVENANCE])
        return {key: value for key, value in values.items() if key not in ("version", "jointbench", "sealed")}
    except (KeyError, tomllib.TOMLDecodeError) as error:
        raise ImportedDataError(f"{source}: the run.toml in it is missing or damaged; convert the run again") from error
