"""Logs in Parquet: the wanted columns of a file or of a LeRobot dataset, and its first rows.

A column of vectors is one for each element. A LeRobot dataset is a folder of Parquet files with columns of vectors, and
of their names in meta/info.json. Frames of all its episodes follow one another, a second apart: "timestamp", which each
episode begins anew, rises over all of them, and what lies between two is a gap.

Source: huggingface/lerobot, lerobot/datasets/utils.py, datasets of versions 3.0 (data/chunk-000/file-000.parquet) and 2
(data/chunk-000/episode_000000.parquet).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.extras import need
from jointbench.files import foreign_code, json_values, regular_file, text_of
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
    """Place of a column of numbers: the field of the file, and the element of its vectors; None of plain numbers."""

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


_INFO = Path("meta") / "info.json"
_TIME, _EPISODE = "timestamp", "episode_index"

_BETWEEN_S = 1.0
"""Time from the end of an episode to the beginning of the next one."""


def is_dataset(path: Path) -> bool:
    """Return whether it is the folder of a LeRobot dataset."""
    return (path / _INFO).is_file()


def read_dataset_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a dataset, one row a frame: "observation.state.elbow.pos", or "observation.state[0]".

    Raises:
        MissingExtra: pyarrow is not installed.
        FileError: it has no frames or not those episodes, a file of it is damaged, or it lacks a column.
    """
    columns = tuple(dict.fromkeys(wanted))
    info, names, files = _contents(path)
    blocks: list[Array] = []
    for part in files:
        with open_parquet(part) as opened:
            places = parquet_columns(opened, names)
            for name in (*columns, _EPISODE):
                if name not in places:
                    raise missing_column(str(Path(file.path) / part.relative_to(path)), name, list(places))
            blocks.append(column_values(opened, [places[name] for name in (*columns, _EPISODE)], file.path))
    values = np.concatenate(blocks)
    lines = np.arange(len(values))
    if file.episodes is not None:
        there = np.unique(values[:, -1]).astype(int).tolist()
        if missing := [episode for episode in file.episodes if episode not in there]:
            raise FileError(
                f"{file.path} has no episode {missing[0]}; it has {there[0]} to {there[-1]}: correct episodes = … in "
                f"[[files]]"
            )
        chosen = np.isin(values[:, -1], file.episodes)
        values, lines = values[chosen], lines[chosen]
    if _TIME in columns:
        k = columns.index(_TIME)
        values[:, k] = _continued(values[:, k], values[:, -1], info)
    return LogTable(file.path, columns, values[:, :-1], lines, file_sha256(path / _INFO, *files), "frame")


def first_frames(path: Path, count: int) -> tuple[tuple[str, ...], Array]:
    """Names and first values of all columns of numbers.

    Raises:
        MissingExtra, FileError: as of `read_dataset_table`.
    """
    info, names, files = _contents(path)
    columns: tuple[str, ...] = ()
    blocks: list[Array] = []
    for part in files:
        columns, values, _ = first_rows(part, count, names)
        blocks.append(values)
        if sum(map(len, blocks)) >= count:
            break
    if len({block.shape[1] for block in blocks}) > 1:
        raise FileError(f"{path}: its Parquet files have not all the same columns; write the dataset anew")
    values = np.concatenate(blocks)[:count]
    if _TIME in columns and _EPISODE in columns:
        k = columns.index(_TIME)
        values[:, k] = _continued(values[:, k], values[:, columns.index(_EPISODE)], info)
    return columns, values


def _contents(path: Path) -> tuple[dict[str, Any], dict[str, list[str]], list[Path]]:
    """What meta/info.json says, the names of the elements of each feature, and the Parquet files in order."""
    try:
        info = json_values(text_of(path / _INFO))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileError(f"{path / _INFO} cannot be read: {error}; copy the dataset anew") from error
    features = cast(dict[str, Any], info).get("features") if isinstance(info, dict) else None
    if not isinstance(features, dict):
        raise FileError(f"{path / _INFO} has no table of features; is it that of a LeRobot dataset?")
    files = sorted(path.glob("data/*/*.parquet"))
    if not files:
        raise FileError(
            f"{path} holds no frames: there is no file like data/chunk-000/file-000.parquet in it; download the folder "
            f"data, too"
        )
    named = {name: _names(feature) for name, feature in cast(dict[str, Any], features).items()}
    return cast(dict[str, Any], info), named, files


def _names(feature: Any) -> list[str]:
    """Names of a feature's elements: a list, or a table of lists, by what they are names of."""
    names: Any = cast(dict[str, Any], feature).get("names") if isinstance(feature, dict) else None
    lists = list(cast(dict[str, Any], names).values()) if isinstance(names, dict) else [names]
    return [str(name) for group in lists if isinstance(group, list) for name in cast(list[Any], group)]


def _continued(time: Array, episode: Array, info: dict[str, Any]) -> Array:
    """Return times that rise over all episodes [s], from those that each begins anew."""
    time = time.copy()
    starts = (np.flatnonzero(np.diff(episode)) + 1).tolist()
    rate = info.get("fps")
    between = round(_BETWEEN_S * rate) / rate if isinstance(rate, int | float) and rate > 0.0 else _BETWEEN_S
    for start, end in pairwise([*starts, len(time)]):
        time[start:end] += time[start - 1] + between - time[start]
    return time
