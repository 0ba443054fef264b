"""The mapping file: what the columns of somebody's log mean, so that it becomes a run.

version = 1
robot = "tx40"                       # a name of the robot library, or a path relative to this file, or to the data
sample_rate_Hz = 5000                # or a table [time] with column and unit ("s", "ms", "us", "ns")
# first_row = 0, end_row = 45000     data rows to take, counted from 0, end_row not taken
# invalid_rows = [[100, 120]]        data rows known to be wrong
# lock = ["wheel", "finger=0.01"]    joints that the log lacks: held still, at home or at a position [rad or m]
# allow_gaps = true                  missing rows are marked invalid rather than refused
# time_tolerance = 0.1               how uneven times may be, as a share of the sample period

[[files]]
path = "log.csv"                     # in the data folder
# delimiter = ";", header = false    CSV: without a header, columns are numbered "1", "2", …
# names_in = ["signal"], time_in = "t"   CSV with one value a line: columns of names and times; interpolate = true where
#                                    each signal has times of its own. Columns are the names, "elbow.effort" of several
# singles = ["q1.txt", "tau1.txt"]   in place of path: files of one value a line, each a column named as the file
# topic = "/joint_states"            a bag (.mcap, .db3, .bag, or a rosbag2 folder): columns are "stamp" and "log_time"
#                                    [s from the first], "<joint>.position", ".velocity" and ".effort" of joint states,
#                                    and paths such as "wrench.force.x" or "data[0]" of other messages
# episodes = [0, 2]                  a LeRobot dataset's folder; all of them where not said, a second apart; columns are
#                                    "timestamp", "observation.state.elbow.pos", or "observation.state[0]" without names
#                                    MATLAB: columns are "rec.t" of a vector, "rec.q[1]" of a matrix's first signal

[position]                           # and [torque] of the motors, or [joint_torque] of sensors, or both
columns = ["p1", "p2"]               # one per joint
unit = "rad"                         # one for all joints, or a list; so too gain, offset, counts_per_turn
side = "motor"                       # of the gear: "motor" goes through the robot's ratios or couplings
# file = "log.csv"                   which one, where there are several; "log.mcap:/topic" of a bag
# gain = 1, offset = 0               SI value = (gain x cell + offset) x unit

[velocity]                           # of the same form; nothing is fitted to it, checks hold it against the positions

[time]                               # where the log has times
column = "t"
unit = "ms"
# resample = true                    uneven times: interpolate onto an even grid, and mark what lies in gaps invalid

[tolerances]                         # of the calibration, standard deviations, over those of the robot's file
# zero_deg = 0.5                     zero_mm, length_mm, axis_deg, mounting_deg, torque_constant_percent,
#                                    torque_sensor_percent, gear_ratio_percent, clock_percent; [tolerances.j3] for one

[fit]                                # settings that fits of this run start from (see FitSettings)

"?" stands for what is still to be filled in; a mapping that holds one is refused, and says what.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FileError, RobotError
from jointbench.files import text_of, toml_values
from jointbench.model import (
    Robot,
    library_names,
    load_robot,
    lock_reference,
    read_locks,
    read_tolerances,
    split_reference,
)
from jointbench.model.table import Table

VERSION = 1
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
VELOCITY_UNITS = {
    "rad/s": 1.0, "deg/s": math.pi / 180.0, "rpm": math.pi / 30.0, "m/s": 1.0, "mm/s": 1e-3,
}  # fmt: skip
POSITION_UNITS = {"rad": 1.0, "deg": math.pi / 180.0, "m": 1.0, "mm": 1e-3, "counts": 2.0 * math.pi}
TORQUE_UNITS = {"N·m": 1.0, "Nm": 1.0, "mN·m": 1e-3, "mNm": 1e-3, "N": 1.0}
CURRENT_UNITS = {"A": 1.0, "mA": 1e-3}

TO_FILL_IN = "?"
"""Stands in a proposed mapping for what nobody but its user knows."""

_PER_JOINT = ("unit", "gain", "offset", "counts_per_turn")
"""Keys of a channel that may be one value for all joints or a list of one for each."""


@dataclass(frozen=True)
class LongLayout:
    """Columns of a file with one value a line.

    Attributes:
        time: name of the column of times.
        keys: names of the columns that tell what a line is of.
        interpolate: whether signals have times of their own, and are interpolated onto those of the first one.
    """

    time: str
    keys: tuple[str, ...]
    interpolate: bool = False


@dataclass(frozen=True)
class LogFile:
    """A file of a log: CSV, Parquet, MATLAB, a bag or the folder of a LeRobot dataset.

    Attributes:
        path: in the data folder.
        delimiter: between the cells of a CSV file.
        header: whether a CSV file's first line names its columns.
        topic: of a bag, None where it has but one of joint states.
        episodes: of a LeRobot dataset, None for all.
        long: layout of a CSV file with one value a line, None of others.
        singles: paths of files with one value a line, each a column; empty of others.
    """

    path: str
    delimiter: str = ","
    header: bool = True
    topic: str | None = None
    episodes: tuple[int, ...] | None = None
    long: LongLayout | None = None
    singles: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Name that a channel goes by."""
        return self.path if self.topic is None else f"{self.path}:{self.topic}"


@dataclass(frozen=True, eq=False)
class Channel:
    """One physical quantity of all joints: value [SI] = (gain x cell + offset) x factor of the unit.

    Attributes:
        file: index of its file.
        columns: one per joint: its name in the file, or its number counted from 1 where a CSV has no header.
        side: of the gear on which it was measured, "motor" or "joint".
        is_current: whether it is motor current [A] rather than torque.
        scale, zero: SI value = scale x cell + zero, shape (n_joints,).
    """

    file: int
    columns: tuple[str, ...]
    side: Literal["motor", "joint"]
    is_current: bool
    scale: Array
    zero: Array


@dataclass(frozen=True)
class TimeColumn:
    """The column of time: its unit in seconds, and whether to interpolate where times are uneven."""

    file: int
    column: str
    factor: float
    resample: bool


@dataclass(frozen=True, eq=False)
class Mapping:
    """A mapping file, read and checked.

    Attributes:
        name: of the file, without its ending.
        text: of the file, for the run to keep.
        robot: that was recorded; `robot_reference` is the library name or path it was loaded by.
        source: where the log comes from.
        files: that the log is in.
        position: of motors or joints.
        torque: of the motors, or None.
        joint_torque: of torque sensors at the joints, or None.
        velocity: of motors or joints, or None.
        time: the time column, or None where `sample_period` says it all.
        sample_period: [s], or None where the time column tells.
        rows: first and one past the last data row to take; None for all from or to there.
        invalid_rows: data rows known to be wrong, [from, to) each.
        allow_gaps: whether missing rows are marked invalid rather than refused.
        time_tolerance: how far from even spacing a time may be, as a share of the sample period.
        fit: settings that fits of this run start from, as plain values.
    """

    name: str
    text: str
    robot: Robot
    robot_reference: str
    source: str
    files: tuple[LogFile, ...]
    position: Channel
    torque: Channel | None
    joint_torque: Channel | None
    velocity: Channel | None
    time: TimeColumn | None
    sample_period: float | None
    rows: tuple[int | None, int | None]
    invalid_rows: tuple[tuple[int, int], ...]
    allow_gaps: bool
    time_tolerance: float
    fit: dict[str, Any]


def mapping_names() -> tuple[str, ...]:
    """Names of the mappings that come with the package."""
    files = (entry.name for entry in (resources.files("jointbench.recording") / "mappings").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml")))


def read_mapping(name_or_path: str | Path, *data: Path) -> Mapping:
    """Read a mapping by the name of one that comes with the package, or from a file.

    Args:
        name_or_path: of the mapping.
        data: folders of the log, where a robot file is looked for that does not lie beside the mapping.

    Raises:
        FileError: no such mapping, or an entry in it is missing, unknown, mistyped or contradicts another.
    """
    text, path = _find(name_or_path)
    return parse_mapping(text, path, *data)


def parse_mapping(text: str, path: Path, *data: Path) -> Mapping:
    """Read a mapping from its text.

    Args:
        text: of the mapping.
        path: that its file has, or would have: paths in it are seen from there.
        data: as of `read_mapping`.

    Raises:
        FileError: as `read_mapping`.
    """
    try:
        values = toml_values(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"mapping {path.name} is not TOML: {error}") from error
    try:
        return _mapping(values, text, path, data)
    except RobotError as error:
        raise FileError(str(error)) from error


def _find(name_or_path: str | Path) -> tuple[str, Path]:
    known = ", ".join(mapping_names())
    if str(name_or_path) in mapping_names():
        file = resources.files("jointbench.recording") / "mappings" / f"{name_or_path}.toml"
        return file.read_text(encoding="utf-8"), Path(f"{name_or_path}.toml")
    path = Path(name_or_path)
    try:
        return text_of(path), path
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(
            f"mapping {str(name_or_path)!r} cannot be read ({why}); "
            f"give the path of a mapping .toml, or the name of one that comes with the package: {known}"
        ) from error


def _mapping(values: dict[str, Any], text: str, path: Path, data: tuple[Path, ...]) -> Mapping:
    table = Table(values, f"mapping {path.name}")
    if open_entries := list(_to_fill_in(values)):
        table.fault(f"still to be filled in: {', '.join(open_entries)}; what is wanted stands beside each in the file")
    table.version(VERSION)
    reference = _robot_reference(table.text("robot"), path.parent, data)
    if table.has("lock"):
        reference += lock_reference(read_locks(",".join(table.texts("lock"))))
    robot = load_robot(reference)
    files = tuple(_file(entry) for entry in table.tables("files"))
    if not files:
        table.fault("a mapping needs at least one table [[files]] with a path")
    time, period = _time(table, files)
    torque, sensor = (
        _channel(table, key, values, robot, files, TORQUE_UNITS | (CURRENT_UNITS if key == "torque" else {}))
        if table.has(key)
        else None
        for key in ("torque", "joint_torque")
    )
    if torque is None and sensor is None:
        table.fault("neither [torque] of the motors nor [joint_torque] of sensors is given; a fit needs one of them")
    if sensor is not None and sensor.side == "motor":
        table.fault('joint_torque, side = "motor": sensors at the joint are meant; use [torque] for motor torque')
    mapping = Mapping(
        name=path.stem,
        text=text,
        robot=robot,
        robot_reference=reference,
        source=table.text("source", ""),
        files=files,
        position=_channel(table, "position", values, robot, files, POSITION_UNITS),
        velocity=_channel(table, "velocity", values, robot, files, VELOCITY_UNITS) if table.has("velocity") else None,
        torque=torque,
        joint_torque=sensor,
        time=time,
        sample_period=period,
        rows=_rows(table),
        invalid_rows=_invalid_rows(table, values),
        allow_gaps=table.flag("allow_gaps", False),
        time_tolerance=table.positive("time_tolerance", 0.1),
        fit=_fit(table, values, robot),
    )
    table.finish()
    return mapping


def _to_fill_in(values: Any, name: str = "") -> Iterator[str]:
    """Names of the entries that are still "?"."""
    if isinstance(values, dict):
        for key, value in cast(dict[str, Any], values).items():
            yield from _to_fill_in(value, f"{name}.{key}" if name else key)
    elif values == TO_FILL_IN or (isinstance(values, list) and TO_FILL_IN in values):
        yield name


def _robot_reference(name: str, folder: Path, data: tuple[Path, ...]) -> str:
    """A name of the library, or the path of a file beside the mapping, or else in one of the data's folders."""
    whole, _ = split_reference(name)
    if whole in library_names():
        return name
    return str(next((place for place in (folder, *data) if (place / whole).is_file()), folder) / name)


def _file(table: Table) -> LogFile:
    topic = table.text("topic") if table.has("topic") else None
    episodes = table.wholes("episodes") if table.has("episodes") else None
    long = None
    if table.has("names_in"):
        long = LongLayout(table.text("time_in"), table.texts("names_in"), table.flag("interpolate", False))
    singles = table.texts("singles") if table.has("singles") else ()
    path = f"{singles[0]} … {singles[-1]}" if singles else table.text("path")
    file = LogFile(path, table.text("delimiter", ","), table.flag("header", True), topic, episodes, long, singles)
    if len(file.delimiter) != 1:
        table.fault(f"delimiter = {file.delimiter!r} must be one character")
    table.finish()
    return file


def _file_index(table: Table, files: tuple[LogFile, ...]) -> int:
    """Read which file a channel is in; with a single file it need not be said."""
    labels = tuple(file.label for file in files)
    return labels.index(table.text("file", labels[0] if len(labels) == 1 else None, labels))


def _time(table: Table, files: tuple[LogFile, ...]) -> tuple[TimeColumn | None, float | None]:
    period = 1.0 / table.positive("sample_rate_Hz") if table.has("sample_rate_Hz") else None
    if not table.has("time"):
        if period is None:
            table.fault("neither sample_rate_Hz nor a table [time] with column and unit is given; one is needed")
        return None, period
    entry = table.table("time")
    factor = TIME_UNITS[entry.text("unit", allowed=tuple(TIME_UNITS))]
    time = TimeColumn(_file_index(entry, files), entry.text("column"), factor, entry.flag("resample", False))
    entry.finish()
    return time, period


def _fit(table: Table, values: dict[str, Any], robot: Robot) -> dict[str, Any]:
    """Take settings for fits as they are: the fit knows which there are."""
    settings: dict[str, Any] = {}
    if table.has("fit"):
        table.table("fit")
        settings |= values["fit"]
    if table.has("tolerances"):
        read_tolerances(table.table("tolerances"), robot.joint_names)  # the fit reads them over the robot file's
        settings["tolerances"] = values["tolerances"]
    return settings


def _channel(
    table: Table, key: str, values: dict[str, Any], robot: Robot, files: tuple[LogFile, ...], units: dict[str, float]
) -> Channel:
    """Read one channel; a value given once stands for all joints."""
    n = robot.n_joints
    where = table.table(key).where
    once = {name: value for name, value in values[key].items() if name in _PER_JOINT and not isinstance(value, list)}
    entry = Table(values[key] | {name: [value] * n for name, value in once.items()}, where)
    columns = entry.texts("columns")
    if len(columns) != n:
        entry.fault(
            f"columns has {len(columns)} entries; robot {robot.name!r} has {n} joints: {', '.join(robot.joint_names)}"
        )
    names = entry.texts("unit")
    side = cast(Literal["motor", "joint"], entry.text("side", allowed=("motor", "joint")))
    for name in names:
        if name not in units:
            entry.fault(f"unit = {name!r} is not known here; the units are {', '.join(units)}")
    currents = {name in CURRENT_UNITS for name in names}
    if len(currents) > 1:
        entry.fault("unit mixes currents and torques; give one kind for all joints")
    if currents == {True} and side == "joint":
        entry.fault(f'unit = {names[0]!r} with side = "joint": a current is measured at the motor, so side = "motor"')
    counted = "counts" in names
    turn = np.array(entry.numbers("counts_per_turn", n)) if counted else np.ones(n)
    factor = np.array([units[name] for name in names])
    factor[np.array(names) == "counts"] /= turn[np.array(names) == "counts"]
    gain = np.array(entry.numbers("gain", n, (1.0,) * n))
    offset = np.array(entry.numbers("offset", n, (0.0,) * n))
    file = _file_index(entry, files)
    entry.finish()
    return Channel(file, columns, side, currents == {True}, gain * factor, offset * factor)


def _rows(table: Table) -> tuple[int | None, int | None]:
    first = table.whole("first_row", 0) if table.has("first_row") else None
    end = table.whole("end_row", 0) if table.has("end_row") else None
    if end is not None and end <= (first or 0):
        table.fault(f"end_row = {end} must be above first_row = {first or 0}; rows count from 0, end_row is not taken")
    return first, end


def _invalid_rows(table: Table, values: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    if not table.has("invalid_rows"):
        return ()
    pairs = values["invalid_rows"]
    good = isinstance(pairs, list) and all(
        isinstance(pair, list)
        and len(cast(list[Any], pair)) == 2
        and all(type(k) is int and k >= 0 for k in pair)
        and pair[0] < pair[1]
        for pair in cast(list[Any], pairs)
    )
    if not good:
        table.fault(f"invalid_rows = {pairs!r} must be a list of [first, end] rows, counted from 0, first below end")
    return tuple((int(first), int(end)) for first, end in pairs)
