"""A run as Parquet: a row a sample, a column a quantity, written piece by piece."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.errors import ImportedDataError
from jointbench.extras import need
from jointbench.files import replacing
from jointbench.memory_mapping import chunks, release_pages
from jointbench.recording.formats.about import About, about_text, read_about
from jointbench.recording.formats.columns import Column, empty_fields, rows_of
from jointbench.recording.run import Run
from jointbench.recording.samples import Samples

_OWN = b"jointbench"


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
    schema = pa.schema(fields, metadata={_OWN: about_text(about).encode()})
    with replacing(path) as unfinished, parquet.ParquetWriter(unfinished, schema, compression="zstd") as writer:
        for part in chunks(about.rows):
            rows = rows_of(run.samples, about.columns, part)
            arrays = [pa.array(np.ascontiguousarray(column.of(rows)), from_pandas=True) for column in about.columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return (path,)


def is_own_parquet(path: Path) -> bool:
    """Whether a run of ours was written there.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    from jointbench.recording.formats.parquet_table import open_parquet

    if path.suffix.lower() != ".parquet":
        return False
    with open_parquet(path) as file:
        return _OWN in (file.schema_arrow.metadata or {})


def read_own_parquet(path: Path) -> tuple[About, Samples]:
    """Read what `write_parquet` wrote.

    Raises:
        ImportedDataError: it is damaged, or another program has changed its columns.
    """
    from jointbench.recording.formats.parquet_table import open_parquet

    with open_parquet(path) as file:
        about = read_about(file.schema_arrow.metadata[_OWN], path.name)
        names = [column.name for column in about.columns]
        if file.schema_arrow.names != names or file.metadata.num_rows != about.rows:
            raise ImportedDataError(
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
    """Of an Arrow array; null is NaN."""
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.dtype(column.kind))
