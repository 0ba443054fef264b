"""Propose a mapping for somebody's log, from its header, its figures and the robot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jointbench.errors import ImportedDataError
from jointbench.recording.mapping import LogFile
from jointbench.recording.proposal.column_sets import ColumnSet, column_sets
from jointbench.recording.proposal.column_words import ColumnName
from jointbench.recording.proposal.csv_columns import LOOKED_AT, CsvColumns, look_at_log
from jointbench.recording.proposal.motion_guess import guess_position, guess_velocity, period_by_motion, velocity_among
from jointbench.recording.proposal.proposal import Entry, Proposal
from jointbench.recording.proposal.time_guess import guess_time
from jointbench.recording.proposal.torque_guess import guess_torques
from jointbench.robot import library_names, load_robot, split_reference


def propose_mapping(robot: str | Path, logs: Sequence[str | Path], beside: str | Path = ".") -> Proposal:
    """Propose what the columns of a log mean.

    Names are read as far as their words are usual ones; units and sides are told by the robot's limits and by
    positions, velocities and times that must agree. Nothing is guessed silently: each entry says why, and what nobody
    but the log's owner knows is "?", which `import_csv` refuses.

    Args:
        robot: name or path of the robot that was recorded.
        logs: CSV or Parquet files, or bags: of one recording, or several recordings with the same columns.
        beside: folder that the mapping's file will be in; paths in it are relative to that.

    Returns:
        The proposal.

    Raises:
        ImportedDataError: a file cannot be read or holds no table, files of one recording have not as many rows, or no
            columns come one for each joint.
        UnknownRobot, RobotFileError: the robot cannot be loaded.
    """
    loaded, folder = load_robot(robot), Path(beside)
    tables = [look_at_log(Path(log)) for log in logs]
    tables, alike = _one_recording(tables, loaded.joint_names)
    if len(tables) > 1:
        tables = [replace(table, label=_label(table, folder)) for table in tables]
    read = [column_sets(table, loaded.joint_names) for table in tables]
    sets = [each for found, _ in read for each in found]
    others = [columns for _, columns in read]
    position, velocity = _motion(sets, tables, loaded.n_joints)
    entries, q = guess_position(loaded, position)
    side = next((str(entry.value) for entry in entries if entry.key == "side"), "joint")
    told = period_by_motion(q, velocity.values) if q is not None and velocity is not None else None
    time = guess_time(tables, others, told)
    if velocity is not None:
        own = None if q is None or time.sample_period is None else np.gradient(q, time.sample_period, axis=0)
        entries += guess_velocity(loaded, velocity, side, own)
    taken = [each for each in (position, velocity) if each is not None]
    usable = [each for each in sets if each not in taken and each.varies and each.quantity not in ("other", "time")]
    more, chosen = guess_torques(loaded, [each for each in usable if each.quantity not in ("position", "velocity")])
    known = split_reference(str(robot))[0] in library_names()
    reference = str(robot) if known else os.path.relpath(robot, folder)
    return Proposal(
        robot=loaded.name,
        about=_about(tables),
        files=tuple(_file(table, folder) for table in tables),
        entries=(
            Entry("", "robot", reference, f"{loaded.n_joints} joints: {', '.join(loaded.joint_names)}"),
            *time.entries,
            *entries,
            *more,
        ),
        left_out=_left_out(sets, [*taken, *chosen], others, time.column),
        alike=tuple(os.path.relpath(table.path, folder) for table in alike),
    )


def _one_recording(tables: list[CsvColumns], joints: Sequence[str]) -> tuple[list[CsvColumns], list[CsvColumns]]:
    """Files of one recording, and further recordings with the same columns: those where each file has all it needs."""
    if len(tables) == 1 or any(table.names != tables[0].names for table in tables):
        return _of_one_length(tables), []
    quantities = [{each.quantity for each in column_sets(table, joints)[0]} for table in tables]
    complete = all("position" in found and found & {"torque", "current"} for found in quantities)
    blocks = [len(column_sets(table, joints)[0]) for table in tables]
    if complete or (not tables[0].has_header and min(blocks) > 1):
        return tables[:1], tables[1:]
    return _of_one_length(tables), []


def _of_one_length(tables: list[CsvColumns]) -> list[CsvColumns]:
    """The files, once it is sure that their rows belong together."""
    for table in tables[1:]:
        if len(table.values) != len(tables[0].values):
            raise ImportedDataError(
                f"{tables[0].path} has {len(tables[0].values)} rows of numbers without a gap and {table.path} "
                f"{len(table.values)}; rows of all files must belong together one by one: export them over the same "
                f"time, or propose a mapping for each recording by itself"
            )
    return tables


def _motion(sets: list[ColumnSet], tables: list[CsvColumns], n: int) -> tuple[ColumnSet, ColumnSet | None]:
    """Columns of position, and of velocity where there are any."""
    positions = [each for each in sets if each.quantity == "position" and each.varies]
    velocities = [each for each in sets if each.quantity == "velocity" and each.varies]
    unknown = [each for each in sets if each.quantity == "unknown" and each.varies]
    if not positions and unknown:
        positions = unknown[:1]  # without names, positions mostly come first
    if not positions:
        seen = ", ".join(tables[0].names[:30]) + (", …" if len(tables[0].names) > 30 else "")
        raise ImportedDataError(
            f"{tables[0].path.name}: no columns of positions come one for each of the robot's {n} joints; its columns "
            f"are {seen}; write the mapping by hand, or name columns like position_1 … position_{n}"
        )
    position = positions[0]
    if not velocities and (found := velocity_among(position, [each for each in unknown if each is not position])):
        velocities = [found]
    return position, velocities[0] if velocities else None


def _label(table: CsvColumns, folder: Path) -> str:
    return LogFile(os.path.relpath(table.path, folder), topic=table.topic).label


def _file(table: CsvColumns, folder: Path) -> dict[str, str | bool]:
    """Table [[files]] of a file."""
    entries: dict[str, str | bool] = {"path": os.path.relpath(table.path, folder)}
    if table.delimiter != ",":
        entries["delimiter"] = table.delimiter
    if table.topic is not None:
        entries["topic"] = table.topic
    return entries if table.has_header else entries | {"header": False}


def _about(tables: Sequence[CsvColumns]) -> str:
    parts: list[str] = []
    for table in tables:
        rows, columns = table.values.shape
        count = f"its first {rows} rows" if rows >= LOOKED_AT - 1 else f"{rows} rows"
        parts.append(f"{table.path.name} ({count}, {columns} columns)")
    return " and ".join(parts)


def _left_out(
    sets: Sequence[ColumnSet], taken: Sequence[ColumnSet], others: Sequence[Sequence[ColumnName]], time: str | None
) -> tuple[str, ...]:
    """Columns that are not used, and why."""
    said: list[str] = []
    for each in sets:
        if each in taken:
            continue
        if each.quantity == "other":
            reason = "commanded, computed, or of no use here, by their name"
        elif not each.varies:
            reason = "they never change"
        elif each.quantity == "unknown":
            reason = "no usual word tells what they are"
        else:
            reason = f"of {each.quantity} too, but others say more of where they come from"
        said.append(f"{each.range_of_names}: {reason}")
    unused = [column for columns in others for column in columns if column.name != time]
    said += [
        f"{column.name}: a time that does not rise, or not the first" for column in unused if column.quantity == "time"
    ]
    single = [column.name for column in unused if column.quantity != "time"]
    if single:
        said.append(f"{', '.join(single[:12])}{', …' if len(single) > 12 else ''}: not one for each joint")
    return tuple(said)
