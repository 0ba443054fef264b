"""A run imported from somebody's log by its mapping: rows put on an even grid of times, values in SI units."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FileError, SignalError
from jointbench.model import Robot, model_parameter_names
from jointbench.recording.csv_log import read_single_values
from jointbench.recording.log_formats import is_log, read_log
from jointbench.recording.log_table import LogTable
from jointbench.recording.mapping import Channel, Mapping, read_mapping
from jointbench.recording.recorder import new_run_path
from jointbench.recording.run import Run, open_run, save_samples
from jointbench.recording.run_directory import MAPPING
from jointbench.recording.samples import Samples
from jointbench.signals import resample

_MOST_SPARSE, _FEW = 100, 100_000
"""Rows of an even grid for each of a log, and rows that are few whatever the log has."""


@dataclass(frozen=True, eq=False)
class TimeGrid:
    """An even grid of times.

    Attributes:
        start: time of its first place [s].
        sample_period: [s].
        length: number of places.
        places: where each row of the log stands on the grid, shape (rows,).
        jitter: standard deviation of steps between rows from whole periods [s]; nan without times.
    """

    start: float
    sample_period: float
    length: int
    places: NDArray[np.intp]
    jitter: float = float("nan")

    @property
    def time(self) -> Array:
        """Times of all places [s], shape (length,)."""
        return self.start + self.sample_period * np.arange(self.length, dtype=np.float64)

    def place(self, values: Array) -> Array:
        """Values of the rows, shape (rows, n), on the grid, nan where no row stands, shape (length, n)."""
        placed = np.full((self.length, values.shape[1]), np.nan)
        placed[self.places] = values
        return placed

    def place_known(self, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which places hold a row that is known, of a mask of the rows."""
        placed = np.zeros(self.length, dtype=np.bool_)
        placed[self.places] = known
        return placed


@dataclass(frozen=True, eq=False)
class UnevenTimes:
    """Rows at uneven times, and the even grid that their values are interpolated onto.

    Attributes:
        rows: time of each row [s], rising.
        known: rows that values may come from, shape (rows,).
        time: of the grid's places [s], shape (length,).
        covered: places with known rows around them, shape (length,).
        sample_period: [s].
        jitter: root mean square of what steps between rows differ from the sample period, gaps apart [s].
        gaps: stretches of the grid that no known row is near.
    """

    rows: Array
    known: NDArray[np.bool_]
    time: Array
    covered: NDArray[np.bool_]
    sample_period: float
    jitter: float
    gaps: int

    def place(self, values: Array) -> Array:
        """Values of the rows, shape (rows, n), interpolated onto the grid, nan in gaps, shape (length, n)."""
        return resample(self.rows, values, self.known, sample_period=self.sample_period).values

    def place_known(self, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which places values can be interpolated to; `known` must be that of the grid."""
        assert np.array_equal(known, self.known)
        return self.covered


def uneven_times(
    time: Array,
    lines: NDArray[np.intp],
    file: str,
    known: NDArray[np.bool_],
    *,
    sample_period: float | None,
    counted: str = "line",
) -> UnevenTimes:
    """Make an even grid for rows at uneven times.

    Args:
        time: of each row [s].
        lines: of the file, for messages; `counted` says what they are.
        file: its name, for messages.
        known: rows that values may come from.
        sample_period: of the grid [s]; None: the median spacing.

    Raises:
        FileError: times that repeat or go back, or are nowhere regular enough to interpolate.
    """
    _check_rising(time, lines, file, counted)
    _check_span(time, lines, file, counted, sample_period)
    try:
        made = resample(time, time[:, None], known, sample_period=sample_period)
    except SignalError as error:
        raise FileError(f"{file}: {error}") from error
    return UnevenTimes(time, known, made.time, made.valid, made.sample_period, made.jitter, made.n_gaps)


def even_grid(rows: int, first_row: int, sample_period: float) -> TimeGrid:
    """Place rows of a log that has no times: row k of the file is at k sample periods."""
    return TimeGrid(first_row * sample_period, sample_period, rows, np.arange(rows))


def grid_of_times(
    time: Array,
    lines: NDArray[np.intp],
    file: str,
    *,
    sample_period: float | None,
    tolerance: float,
    allow_gaps: bool,
    counted: str = "line",
) -> TimeGrid:
    """Place the rows of a log by their times.

    Nothing is interpolated: times must be evenly spaced up to the tolerance, but for gaps of whole sample periods.

    Args:
        time: of each row [s], at least two.
        lines: of the file, for messages; `counted` says what they are.
        file: its name, for messages.
        sample_period: [s]; None: the median spacing.
        tolerance: largest deviation from a whole number of sample periods between neighbours, as a share of one.
        allow_gaps: whether rows may be missing.

    Raises:
        FileError: times that repeat or go back, are unevenly spaced, or leave a gap that is not allowed.
    """
    _check_rising(time, lines, file, counted)
    steps = np.diff(time)
    period = float(np.median(steps)) if sample_period is None else sample_period
    periods = np.maximum(np.round(steps / period), 1.0)
    _check_span(time, lines, file, counted, sample_period)
    _check_jitter(time, steps - periods * period, lines, file, counted, period, tolerance)
    gaps = np.flatnonzero(periods > 1.0)
    if len(gaps) and not allow_gaps:
        row = int(gaps[np.argmax(periods[gaps])])
        missing = int(np.sum(periods[gaps] - 1.0))
        raise FileError(
            f"{file}: {missing} rows are missing in {len(gaps)} gap{'s' if len(gaps) > 1 else ''}; the longest lasts "
            f"{steps[row]:.6g} s from {time[row]:.9g} s ({counted} {lines[row]}) at one row each {period:.6g} s; set "
            f"allow_gaps = true to import them marked as missing, or take rows on one side with first_row and end_row"
        )
    places = np.concatenate([[0], np.cumsum(periods)]).astype(np.intp)
    if sample_period is None:
        period = float((time[-1] - time[0]) / places[-1])  # the median of rounded times is itself rounded
    return TimeGrid(float(time[0]), period, int(places[-1]) + 1, places, float(np.std(steps - periods * period)))


def _check_span(time: Array, lines: NDArray[np.intp], file: str, counted: str, sample_period: float | None) -> None:
    """Refuse times of which an even grid would have many times more rows than the log: a clock was set meanwhile."""
    steps = np.diff(time)
    period = float(np.median(steps)) if sample_period is None else sample_period
    if (time[-1] - time[0]) / period <= _MOST_SPARSE * len(time) + _FEW:
        return
    row = int(np.argmax(steps))
    raise FileError(
        f"{file}: its {len(time)} rows are spread over {time[-1] - time[0]:.6g} s, which would be "
        f"{(time[-1] - time[0]) / period:.3g} rows each {period:.6g} s; time jumps by {steps[row]:.6g} s after "
        f"{counted} {lines[row]}: correct the clock, or take rows on one side with first_row and end_row"
    )


def _check_rising(time: Array, lines: NDArray[np.intp], file: str, counted: str) -> None:
    steps = np.diff(time)
    back = np.flatnonzero(steps <= 0.0)
    if not len(back):
        return
    row, repeats = int(back[0]), int(np.sum(steps == 0.0))
    what = "is there twice" if steps[row] == 0.0 else f"comes after {time[row]:.9g} s"
    count = f"; {repeats} of {len(time)} rows repeat the time before" if repeats > 1 else ""
    raise FileError(
        f"{file}, {counted} {lines[row + 1]}: time {time[row + 1]:.9g} s {what}{count}; times must rise from row to "
        f"row: remove the row, or give sample_rate_Hz instead of [time] where rows are evenly spaced in truth"
    )


def _check_jitter(
    time: Array,
    deviation: Array,
    lines: NDArray[np.intp],
    file: str,
    counted: str,
    period: float,
    tolerance: float,
) -> None:
    row = int(np.argmax(np.abs(deviation)))
    if (share := abs(deviation[row]) / period) > tolerance:
        uneven = int(np.sum(np.abs(deviation) > tolerance * period))
        raise FileError(
            f"{file}: times are uneven: {uneven} of {len(deviation)} steps are off a sample period of {period:.6g} s "
            f"by more than {tolerance:.0%} of it, most at {counted} {lines[row + 1]} (t = {time[row + 1]:.9g} s, "
            f"{share:.0%}); nothing is interpolated unasked: set resample = true in [time] to have it done, or raise "
            f"time_tolerance if the sampling was even and only the time stamps jitter"
        )


def import_csv(mapping: str | Path, directory: str | Path | None = None, *, data: str | Path | None = None) -> Run:
    """Import somebody's log: read it as its mapping says, and save it as a run.

    What was recorded is not changed: no value is smoothed, interpolated or left out but by the mapping. The run keeps
    a copy of the mapping and the hashes of the log's files. See `check_log` for what may be wrong with it.

    Args:
        mapping: path of a mapping .toml, or the name of one that comes with the package.
        directory: of the run, to create. None: a new one in the folder `runs`.
        data: folder of the log's files; or a file that takes the place of the mapping's only one. None: the mapping's
            folder.

    Returns:
        The run.

    Raises:
        FileError: an entry of the mapping is missing, unknown, mistyped or contradicts another; or a file or
            column is missing, a row is ragged, a cell is no number, times are uneven or leave a gap, or there are too
            few rows.
        RunError: the directory exists.

    >>> run = jb.import_csv("log.toml", "runs/mine")
    >>> run.samples.motor_torque.shape, run.provenance["files"][0]["path"]
    ((2000, 2), 'log.csv')
    """
    return import_mapped(*mapping_and_folder(mapping, data), directory)


def import_mapped(described: Mapping, folder: Path, directory: str | Path | None = None) -> Run:
    """Import a log by a mapping that is read already.

    Args:
        described: the mapping.
        folder: of the log's files.
        directory: as of `import_csv`.

    Raises:
        FileError, RunError: as of `import_csv`.
    """
    tables = _read_tables(described, folder)
    first, end = _row_range(described, tables)
    grid, known = _grid(described, tables, first, end)
    samples = _samples(described, tables, grid, known, first, end)
    where = Path(directory) if directory is not None else new_run_path("runs", described.robot.name, "import")
    about = _provenance(described, tables, grid, first, end)
    return open_run(save_samples(where, samples, about, {MAPPING: described.text.encode()}))


def mapping_and_folder(mapping: str | Path, data: str | Path | None) -> tuple[Mapping, Path]:
    """A mapping whose files are those that were given, and the folder that they are in.

    Args:
        mapping, data: as of `import_csv`.

    Raises:
        FileError: as of `import_csv`.
    """
    if data is None:
        folder = Path(mapping).parent
        return read_mapping(mapping, folder), folder
    place = Path(data)
    if not place.exists():
        raise FileError(
            f"the log's data {place}: there is no such file or folder; give the folder of the log's files, or the one "
            f"file (--data, or data= in Python)"
        )
    if not is_log(place):
        return read_mapping(mapping, place), place
    described = read_mapping(mapping, place, place.parent)
    if place.is_dir() and any(_holds(place, file.path) for file in described.files):
        return described, place
    return _with_file(described, place.name), place.parent


def _holds(folder: Path, path: str) -> bool:
    """Return whether this file is in a folder: then it is a folder of logs, however much it looks like a bag."""
    whole = Path(os.path.realpath(folder / path))
    return whole.exists() and whole.is_relative_to(os.path.realpath(folder))


def _with_file(mapping: Mapping, path: str) -> Mapping:
    if len(mapping.files) != 1:
        paths = ", ".join(file.path for file in mapping.files)
        raise FileError(
            f"mapping {mapping.name} takes {len(mapping.files)} files, {paths}; give the folder they are in instead of "
            f"the file {path}"
        )
    return replace(mapping, files=(replace(mapping.files[0], path=path),))


def _read_tables(mapping: Mapping, folder: Path) -> tuple[LogTable, ...]:
    given = (mapping.position, mapping.velocity, mapping.torque, mapping.joint_torque)
    channels = [channel for channel in given if channel is not None]
    tables: list[LogTable] = []
    for index, file in enumerate(mapping.files):
        wanted = [column for channel in channels if channel.file == index for column in channel.columns]
        if mapping.time is not None and mapping.time.file == index:
            wanted.append(mapping.time.column)
        place = folder / file.path
        tables.append(read_single_values(folder, file, wanted) if file.singles else read_log(place, file, wanted))
    for table in tables[1:]:
        if len(table.values) != len(tables[0].values):
            raise FileError(
                f"{tables[0].name} has {len(tables[0].values)} rows and {table.name} {len(table.values)}; rows of all "
                f"files must belong together one by one: export them over the same time"
            )
    return tuple(tables)


def _row_range(mapping: Mapping, tables: tuple[LogTable, ...]) -> tuple[int, int]:
    rows = len(tables[0].values)
    first, end = mapping.rows
    start, stop = first or 0, rows if end is None else end
    if stop > rows or start >= rows:
        asked = f"first_row = {start}" + ("" if end is None else f" and end_row = {end}")
        raise FileError(f"{tables[0].name} has {rows} rows; {asked} ask for more")
    needed = len(model_parameter_names(mapping.robot))
    if stop - start < needed:
        raise FileError(
            f"{tables[0].name} gives {stop - start} rows, and at least {needed} are needed, as many as the model of "
            f"{mapping.robot.name!r} has parameters; record longer, or take more rows"
        )
    return start, stop


def _grid(
    mapping: Mapping, tables: tuple[LogTable, ...], first: int, end: int
) -> tuple[TimeGrid | UnevenTimes, NDArray[np.bool_]]:
    """Return where the rows taken stand in time, and which of them are not known to be wrong."""
    known = np.ones(len(tables[0].values), dtype=np.bool_)
    for start, stop in mapping.invalid_rows:
        known[start:stop] = False
    wanted = np.zeros_like(known)
    wanted[first:end] = True
    time = mapping.time
    for index, table in enumerate(tables):
        measured = np.repeat((known & wanted)[:, None], len(table.columns), axis=1)
        if time is not None and time.file == index:
            measured[:, table.columns.index(time.column)] = wanted  # a row of unknown time has no place at all
        table.check_finite(measured)
    known = known[first:end]
    if time is None:
        assert mapping.sample_period is not None
        return even_grid(end - first, first, mapping.sample_period), known
    table = tables[time.file]
    times, lines = time.factor * table.column(time.column)[first:end], table.lines[first:end]
    if time.resample:
        period = mapping.sample_period
        uneven = uneven_times(times, lines, table.name, known, sample_period=period, counted=table.counted)
        return uneven, known
    grid = grid_of_times(
        times,
        lines,
        table.name,
        sample_period=mapping.sample_period,
        tolerance=mapping.time_tolerance,
        allow_gaps=mapping.allow_gaps,
        counted=table.counted,
    )
    return grid, known


def _samples(
    mapping: Mapping,
    tables: tuple[LogTable, ...],
    grid: TimeGrid | UnevenTimes,
    known: NDArray[np.bool_],
    first: int,
    end: int,
) -> Samples:
    robot = mapping.robot

    def placed(channel: Channel) -> Array:
        table = tables[channel.file]
        cells = np.column_stack([table.column(name) for name in channel.columns])[first:end]
        return grid.place(channel.scale * cells + channel.zero)

    def motion(channel: Channel) -> Array:
        values = placed(channel)
        return values @ np.linalg.inv(robot.transmission_matrix).T if channel.side == "motor" else values

    current, torque = (None, None) if mapping.torque is None else _motor(robot, mapping.torque, placed(mapping.torque))
    return Samples(
        time=grid.time,
        joint_names=robot.joint_names,
        # The only position that was measured, whichever side of the gear it was on.
        motor_position=motion(mapping.position),
        link_position=None,
        motor_current=current,
        motor_torque=torque,
        joint_torque=None if mapping.joint_torque is None else placed(mapping.joint_torque),
        joint_velocity=None if mapping.velocity is None else motion(mapping.velocity),
        play_tick=np.full(len(grid.time), -1, dtype=np.int64),
        valid=np.repeat(grid.place_known(known)[:, None], robot.n_joints, axis=1),
        board_filters=None,
        sample_period=grid.sample_period,
    )


def _motor(robot: Robot, channel: Channel, values: Array) -> tuple[Array | None, Array]:
    """Motor current, where that was logged, and joint torque from the motors."""
    if channel.side == "joint":
        return None, values
    if not channel.is_current:
        return None, values @ robot.transmission_matrix
    constants = np.array([drive.torque_constant for drive in robot.drives])
    return values, (values * constants) @ robot.transmission_matrix


def _provenance(
    mapping: Mapping, tables: tuple[LogTable, ...], grid: TimeGrid | UnevenTimes, first: int, end: int
) -> dict[str, Any]:
    digest = hashlib.sha256(mapping.text.encode()).hexdigest()
    name, more = ("resampled", {"gaps": grid.gaps}) if isinstance(grid, UnevenTimes) else ("times", {})
    return ({name: {"jitter_s": grid.jitter} | more} if np.isfinite(grid.jitter) else {}) | {
        "kind": "import",
        "robot": mapping.robot_reference,
        "source": mapping.source,
        "rows": [first, end],
        "mapping": {"name": mapping.name, "sha256": digest},
        "files": [{"path": table.name, "rows": len(table.values), "sha256": table.sha256} for table in tables],
        "fit": mapping.fit,
    }
