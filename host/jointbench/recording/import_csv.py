"""Turn CSV logs of any robot into a run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.dynamics import model_parameter_names
from jointbench.errors import ImportedDataError
from jointbench.recording.csv_table import CsvTable, read_csv_table
from jointbench.recording.mapping import Channel, Mapping, read_mapping
from jointbench.recording.recorder import new_run_path
from jointbench.recording.run import Run, open_run, save_samples
from jointbench.recording.samples import Samples
from jointbench.recording.time_grid import TimeGrid, even_grid, grid_of_times
from jointbench.robot import Array


def import_csv(
    mapping: str | Path, directory: str | Path | None = None, *, data: str | Path | None = None
) -> Run:
    """Import somebody's log: read it as its mapping says, and save it as a run.

    What was recorded is not changed: no value is smoothed, interpolated or left out but by the mapping, the run keeps
    a copy of the mapping and the hashes of the log's files.

    Args:
        mapping: path of a mapping .toml, or the name of one that comes with the package.
        directory: of the run, to create. None: a new one in the folder `runs`.
        data: folder of the log's files. None: that of the mapping.

    Returns:
        The run.

    Raises:
        MappingError: an entry of the mapping is missing, unknown, mistyped or contradicts another.
        ImportedDataError: a file or column is missing, a row is ragged, a cell is no number, times are uneven or leave
            a gap, or there are too few rows.
        RunError: the directory exists.
    """
    described = read_mapping(mapping)
    folder = Path(data) if data is not None else Path(mapping).parent
    tables = _read_tables(described, folder)
    first, end = _row_range(described, tables)
    samples = _samples(described, tables, first, end)
    where = Path(directory) if directory is not None else new_run_path("runs", described.robot.name, "import")
    save_samples(where, samples, _provenance(described, tables, first, end))
    (where / "mapping.toml").write_text(described.text, encoding="utf-8")
    return open_run(where)


def _read_tables(mapping: Mapping, folder: Path) -> tuple[CsvTable, ...]:
    channels = [channel for channel in (mapping.position, mapping.torque, mapping.joint_torque) if channel is not None]
    tables: list[CsvTable] = []
    for index, file in enumerate(mapping.files):
        wanted = [column for channel in channels if channel.file == index for column in channel.columns]
        if mapping.time is not None and mapping.time.file == index:
            wanted.append(mapping.time.column)
        tables.append(read_csv_table(folder / file.path, file, wanted))
    for table in tables[1:]:
        if len(table.values) != len(tables[0].values):
            raise ImportedDataError(
                f"{tables[0].name} has {len(tables[0].values)} rows and {table.name} {len(table.values)}; rows of all "
                f"files must belong together one by one: export them over the same time"
            )
    return tuple(tables)


def _row_range(mapping: Mapping, tables: tuple[CsvTable, ...]) -> tuple[int, int]:
    rows = len(tables[0].values)
    first, end = mapping.rows
    start, stop = first or 0, rows if end is None else end
    if stop > rows or start >= rows:
        raise ImportedDataError(
            f"{tables[0].name} has {rows} rows; first_row = {start} and end_row = {stop} ask for more"
        )
    needed = len(model_parameter_names(mapping.robot))
    if stop - start < needed:
        raise ImportedDataError(
            f"{tables[0].name} gives {stop - start} rows, and at least {needed} are needed, as many as the model of "
            f"{mapping.robot.name!r} has parameters; record longer, or take more rows"
        )
    return start, stop


def _samples(mapping: Mapping, tables: tuple[CsvTable, ...], first: int, end: int) -> Samples:
    known = np.ones(len(tables[0].values), dtype=np.bool_)
    for start, stop in mapping.invalid_rows:
        known[start:stop] = False
    wanted = np.zeros_like(known)
    wanted[first:end] = True
    for index, table in enumerate(tables):
        measured = np.repeat((known & wanted)[:, None], len(table.columns), axis=1)
        if mapping.time is not None and mapping.time.file == index:
            measured[:, table.columns.index(mapping.time.column)] = wanted  # a row of unknown time has no place at all
        table.check_finite(measured)
    grid = _grid(mapping, tables, first, end)
    robot = mapping.robot
    valid = np.zeros((grid.length, robot.n_joints), dtype=np.bool_)
    valid[grid.places] = known[first:end, None]
    position = _placed(mapping.position, tables, grid, first, end)
    if mapping.position.side == "motor":
        position = position @ np.linalg.inv(robot.transmission_matrix).T
    current, torque = _motor(mapping, tables, grid, first, end)
    sensor = mapping.joint_torque
    return Samples(
        time=grid.time,
        joint_names=robot.joint_names,
        # The only position that was measured, whichever side of the gear it was on.
        motor_position=position,
        link_position=None,
        motor_current=current,
        motor_torque=torque,
        joint_torque=None if sensor is None else _placed(sensor, tables, grid, first, end),
        play_tick=np.full(grid.length, -1, dtype=np.int64),
        valid=valid,
        board_filters=None,
        sample_period=grid.sample_period,
    )


def _motor(
    mapping: Mapping, tables: tuple[CsvTable, ...], grid: TimeGrid, first: int, end: int
) -> tuple[Array | None, Array | None]:
    """Motor current, where that was logged, and joint torque from the motors."""
    if mapping.torque is None:
        return None, None
    robot = mapping.robot
    values = _placed(mapping.torque, tables, grid, first, end)
    if mapping.torque.side == "joint":
        return None, values
    if not mapping.torque.is_current:
        return None, values @ robot.transmission_matrix
    constants = np.array([drive.torque_constant for drive in robot.drives])
    return values, (values * constants) @ robot.transmission_matrix


def _placed(channel: Channel, tables: tuple[CsvTable, ...], grid: TimeGrid, first: int, end: int) -> Array:
    """A channel in SI on the grid, nan where no row stands."""
    table = tables[channel.file]
    cells = np.column_stack([table.column(name) for name in channel.columns])[first:end]
    values = np.full((grid.length, len(channel.columns)), np.nan)
    values[grid.places] = channel.scale * cells + channel.zero
    return values


def _grid(mapping: Mapping, tables: tuple[CsvTable, ...], first: int, end: int) -> TimeGrid:
    if mapping.time is None:
        assert mapping.sample_period is not None
        return even_grid(end - first, first, mapping.sample_period)
    table = tables[mapping.time.file]
    return grid_of_times(
        mapping.time.factor * table.column(mapping.time.column)[first:end],
        table.lines[first:end],
        table.name,
        sample_period=mapping.sample_period,
        tolerance=mapping.time_tolerance,
        allow_gaps=mapping.allow_gaps,
    )


def _provenance(mapping: Mapping, tables: tuple[CsvTable, ...], first: int, end: int) -> dict[str, Any]:
    digest = hashlib.sha256(mapping.text.encode()).hexdigest()
    return {
        "kind": "import",
        "robot": mapping.robot_reference,
        "source": mapping.source,
        "rows": [first, end],
        "mapping": {"name": mapping.name, "sha256": digest},
        "files": [{"path": table.name, "rows": len(table.values), "sha256": table.sha256} for table in tables],
        "fit": mapping.fit,
    }
