"""A run in another program's format, CSV and Parquet among them, and what was written by us back into a run."""

from __future__ import annotations

import csv
import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import chunks, release_pages
from jointbench.errors import FileError, FileNotWritten, FitError
from jointbench.extras import need
from jointbench.files import foreign_code, json_values, regular_file, replacing, text_of, toml_values, write_file
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
from jointbench.recording.samples import Column
from jointbench.results.converted_run import (
    About,
    about_run,
    about_text,
    empty_fields,
    read_about,
    rows_of,
    samples_sha256,
)
from jointbench.results.mcap import is_own_mcap, read_own_mcap, write_mcap
from jointbench.results.robot_description import write_rerun

FORMATS: dict[str, tuple[str, str]] = {
    "mcap": (".mcap", "for Foxglove, PlotJuggler and ROS 2: joint states, all channels, events, the robot's URDF"),
    "parquet": (".parquet", "for pandas, Polars, DuckDB and the like: one row a sample"),
    "csv": (".csv", "for everything else: one row a sample, every digit"),
    "rerun": (".rrd", "for the Rerun viewer: the robot moving, with its currents and torques"),
}
"""Ending and purpose of each format."""

ENDINGS = (".csv", ".parquet", ".mcap")

_DATATYPES = {"float64": "double", "int64": "long", "bool": "boolean"}
_CSV_ABOUT = "jointbench:about"
_CELLS = {"float64": float, "int64": int, "bool": {"0": False, "1": True}.__getitem__}

_PARQUET_ABOUT = b"jointbench"


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


def write_csv(run: Run, about: About, path: Path) -> tuple[Path, ...]:
    """Write both files; a value that is missing is "nan", whether a joint's sample is valid 1 or 0.

    Returns:
        Their paths.
    """
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([column.name for column in about.columns])
        for part in chunks(about.rows, 4096):
            rows = rows_of(run.samples, about.columns, part)
            cells = [_cells(column, column.of(rows)) for column in about.columns]
            writer.writerows(zip(*cells, strict=True))
    beside = _beside(path)
    write_file(beside, json.dumps(_metadata(path, about), indent=1, ensure_ascii=False) + "\n")
    return path, beside


def is_own_csv(path: Path) -> bool:
    """Return whether a run of ours was written there."""
    return path.suffix.lower() == ".csv" and _beside(path).is_file()


def read_own_csv(path: Path) -> tuple[About, Samples]:
    """Read what `write_csv` wrote.

    Raises:
        FileError: either file is damaged, or the columns are no longer those that were written.
    """
    beside = _beside(path)
    try:
        document: dict[str, Any] = json_values(text_of(beside))
        about = read_about(json.dumps(document["tableSchema"][_CSV_ABOUT]), beside.name)
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{beside} says nothing of a run ({error}); convert the run again, or remove it and describe {path.name} "
            f"by a mapping"
        ) from error
    fields = empty_fields(about.columns, about.rows)
    with regular_file(path).open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        if next(reader, []) != [column.name for column in about.columns]:
            raise FileError(f"{path}: its columns are not those that {beside.name} tells of; convert again")
        for part in chunks(about.rows, 4096):
            _fill(fields, about, part, list(islice(reader, part.stop - part.start)), path)
        if next(reader, None) is not None:
            raise FileError(f"{path} has more rows than the {about.rows} of its run; convert again")
    return about, about.samples(fields)


def _fill(fields: dict[str, NDArray[Any]], about: About, part: slice, rows: list[list[str]], path: Path) -> None:
    if len(rows) < part.stop - part.start:
        raise FileError(
            f"{path} ends after {part.start + len(rows)} of the {about.rows} rows of its run; convert again"
        )
    try:
        for column, cells in zip(about.columns, zip(*rows, strict=True), strict=True):
            read = cast(Any, _CELLS[column.kind])
            fields[column.field][(part, *column.place)] = [read(cell) for cell in cells]
    except (ValueError, KeyError) as error:
        raise FileError(
            f"{path}, rows {part.start} to {part.stop - 1}: a cell is not what was written ({error}); convert again, "
            f"or describe the file by a mapping"
        ) from error
    for values in fields.values():
        release_pages(values)


def _cells(column: Column, values: NDArray[Any]) -> list[Any]:
    """Python's numbers: csv writes those with all their digits."""
    return values.astype(np.int64).tolist() if column.kind == "bool" else values.tolist()


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}-metadata.json")


def _metadata(path: Path, about: About) -> dict[str, Any]:
    columns = [
        {"name": column.name, "titles": column.name, "datatype": _DATATYPES[column.kind], "null": "nan"}
        | ({"schema:unitText": column.unit} if column.unit else {})
        for column in about.columns
    ]
    return {
        "@context": "http://www.w3.org/ns/csvw",
        "url": path.name,
        "tableSchema": {"columns": columns, _CSV_ABOUT: json.loads(about_text(about))},
    }


def write_parquet(run: Run, about: About, path: Path) -> tuple[Path, ...]:
    """Write it; missing values are null, units are the columns' metadata, the rest of the run is the schema's.

    Returns:
        Its path.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    need("convert", "Parquet", "pyarrow")
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"float64": pa.float64(), "int64": pa.int64(), "bool": pa.bool_()}
    fields = [
        pa.field(column.name, kinds[column.kind], metadata={"unit": column.unit} if column.unit else None)
        for column in about.columns
    ]
    schema = pa.schema(fields, metadata={_PARQUET_ABOUT: about_text(about).encode()})
    with replacing(path) as unfinished, parquet.ParquetWriter(unfinished, schema, compression="zstd") as writer:
        for part in chunks(about.rows):
            rows = rows_of(run.samples, about.columns, part)
            arrays = [pa.array(np.ascontiguousarray(column.of(rows)), from_pandas=True) for column in about.columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return (path,)


def is_own_parquet(path: Path) -> bool:
    """Return whether a run of ours was written there.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    from jointbench.recording import open_parquet

    if path.suffix.lower() != ".parquet":
        return False
    with open_parquet(path) as file:
        return _PARQUET_ABOUT in (file.schema_arrow.metadata or {})


def read_own_parquet(path: Path) -> tuple[About, Samples]:
    """Read what `write_parquet` wrote.

    Raises:
        FileError: it is damaged, or another program has changed its columns.
    """
    from jointbench.recording import open_parquet

    with open_parquet(path) as file:
        about = read_about(file.schema_arrow.metadata[_PARQUET_ABOUT], path.name)
        names = [column.name for column in about.columns]
        if file.schema_arrow.names != names or file.metadata.num_rows != about.rows:
            raise FileError(
                f"{path}: its columns or rows are not those of the run that it tells of; convert again, or describe "
                f"it by a mapping"
            )
        fields = empty_fields(about.columns, about.rows)
        start = 0
        for batch in file.iter_batches(batch_size=1 << 16):
            part = slice(start, start + batch.num_rows)
            for column in about.columns:
                fields[column.field][(part, *column.place)] = _values(column, batch.column(column.name))
            for values in fields.values():
                release_pages(values)
            start = part.stop
    return about, about.samples(fields)


def _values(column: Column, array: Any) -> NDArray[Any]:
    """Return the values of an Arrow array; null is NaN."""
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.dtype(column.kind))


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
