"""Friction data: torque lost at known speeds, both directions, from arrays, a run or a CSV file."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FileError, FitError
from jointbench.files import regular_file
from jointbench.recording import LogFile, read_csv_table


@dataclass(frozen=True, eq=False)
class FrictionData:
    """Friction of one joint, row by row; all arrays have shape (n,).

    Attributes:
        velocity: [rad/s or m/s].
        torque: that friction takes, positive against positive velocity [N·m or N].
        load: torque that the joint transmits [N·m or N], or None where not known; its sign does not matter.
        temperature: [K], or None where not known.
        acceleration: [rad/s² or m/s²] where the torque holds that of a rotor's unknown inertia too, or None.
        in_time: rows are evenly spaced in time, so that neighbours err alike; False: each is its own measurement.
    """

    velocity: Array
    torque: Array
    load: Array | None = None
    temperature: Array | None = None
    acceleration: Array | None = None
    in_time: bool = False

    def __post_init__(self) -> None:
        """Refuse arrays that differ in shape or hold no numbers.

        Raises:
            FitError: names the array.
        """
        for name, values in self._arrays().items():
            if values.ndim != 1 or values.shape != self.velocity.shape:
                raise FitError(f"friction {name} has shape {values.shape}, must be {self.velocity.shape}, one row each")
            if not np.isfinite(values).all():
                row = int(np.flatnonzero(~np.isfinite(values))[0])
                raise FitError(
                    f"friction {name} of row {row} is {values[row]}, not a finite number; leave such rows out"
                )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.velocity)

    @property
    def both_directions(self) -> bool:
        """True if it has rows of either direction."""
        return bool((self.velocity > 0.0).any() and (self.velocity < 0.0).any())

    def part(self, rows: NDArray[np.bool_]) -> FrictionData:
        """The rows that a mask of shape (n,) picks."""
        return replace(self, **{name: values[rows] for name, values in self._arrays().items()})

    def moving(self, threshold: float = 0.0) -> FrictionData:
        """The rows faster than a speed [rad/s or m/s]: at rest, friction is whatever it must be to hold."""
        return self.part(np.abs(self.velocity) > threshold)

    def _arrays(self) -> dict[str, Array]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


_REST = 0.01
"""A joint slower than this share of its largest speed counts as standing between two strokes."""

_STEADY = 0.05
"""Share by which the speed may differ from a stroke's median for a sample to count, and the speeds of a pair."""

_LEAST_SHARE, _LEAST_SAMPLES = 0.5, 20
"""A stroke counts when at least this share of its samples, and so many of them, are steady."""


@dataclass(frozen=True, eq=False)
class Stroke:
    """The steady part of one move: mean velocity, and positions and torques of its samples, shape (n,)."""

    velocity: float
    position: Array
    torque: Array


def steady_strokes(position: Array, velocity: Array, torque: Array) -> list[Stroke]:
    """The steady parts of one joint's moves, in the order of time.

    Args:
        position: [rad or m], shape (n,), evenly spaced in time.
        velocity: [rad/s or m/s].
        torque: [N·m or N].
    """
    largest = float(np.abs(velocity).max(initial=0.0))
    direction = np.where(np.abs(velocity) > _REST * largest, np.sign(velocity), 0.0)
    cuts = np.flatnonzero(np.diff(direction)) + 1
    strokes: list[Stroke] = []
    for rows in np.split(np.arange(len(velocity)), cuts):
        if not len(rows) or direction[rows[0]] == 0.0:
            continue
        median = float(np.median(velocity[rows]))
        steady = rows[np.abs(velocity[rows] - median) <= _STEADY * abs(median)]
        if len(steady) >= max(_LEAST_SAMPLES, _LEAST_SHARE * len(rows)):
            strokes.append(Stroke(float(velocity[steady].mean()), position[steady], torque[steady]))
    return strokes


def combine_directions(strokes: list[Stroke]) -> FrictionData:
    """One row per pair of successive strokes at the same speed: half the difference of their torques.

    torque(v) = (mean torque forward - mean torque backward) / 2, both over the positions that both strokes cover.
    Gravity, cable forces and sensor offsets are the same function of position in both, and cancel. For a coupled joint
    with two motors this is, in joint torques, (T1+ ∓ T2+ - T1- ± T2-) / 2 of its motors.

    Args:
        strokes: as `steady_strokes` gives them.

    Returns:
        One row per pair, all speeds positive; friction is taken to be the same in both directions.

    Source: Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024.
    """
    speeds: list[float] = []
    torques: list[float] = []
    k = 0
    while k + 1 < len(strokes):
        first, second = strokes[k], strokes[k + 1]
        difference = _half_difference(first, second) if _are_pair(first, second) else None
        if difference is None:
            k += 1
            continue
        speeds.append(0.5 * (abs(first.velocity) + abs(second.velocity)))
        torques.append(difference)
        k += 2
    return FrictionData(np.array(speeds), np.array(torques))


def _are_pair(first: Stroke, second: Stroke) -> bool:
    apart = abs(first.velocity + second.velocity)
    return first.velocity * second.velocity < 0.0 and apart <= _STEADY * abs(first.velocity)


def _half_difference(first: Stroke, second: Stroke) -> float | None:
    """(forward - backward) / 2 over the positions both cover, None where they have next to none in common."""
    low = max(first.position.min(), second.position.min())
    high = min(first.position.max(), second.position.max())
    means: list[float] = []
    for stroke in (first, second):
        common = (stroke.position >= low) & (stroke.position <= high)
        if int(common.sum()) < _LEAST_SAMPLES:
            return None
        means.append(float(stroke.torque[common].mean()))
    return 0.5 * (means[0] - means[1]) * float(np.sign(first.velocity))


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
        FileError: the file is missing, a needed column is missing or there twice, or a cell is no number.
    """
    path = Path(path)
    names, delimiter = _header(path)
    chosen = {quantity: _column(path, names, quantity) for quantity in _UNITS}
    for quantity in ("velocity", "torque"):
        if chosen[quantity] is None:
            raise FileError(
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
        raise FileError(f"{path} cannot be read as text ({error}); give a CSV file, or a run") from error
    delimiter = max(_DELIMITERS, key=line.count)
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])], delimiter
    except csv.Error as error:
        raise FileError(f"{path}, line 1: {error}; is there a stray quote in it?") from error


def _column(path: Path, names: list[str], quantity: str) -> str | None:
    present = [name for name in names if name in _UNITS[quantity]]
    if len(present) > 1:
        raise FileError(f"{path} has {quantity} more than once ({', '.join(present)}); keep one of the columns")
    return present[0] if present else None
