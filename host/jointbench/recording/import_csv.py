"""Turn logs of any robot into a run: CSV, Parquet, and the bags of ROS."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import model_parameter_names
from jointbench.errors import ImportedDataError, MappingError
from jointbench.recording.formats.read_log import is_log, read_log
from jointbench.recording.log_table import LogTable
from jointbench.recording.mapping import Channel, Mapping, read_mapping
from jointbench.recording.recorder import new_run_path
from jointbench.recording.run import Run, open_run, save_samples
from jointbench.recording.run_directory import MAPPING
from jointbench.recording.samples import Samples
from jointbench.recording.time_grid import TimeGrid, UnevenTimes, even_grid, grid_of_times, uneven_times
from jointbench.robot import Robot


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
        MappingError: an entry of the mapping is missing, unknown, mistyped or contradicts another.
        ImportedDataError: a file or column is missing, a row is ragged, a cell is no number, times are uneven or leave
            a gap, or there are too few rows.
        RunError: the directory exists.

    >>> run = jb.import_csv("log.toml", "runs/mine")
    >>> run.samples.motor_torque.shape, run.provenance["files"][0]["path"]
    ((2000, 2), 'log.csv')
    """
    described, folder = mapping_and_folder(mapping, data)
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
        MappingError, ImportedDataError: as of `import_csv`.
    """
    if data is None:
        folder = Path(mapping).parent
        return read_mapping(mapping, folder), folder
    place = Path(data)
    if not place.exists():
        raise ImportedDataError(
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
    """Whether this file is in a folder: then it is a folder of logs, however much it looks like a bag."""
    whole = Path(os.path.realpath(folder / path))
    return whole.exists() and whole.is_relative_to(os.path.realpath(folder))


def _with_file(mapping: Mapping, path: str) -> Mapping:
    if len(mapping.files) != 1:
        paths = ", ".join(file.path for file in mapping.files)
        raise MappingError(
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
        tables.append(read_log(folder / file.path, file, wanted))
    for table in tables[1:]:
        if len(table.values) != len(tables[0].values):
            raise ImportedDataError(
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
        raise ImportedDataError(f"{tables[0].name} has {rows} rows; {asked} ask for more")
    needed = len(model_parameter_names(mapping.robot))
    if stop - start < needed:
        raise ImportedDataError(
            f"{tables[0].name} gives {stop - start} rows, and at least {needed} are needed, as many as the model of "
            f"{mapping.robot.name!r} has parameters; record longer, or take more rows"
        )
    return start, stop


def _grid(
    mapping: Mapping, tables: tuple[LogTable, ...], first: int, end: int
) -> tuple[TimeGrid | UnevenTimes, NDArray[np.bool_]]:
    """Where the rows taken stand in time, and which of them are not known to be wrong."""
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
    uneven = {"resampled": {"jitter_s": grid.jitter, "gaps": grid.gaps}} if isinstance(grid, UnevenTimes) else {}
    return uneven | {
        "kind": "import",
        "robot": mapping.robot_reference,
        "source": mapping.source,
        "rows": [first, end],
        "mapping": {"name": mapping.name, "sha256": digest},
        "files": [{"path": table.name, "rows": len(table.values), "sha256": table.sha256} for table in tables],
        "fit": mapping.fit,
    }
