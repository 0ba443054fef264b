"""Logs in MATLAB files: numbers of any depth in structs and cells, one column for each signal of a matrix.

Files of before version 7.3 are read by SciPy. Those of version 7.3 are HDF5: a struct is a group, a cell or an array of
structs holds references, attributes name the classes, and the dimensions are in the opposite order.

Source: MathWorks, MAT-File Format, and MAT-File Versions ("-v7.3"), of MATLAB's documentation.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.extras import need
from jointbench.files import foreign_code, regular_file
from jointbench.recording.log_table import FEWEST, LogTable, file_sha256, missing_column
from jointbench.recording.mapping import LogFile

MATLAB = (".mat",)

_HDF5 = b"\x89HDF\r\n\x1a\n"
_USER_BLOCK = 512  # bytes before the HDF5 part of a MATLAB 7.3 file

_DEEPEST, _MOST_CELLS = 8, 64
"""Depth of structs, and elements of a cell or of an array of structs, up to which signals are looked for."""

_MOST_NODES = 10_000
"""Structs, cells and arrays of a file that are looked at: references may go round in circles."""

_AS_STRUCT = "save a struct of plain arrays in its place, such as table2struct(T, 'ToScalar', true)"


@dataclass(frozen=True, eq=False)
class _Variables:
    """Numbers of a file by their names, each with one row a sample, and what cannot be read, with the reason."""

    arrays: dict[str, Array]
    unread: dict[str, str]


def read_matlab_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a MATLAB file.

    A column is called as in MATLAB, without the colon: "rec.time" of a vector, "rec.q[1]" of a matrix's first signal.

    Args:
        path: of the file.
        file: how it is written.
        wanted: names of the columns.

    Returns:
        Their values.

    Raises:
        MissingExtra: the file is of version 7.3, and h5py is not installed.
        FileError: it is no MATLAB file or damaged, lacks a column, or columns have different numbers of rows.
    """
    columns = tuple(dict.fromkeys(wanted))
    variables = _read(path)
    places = {
        name: place for variable, values in variables.arrays.items() for name, place in _columns(variable, values)
    }
    for name in columns:
        if name not in places:
            if (variable := _variable_of(name)) in variables.unread:
                raise FileError(f"{file.path}: variable {variable!r} is {variables.unread[variable]}")
            raise missing_column(file.path, name, list(places))
    rows = {name: len(places[name]) for name in columns}
    if len(set(rows.values())) > 1:
        (first, n), (other, m) = (
            next(iter(rows.items())),
            next(item for item in rows.items() if item[1] != rows[columns[0]]),
        )
        raise FileError(
            f"{file.path}: {first!r} has {n} rows and {other!r} {m}; columns of a mapping must be sampled together: "
            f"name signals of one length, or resample them onto one time in MATLAB (interp1)"
        )
    values = np.column_stack([places[name] for name in columns]) if columns else np.empty((0, 0))
    return LogTable(file.path, columns, values, np.arange(1, len(values) + 1), file_sha256(path), "row")


def first_samples(path: Path, count: int) -> tuple[tuple[str, ...], Array, tuple[str, ...]]:
    """Names and first values of the columns of most signals of one length, and what else the file holds, a reason each.

    Raises:
        MissingExtra, FileError: as of `read_matlab_table`; or nothing in it is as long as a log.
    """
    variables = _read(path)
    lengths = Counter[int]()
    for values in variables.arrays.values():
        lengths[len(values)] += values.shape[1] if len(values) >= FEWEST else 0
    length = max(lengths, key=lambda rows: (lengths[rows], rows), default=0)
    unread = tuple(f"{name}: it is {reason}" for name, reason in variables.unread.items())
    if not lengths[length]:
        seen = ", ".join(f"{name} ({' x '.join(map(str, v.shape))})" for name, v in list(variables.arrays.items())[:20])
        raise FileError(
            f"{path} holds no signals: none of its variables has {FEWEST} rows or more; it holds {seen or 'nothing'}"
            + "".join(f"; {reason}" for reason in unread)
        )
    chosen = {name: values for name, values in variables.arrays.items() if len(values) == length}
    columns = dict(column for name, values in chosen.items() for column in _columns(name, values[:count]))
    others: dict[int, list[str]] = {}
    for name, values in variables.arrays.items():
        if len(values) not in (1, length) and len(values) >= FEWEST:
            others.setdefault(len(values), []).append(name)
    reasons = tuple(f"{', '.join(names)}: {rows} rows, others have {length}" for rows, names in others.items())
    return tuple(columns), np.column_stack(list(columns.values())), (*reasons, *unread)


def _columns(variable: str, values: Array) -> Iterator[tuple[str, Array]]:
    """Name and values of each column of a variable, counted from 1 as MATLAB does."""
    if values.shape[1] == 1:
        yield variable, values[:, 0]
    else:
        yield from ((f"{variable}[{k + 1}]", values[:, k]) for k in range(values.shape[1]))


def _variable_of(column: str) -> str:
    return column.rpartition("[")[0] if column.endswith("]") else column


def _read(path: Path) -> _Variables:
    try:
        with regular_file(path).open("rb") as file:
            head = file.read(_USER_BLOCK + len(_HDF5))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}; give the path of a .mat file") from error
    damaged = f"{path} is no MATLAB file, or damaged"
    read = _Variables({}, {})
    if _HDF5 in (head[: len(_HDF5)], head[_USER_BLOCK:]):
        need("convert", "a MATLAB 7.3 file", "h5py")
        with foreign_code(FileError, damaged, "save it anew"), _hdf5(path) as whole:
            reader = _Hdf5Reader(whole)
            for name in whole:
                if not name.startswith("#"):  # what MATLAB keeps for itself
                    _collect(read, name, reader.read(whole[name]), 0)
        return read
    with foreign_code(FileError, damaged, "save it anew, or with save(…, '-v7')"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of several objects: they are left out, and named
        values = scipy.io.loadmat(path, simplify_cells=True)
    for name, value in values.items():
        if name == "None":
            read.unread["a variable"] = f"a table, timeseries or other object of MATLAB; {_AS_STRUCT}"
        elif not name.startswith("__"):
            _collect(read, name, value, 0)
    return read


def _collect(read: _Variables, name: str, value: Any, depth: int) -> None:
    """Add all arrays of numbers below a value, by their names in MATLAB."""
    if isinstance(value, _Unread):
        read.unread[name] = value.reason
    elif isinstance(value, dict):
        for field, inner in value.items() if depth < _DEEPEST else ():
            _collect(read, f"{name}.{field}", inner, depth + 1)
    elif isinstance(value, list) or (isinstance(value, np.ndarray) and value.dtype.hasobject):
        for k, inner in enumerate(list(value)[:_MOST_CELLS] if depth < _DEEPEST else ()):
            _collect(read, f"{name}({k + 1})", inner, depth + 1)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.size:
        _add(read, name, value)
    elif isinstance(value, np.ndarray) and value.dtype.kind == "c":
        read.unread[name] = "of complex numbers; save real(…) and imag(…) as variables of their own"
    elif scipy.sparse.issparse(value):
        read.unread[name] = "a sparse matrix; save full(…)"


def _add(read: _Variables, name: str, value: Any) -> None:
    """Add an array with one row a sample: its longest dimension is that of the samples."""
    values = np.squeeze(np.asarray(value, dtype=np.float64))
    if values.ndim > 2:
        read.unread[name] = f"an array of {' x '.join(map(str, values.shape))}; save a matrix with one row a sample"
        return
    values = np.atleast_2d(values)
    read.arrays[name] = values.T if values.shape[0] < values.shape[1] else values


@dataclass(frozen=True)
class _Unread:
    """A value of a class that is not read."""

    reason: str


@contextmanager
def _hdf5(path: Path) -> Iterator[Any]:
    import h5py

    with h5py.File(path, "r") as file:
        yield file


class _Hdf5Reader:
    """Reads variables of a MATLAB file that is HDF5: a struct is a dictionary, a cell a list, numbers are an array."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._left = _MOST_NODES

    def read(self, node: Any, depth: int = 0) -> Any:
        """Return the value of a group or a data set."""
        import h5py

        kind = node.attrs.get("MATLAB_class", b"")
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        self._left -= 1
        if depth > _DEEPEST or self._left < 0 or "MATLAB_empty" in node.attrs:
            return None
        if "MATLAB_sparse" in node.attrs:
            return _Unread("a sparse matrix; save full(…)")
        if "MATLAB_object_decode" in node.attrs and kind not in ("cell", "struct"):
            return _Unread(f"a {kind}, an object of MATLAB; {_AS_STRUCT}")
        if isinstance(node, h5py.Group):
            fields = {name: self.read(node[name], depth + 1) for name in node}
            return _struct_array(fields) if _is_struct_array(node, fields) else fields
        if node.dtype == h5py.ref_dtype:
            return [
                self.read(self._file[reference], depth + 1) if reference else None
                for reference in list(np.ravel(node[()]))[:_MOST_CELLS]
            ]
        if kind in ("char", "cell"):
            return None
        if node.dtype.names:  # MATLAB keeps complex numbers as pairs
            return np.empty(1, dtype=np.complex128)
        return np.asarray(node[()]).T


def _is_struct_array(node: Any, fields: dict[str, Any]) -> bool:
    """Return whether a group is an array of structs: each field refers to one value for each element."""
    import h5py

    return bool(fields) and all(
        isinstance(node[name], h5py.Dataset)
        and node[name].dtype == h5py.ref_dtype
        and "MATLAB_class" not in node[name].attrs
        for name in fields
    )


def _struct_array(fields: dict[str, list[Any]]) -> list[dict[str, Any]]:
    count = min(len(values) for values in fields.values())
    return [{name: values[k] for name, values in fields.items()} for k in range(count)]
