"""Logs in Parquet: the wanted columns of a file, and its first rows; a column of vectors is one for each element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.extras import need
from jointbench.files import foreign_code, regular_file
from jointbench.recording.log_table import LogTable, file_sha256, missing_column
from jointbench.recording.mapping import LogFile

PARQUET = (".parquet", ".pq")

_LONGEST = 256
"""Elements up to which a vector is one of signals; longer ones are pictures and spectra."""


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open it, and close it afterwards.

    Raises:
        MissingExtra: pyarrow is not installed.
        FileError: it cannot be read, or is no Parquet.
    """
    need("convert", "Parquet", "pyarrow")
    from pyarrow import parquet

    try:
        with (
            foreign_code(FileError, f"{path} is no Parquet file, or damaged", "write it anew"),
            parquet.ParquetFile(regular_file(path)) as file,
        ):
            yield file
    except FileNotFoundError as error:
        raise FileError(f"{path} cannot be read: there is no such file") from error


@dataclass(frozen=True)
class ParquetColumn:
    """Where a column of numbers is: the field of the file, and which element of its vectors; None of plain numbers."""

    field: str
    element: int | None


def parquet_columns(opened: Any, names: Mapping[str, Sequence[str]] | None = None) -> dict[str, ParquetColumn]:
    """Columns of a file by their names: "q[0]" is the first element of the vectors in "q".

    Args:
        opened: the file.
        names: of the elements of some vectors, by field: "state.elbow" then is an element of "state".
    """
    columns: dict[str, ParquetColumn] = {}
    for field in opened.schema_arrow:
        length = _vector_length(opened, field)
        if length is None:
            columns[field.name] = ParquetColumn(field.name, None)
            continue
        labels = (names or {}).get(field.name, ())
        known = len(labels) == length == len(set(labels))
        for k in range(length):
            name = f"{field.name}.{labels[k]}" if known else f"{field.name}[{k}]"
            columns[name] = ParquetColumn(field.name, k)
    return columns


def _vector_length(opened: Any, field: Any) -> int | None:
    """Number of elements of a field's vectors of numbers, as of the first row; None where it holds something else."""
    from pyarrow import types

    if not _is_vector(field.type):
        return None
    if types.is_fixed_size_list(field.type):
        return field.type.list_size if field.type.list_size <= _LONGEST else None
    for batch in opened.iter_batches(batch_size=1, columns=[field.name]):
        first = batch.column(0)[0].as_py()
        return len(first) if first is not None and len(first) <= _LONGEST else None
    return None


def read_parquet_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a Parquet file; null is NaN, moments are seconds from the first one.

    Raises:
        MissingExtra: pyarrow is not installed.
        FileError: it is no Parquet, lacks a column, or a column holds neither numbers, moments nor vectors of one
            length.
    """
    columns = tuple(dict.fromkeys(wanted))
    with open_parquet(path) as opened:
        names = opened.schema_arrow.names
        places = parquet_columns(opened)
        for name in columns:
            if name not in places or names.count(places[name].field) != 1:
                raise missing_column(file.path, name, list(places) if names.count(name) < 2 else names)
        values = column_values(opened, [places[name] for name in columns], file.path)
    return LogTable(file.path, columns, values, np.arange(len(values)), file_sha256(path), "row")


def column_values(opened: Any, columns: Sequence[ParquetColumn], file: str) -> Array:
    """Values of columns, shape (rows, n_columns).

    Raises:
        FileError: a column holds neither numbers, moments nor vectors of one length.
    """
    fields = list(dict.fromkeys(column.field for column in columns))
    table = opened.read(columns=fields)
    values = {name: _field_values(table.column(name), file, name) for name in fields}
    return np.column_stack([_element(values[column.field], column) for column in columns])


def _element(values: Array, column: ParquetColumn) -> Array:
    return values if column.element is None else values[:, column.element]


def first_rows(
    path: Path, count: int, names: Mapping[str, Sequence[str]] | None = None
) -> tuple[tuple[str, ...], Array, frozenset[str]]:
    """Names and first values of all columns of numbers and moments, and which of them are moments.

    Args:
        path: of the file.
        count: of rows.
        names: as of `parquet_columns`.
    """
    with open_parquet(path) as opened:
        schema = opened.schema_arrow
        places = parquet_columns(opened, names)
        kinds = {field.name: field for field in schema if _is_numeric(field) or _is_moments(field)}
        useful = {name: place for name, place in places.items() if place.element is not None or place.field in kinds}
        if not useful:
            raise FileError(f"{path}: none of its columns holds numbers; they are {', '.join(schema.names)}")
        fields = list(dict.fromkeys(place.field for place in useful.values()))
        batches = list(islice(opened.iter_batches(batch_size=count, columns=fields), 1))
        if not batches:
            raise FileError(f"{path} has no rows; nothing can be told from it")
        values = {name: _field_values(batches[0].column(name), path.name, name) for name in fields}
        stacked = np.column_stack([_element(values[place.field], place) for place in useful.values()])
        moments = frozenset(name for name, place in useful.items() if _is_moments(schema.field(place.field)))
    return tuple(useful), stacked, moments


def _is_numeric(column: Any) -> bool:
    from pyarrow import types

    kind = column.type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_moments(column: Any) -> bool:
    from pyarrow import types

    return bool(types.is_timestamp(column.type) or types.is_duration(column.type))


def _is_vector(kind: Any) -> bool:
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)))


def _field_values(column: Any, file: str, name: str) -> Array:
    """Return the numbers of an Arrow array, whatever their kind; of vectors, shape (rows, n)."""
    import pyarrow
    from pyarrow import compute

    if _is_moments(column):
        moments = np.asarray(column)
        first = next(iter(moments[~np.isnat(moments)]), np.timedelta64("NaT"))
        return (moments - first) / np.timedelta64(1, "s")
    if _is_vector(column.type):
        rows = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
        lengths = np.unique(np.asarray(compute.list_value_length(rows), dtype=np.float64))
        if len(lengths) != 1 or np.isnan(lengths[0]):
            raise FileError(
                f"{file}, column {name!r} holds vectors of several lengths, or rows without one; write the file again "
                f"with vectors of one length in this column, one in each row"
            )
        return np.asarray(rows.flatten(), dtype=np.float64).reshape(len(rows), int(lengths[0]))
    if not _is_numeric(column):
        raise FileError(
            f"{file}, column {name!r} holds {column.type}; only numbers and moments (timestamp, duration) can be "
            f"imported: name another column in the mapping, or write the file again with numbers in this one"
        )
    return np.asarray(column, dtype=np.float64)
