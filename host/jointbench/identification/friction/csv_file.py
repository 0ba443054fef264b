"""Friction of one joint from a CSV file whose header says quantity and unit."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ImportedDataError
from jointbench.foreign import regular_file
from jointbench.identification.friction.data import FrictionData
from jointbench.recording.csv_table import read_csv_table
from jointbench.recording.mapping import LogFile

_DELIMITERS = ",;\t"
_UNITS: dict[str, dict[str, tuple[float, float]]] = {
    "velocity": {
        "velocity_rad_s": (1.0, 0.0),
        "velocity_deg_s": (math.pi / 180.0, 0.0),
        "velocity_m_s": (1.0, 0.0),
        "velocity_mm_s": (1e-3, 0.0),
    },
    "torque": {"torque_Nm": (1.0, 0.0), "torque_mNm": (1e-3, 0.0), "force_N": (1.0, 0.0)},
    "load": {"load_Nm": (1.0, 0.0), "load_mNm": (1e-3, 0.0), "load_N": (1.0, 0.0)},
    "temperature": {"temperature_C": (1.0, 273.15), "temperature_K": (1.0, 0.0)},
}
"""For each quantity the columns it may be in, with factor and summand to SI."""

_SLIDING = ("velocity_m_s", "velocity_mm_s")
TIME = "time_s"


def read_friction_csv(path: str | Path) -> tuple[FrictionData, bool]:
    """Read speeds and torques, and load and temperature where there are columns of them.

    Args:
        path: of a file with a header; cells are separated by comma, semicolon or tab. With a column "time_s" rows count
            as evenly spaced in time, else each as its own measurement. Other columns are ignored.

    Returns:
        The data, rows at rest included, and whether the joint slides rather than turns.

    Raises:
        ImportedDataError: the file is missing, a needed column is missing or there twice, or a cell is no number.
    """
    path = Path(path)
    names, delimiter = _header(path)
    chosen = {quantity: _column(path, names, quantity) for quantity in _UNITS}
    for quantity in ("velocity", "torque"):
        if chosen[quantity] is None:
            raise ImportedDataError(
                f"{path} has no {quantity}; its columns are {', '.join(names)}; name one of them "
                f"{' or '.join(_UNITS[quantity])}"
            )
    wanted = [name for name in chosen.values() if name is not None]
    table = read_csv_table(path, LogFile(path.name, delimiter, header=True), wanted)
    table.check_finite(np.ones(table.values.shape, dtype=np.bool_))

    def values(quantity: str) -> Array | None:
        name = chosen[quantity]
        if name is None:
            return None
        factor, summand = _UNITS[quantity][name]
        return factor * table.column(name) + summand

    velocity, torque = values("velocity"), values("torque")
    assert velocity is not None
    assert torque is not None
    data = FrictionData(velocity, torque, values("load"), values("temperature"), in_time=TIME in names)
    return data, chosen["velocity"] in _SLIDING


def _header(path: Path) -> tuple[list[str], str]:
    try:
        with regular_file(path).open(encoding="utf-8-sig", newline="") as file:
            line = file.readline()
    except (OSError, UnicodeDecodeError) as error:
        raise ImportedDataError(f"{path} cannot be read as text ({error}); give a CSV file, or a run") from error
    delimiter = max(_DELIMITERS, key=line.count)
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])], delimiter
    except csv.Error as error:
        raise ImportedDataError(f"{path}, line 1: {error}; is there a stray quote in it?") from error


def _column(path: Path, names: list[str], quantity: str) -> str | None:
    present = [name for name in names if name in _UNITS[quantity]]
    if len(present) > 1:
        raise ImportedDataError(f"{path} has {quantity} more than once ({', '.join(present)}); keep one of the columns")
    return present[0] if present else None
