"""A run as CSV and as Parquet: one row a sample, and back."""

from __future__ import annotations

import csv
import json
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.errors import FileError
from jointbench.extras import need
from jointbench.files import json_values, regular_file, replacing, text_of, write_file
from jointbench.memory_mapping import chunks, release_pages
from jointbench.recording import Run, Samples
from jointbench.recording.samples import Column
from jointbench.results.converted_run import About, about_text, empty_fields, read_about, rows_of

_DATATYPES = {"float64": "double", "int64": "long", "bool": "boolean"}
_CSV_ABOUT = "jointbench:about"
_CELLS = {"float64": float, "int64": int, "bool": {"0": False, "1": True}.__getitem__}

_PARQUET_ABOUT = b"jointbench"


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
