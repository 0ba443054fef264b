"""Logs in Parquet: the wanted columns of a file, and its first rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


def read_parquet_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a Parquet file; null is NaN, moments are seconds from the first one.

    Raises:
        MissingExtra: pyarrow is not installed.
        FileError: it is no Parquet, lacks a column, or a column holds neither numbers nor moments.
    """
    columns = tuple(dict.fromkeys(wanted))
    with open_parquet(path) as opened:
        names = opened.schema_arrow.names
        for name in columns:
            if names.count(name) != 1:
                raise missing_column(file.path, name, names)
        table = opened.read(columns=list(columns))
        values = np.column_stack([_column_numbers(table.column(name), file.path, name) for name in columns])
    return LogTable(file.path, columns, values, np.arange(len(values)), file_sha256(path), "row")


def first_rows(path: Path, count: int) -> tuple[tuple[str, ...], Array, frozenset[str]]:
    """Names and first values of all columns of numbers and moments, and which of them are moments."""
    with open_parquet(path) as opened:
        batches = list(islice(opened.iter_batches(batch_size=count), 1))
        if not batches:
            raise FileError(f"{path} has no rows; nothing can be told from it")
        columns = {name: batches[0].column(name) for name in opened.schema_arrow.names}
    numeric = {name: column for name, column in columns.items() if _is_numeric(column) or _is_moments(column)}
    if not numeric:
        raise FileError(f"{path}: none of its columns holds numbers; they are {', '.join(columns)}")
    values = np.column_stack([_column_numbers(column, path.name, name) for name, column in numeric.items()])
    return tuple(numeric), values, frozenset(name for name, column in numeric.items() if _is_moments(column))


def _is_numeric(column: Any) -> bool:
    from pyarrow import types

    kind = column.type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_moments(column: Any) -> bool:
    from pyarrow import types

    return bool(types.is_timestamp(column.type) or types.is_duration(column.type))


def _column_numbers(column: Any, file: str, name: str) -> Array:
    """Return the numbers of an Arrow array, whatever their kind."""
    if _is_moments(column):
        moments = np.asarray(column)
        first = next(iter(moments[~np.isnat(moments)]), np.timedelta64("NaT"))
        return (moments - first) / np.timedelta64(1, "s")
    if not _is_numeric(column):
        raise FileError(
            f"{file}, column {name!r} holds {column.type}; only numbers and moments (timestamp, duration) can be "
            f"imported: name another column in the mapping, or write the file again with numbers in this one"
        )
    return np.asarray(column, dtype=np.float64)
