"""A mapping proposed for somebody's log: what its columns seem to mean, why, and what only its user knows."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.model import Robot, library_names, load_robot, split_reference, with_locked
from jointbench.recording.log_formats import look_at_log
from jointbench.recording.log_table import (
    LOOKED_AT,
    ColumnName,
    ColumnSet,
    FirstRows,
    column_sets,
    joint_in_full,
    read_column_name,
    whole_rows,
)
from jointbench.recording.mapping import TIME_UNITS, TO_FILL_IN, VELOCITY_UNITS, LogFile
from jointbench.recording.mapping_inference import (
    Entry,
    Proposal,
    guess_position,
    guess_velocity,
    period_by_motion,
    velocity_among,
)
from jointbench.recording.torque_inference import guess_torques

_USUAL_HZ = (10.0, 10_000.0)
"""Sample rates of robots' logs; just below three decades apart, so that one unit at most is possible."""

_NEAR = 1.25
"""Factor up to which a sample period by motion is that of a column of times: logs lose and double rows."""

_EVEN = 0.1
"""Deviation of a step from a sample period, as a share of it, up to which times are even, as `import` has it."""


@dataclass(frozen=True, eq=False)
class TimeGuess:
    """Times of the rows, as a log's columns suggest them.

    Attributes:
        entries: of the mapping.
        sample_period: [s], or None where nothing tells.
        of_time: name of the column, or None.
    """

    entries: tuple[Entry, ...]
    sample_period: float | None
    column: str | None


def guess_time(
    tables: Sequence[FirstRows], others: Sequence[Sequence[ColumnName]], period_by_motion: float | None
) -> TimeGuess:
    """Find the time.

    Args:
        tables: the files.
        others: of each file, the columns that are not one for each joint.
        period_by_motion: sample period that logged velocities and positions agree on [s], None where unknown.
    """
    for table, columns in zip(tables, others, strict=True):
        for named in columns:
            column = replace(named, quantity="time", unit="s") if named.name in table.moments else named
            values = table.values[:, table.names.index(column.name)]
            if column.quantity == "time" and bool(np.all(np.diff(values) >= 0.0)) and np.ptp(values) > 0.0:
                return _of_column(table, column, values, period_by_motion)
    if period_by_motion is None:
        why = "no column tells the time, nor do logged velocities; write how many rows a second the log has"
        return TimeGuess((Entry("", "sample_rate_Hz", TO_FILL_IN, why, "to fill in"),), None, None)
    return _of_motion("no column tells the time", period_by_motion, None)


def _of_motion(seen: str, period: float, column: str | None) -> TimeGuess:
    """The sample rate that positions and logged velocities agree on."""
    rate = float(f"{1.0 / period:.3g}")
    why = f"{seen}; the positions change as the logged velocities say at {1.0 / period:.4g} rows a second"
    return TimeGuess((Entry("", "sample_rate_Hz", rate, why, "guessed"),), 1.0 / rate, column)


def _of_column(table: FirstRows, column: ColumnName, values: Array, by_motion: float | None) -> TimeGuess:
    steps = np.diff(values)
    repeats = int(np.sum(steps == 0.0))
    if repeats:
        return _of_mean_step(column, float(np.mean(steps)), repeats, by_motion)
    step = float(np.median(steps))
    counts = bool(np.all(steps == 1.0))
    if counts and by_motion is not None and not _agreeing(step, by_motion):
        return _of_motion(f"{column.name} only counts rows", by_motion, column.name)
    entries: list[Entry] = [] if table.label is None else [Entry("time", "file", table.label)]
    seen = f"its values rise by {step:.6g} from row to row"
    unit, why, sure = _unit(column, step, by_motion)
    entries.append(Entry("time", "column", column.name, seen))
    state = "to fill in" if unit == TO_FILL_IN else "read" if sure else "guessed"
    entries.append(Entry("time", "unit", unit, why, state))
    periods = np.maximum(np.round(steps / step), 1.0)
    worst = float(np.max(np.abs(steps - periods * step))) / step
    if worst > _EVEN:
        why = f"steps differ from the usual one by up to {worst:.0%} of it; values are interpolated onto even times"
        entries.append(Entry("time", "resample", True, why))
    elif np.any(periods > 1.0):
        missing = int(np.sum(periods - 1.0))
        entries.append(Entry("", "allow_gaps", True, f"{missing} rows are missing; their places are marked invalid"))
    return TimeGuess(tuple(entries), None if unit == TO_FILL_IN else TIME_UNITS[unit] * step, column.name)


def _of_mean_step(column: ColumnName, step: float, repeats: int, by_motion: float | None) -> TimeGuess:
    """Times that repeat are of no use one by one; their mean step may be."""
    unit, why, _ = _unit(column, step, by_motion)
    seen = f"{repeats} times of {column.name} repeat the one before, so rows are taken for evenly spaced"
    if unit == TO_FILL_IN:
        return TimeGuess((Entry("", "sample_rate_Hz", TO_FILL_IN, f"{seen}; {why}", "to fill in"),), None, None)
    rate = float(f"{1.0 / (TIME_UNITS[unit] * step):.6g}")
    why = f"{seen} by the mean step, in {unit}: {why}"
    return TimeGuess((Entry("", "sample_rate_Hz", rate, why, "guessed"),), 1.0 / rate, column.name)


def _unit(column: ColumnName, step: float, by_motion: float | None) -> tuple[str, str, bool]:
    """Unit of a time column, why, and whether that is sure."""
    agree = ""
    if by_motion is not None:
        near = _agreeing(step, by_motion)
        if near:
            return near, f"the positions change as the logged velocities say at {1e3 * by_motion:.4g} ms a row", True
        agree = f"; the logged velocities would have {1e3 * by_motion:.4g} ms a row"
    if column.unit in TIME_UNITS:
        return str(column.unit), f"its name or type says so{agree}", not agree
    usual = [unit for unit, factor in TIME_UNITS.items() if _USUAL_HZ[0] <= 1.0 / (factor * step) < _USUAL_HZ[1]]
    if len(usual) != 1:
        return TO_FILL_IN, f"no unit makes a usual sample rate of steps of {step:.6g}; s, ms, us or ns{agree}", False
    rate = 1.0 / (TIME_UNITS[usual[0]] * step)
    count = "; if it only counts rows, write sample_rate_Hz in place of this table" if step == 1.0 else ""
    why = f"the only unit that makes a usual sample rate, {rate:.4g} Hz{count}{agree}"
    return usual[0], why, not count and not agree


def _agreeing(step: float, period: float) -> str | None:
    """The unit in which a step is a sample period [s], nearly."""
    near = min(TIME_UNITS, key=lambda unit: abs(math.log(TIME_UNITS[unit] * step / period)))
    return near if 1.0 / _NEAR < TIME_UNITS[near] * step / period < _NEAR else None


def propose_mapping(
    robot: str | Path,
    logs: Sequence[str | Path],
    beside: str | Path = ".",
    lock: Mapping[str, float | None] | None = None,
) -> Proposal:
    """Propose what the columns of a log mean.

    Names are read as far as their words are usual ones; units and sides are told by the robot's limits and by
    positions, velocities and times that must agree. Nothing is guessed silently: each entry says why, and what nobody
    but the log's owner knows is "?", which `import_csv` refuses.

    Args:
        robot: name or path of the robot that was recorded.
        logs: CSV or Parquet files, or bags: of one recording, or several recordings with the same columns.
        beside: folder that the mapping's file will be in; paths in it are relative to that.
        lock: joints that stood still and are not in the log, and where [rad or m], None for their home. Where columns
            name some of the robot's joints, the others are locked at home without being named here.

    Returns:
        The proposal.

    Raises:
        FileError: a file cannot be read or holds no table, files of one recording have not as many rows, or no
            columns come one for each joint.
        RobotError, FileError: the robot cannot be loaded.
    """
    loaded, folder = load_robot(robot), Path(beside)
    tables = _side_by_side([look_at_log(Path(log)) for log in logs])
    loaded = with_locked(loaded, lock or {})
    missing = _missing_joints(tables, loaded.joint_names)
    loaded = with_locked(loaded, dict.fromkeys(missing))
    tables, alike = _one_recording(tables, loaded.joint_names)
    if len(tables) > 1:
        tables = [replace(table, label=_label(table, folder)) for table in tables]
    read = [column_sets(table, loaded.joint_names) for table in tables]
    sets = [each for found, _ in read for each in found]
    others = [columns for _, columns in read]
    position, velocity = _motion(sets, tables, loaded.joint_names)
    entries, q = guess_position(loaded, position)
    side = next((str(entry.value) for entry in entries if entry.key == "side"), "joint")
    told = None
    if q is not None and velocity is not None:
        told = period_by_motion(q, velocity.values * VELOCITY_UNITS.get(str(velocity.said.unit), 1.0))
    time = guess_time(tables, others, told)
    if velocity is not None:
        own = None if q is None or time.sample_period is None else np.gradient(q, time.sample_period, axis=0)
        entries += guess_velocity(loaded, velocity, side, own)
    taken = [each for each in (position, velocity) if each is not None]
    usable = [each for each in sets if each not in taken and each.varies and each.quantity not in ("other", "time")]
    torques = [each for each in usable if each.quantity not in ("position", "velocity")]
    more, chosen = guess_torques(loaded, sorted(torques, key=position.kinship, reverse=True))
    known = split_reference(str(robot))[0] in library_names()
    reference = str(robot) if known else os.path.relpath(robot, folder)
    return Proposal(
        robot=loaded.name,
        about=_about(tables),
        files=tuple(_file(table, folder) for table in tables),
        entries=(
            Entry("", "robot", reference, f"{loaded.n_joints} joints: {', '.join(loaded.joint_names)}"),
            *_locks(lock or {}, missing, loaded),
            *time.entries,
            *entries,
            *more,
        ),
        left_out=_left_out(tables, sets, [*taken, *chosen], others, time.column),
        alike=tuple(os.path.relpath(table.path, folder) for table in alike),
    )


def _side_by_side(tables: list[FirstRows]) -> list[FirstRows]:
    """Put files of one value a line into one table, which comes before the others."""
    singles = [table for table in tables if table.single]
    if not singles:
        return tables
    first = singles[0]
    names = tuple(name for table in singles for name in table.names)
    for table in singles:
        if len(table.values) != len(first.values) or names.count(table.names[0]) > 1:
            raise FileError(
                f"{first.path} has {len(first.values)} values and {table.path} {len(table.values)}; files of one value "
                f"a line are the columns of one table: they must be as long as each other, and have different names"
            )
    values = whole_rows(first.path, np.column_stack([table.values for table in singles]))
    paths = tuple(table.path for table in singles)
    path = first.path.with_name(f"{first.path.name} … {singles[-1].path.name}")
    whole = replace(first, path=path, has_header=True, names=names, values=values, single=False, singles=paths)
    return [whole, *(table for table in tables if not table.single)]


def _missing_joints(tables: Sequence[FirstRows], joints: Sequence[str]) -> tuple[str, ...]:
    """Joints that no column names, where columns name others and none come one for each joint."""
    if any(column_sets(table, joints)[0] for table in tables):
        return ()
    columns = [read_column_name(name, joints) for table in tables if table.has_header for name in table.names]
    useful = [column for column in columns if column.quantity not in ("other", "time")]
    named = {column.joint for column in useful} - {None}
    named = named or {joint_in_full(column.name, joints) for column in useful} - {None}
    return tuple(name for k, name in enumerate(joints) if k not in named) if named else ()


def _locks(lock: Mapping[str, float | None], missing: tuple[str, ...], robot: Robot) -> list[Entry]:
    """The entry of the joints that are held still."""
    names = [name if at is None else f"{name}={at:g}" for name, at in lock.items()] + list(missing)
    if not names:
        return []
    homes = dict(robot.locked)
    held = ", ".join(f"{name} at {homes[name]:g}" for name in missing)
    why = f"no column names them, so they are taken to stand still: {held} (rad or m)" if missing else "as you said"
    return [Entry("", "lock", names, why)]


def _one_recording(tables: list[FirstRows], joints: Sequence[str]) -> tuple[list[FirstRows], list[FirstRows]]:
    """Files of one recording, and further recordings with the same columns: those where each file has all it needs."""
    if len(tables) == 1 or any(table.names != tables[0].names for table in tables):
        return _of_one_length(tables), []
    quantities = [{each.quantity for each in column_sets(table, joints)[0]} for table in tables]
    complete = all("position" in found and found & {"torque", "current"} for found in quantities)
    blocks = [len(column_sets(table, joints)[0]) for table in tables]
    if complete or (not tables[0].has_header and min(blocks) > 1):
        return tables[:1], tables[1:]
    return _of_one_length(tables), []


def _of_one_length(tables: list[FirstRows]) -> list[FirstRows]:
    """The files, once it is sure that their rows belong together."""
    for table in tables[1:]:
        if len(table.values) != len(tables[0].values):
            raise FileError(
                f"{tables[0].path} has {len(tables[0].values)} rows of numbers without a gap and {table.path} "
                f"{len(table.values)}; rows of all files must belong together one by one: export them over the same "
                f"time, or propose a mapping for each recording by itself"
            )
    return tables


def _motion(
    sets: list[ColumnSet], tables: list[FirstRows], joints: Sequence[str]
) -> tuple[ColumnSet, ColumnSet | None]:
    """Columns of position, and of velocity where there are any."""
    positions = [each for each in sets if each.quantity == "position" and each.varies]
    velocities = [each for each in sets if each.quantity == "velocity" and each.varies]
    unknown = [each for each in sets if each.quantity == "unknown" and each.varies]
    if not positions and unknown:
        positions = unknown[:1]  # without names, positions mostly come first
    n = len(joints)
    if not positions:
        seen = ", ".join(tables[0].names[:30]) + (", …" if len(tables[0].names) > 30 else "")
        raise FileError(
            f"{tables[0].path.name}: no columns of positions come one for each of the robot's {n} joints "
            f"({', '.join(joints)}); its columns are {seen}; lock the joints that the log lacks (--lock JOINT …), "
            f"write the mapping by hand, or name columns like position_1 … position_{n}"
        )
    position = max(positions, key=lambda each: each.n_moving)  # the first one of those that tell most
    velocities.sort(key=lambda each: (each.n_moving, position.kinship(each)), reverse=True)
    if not velocities and (found := velocity_among(position, [each for each in unknown if each is not position])):
        velocities = [found]
    return position, velocities[0] if velocities else None


def _label(table: FirstRows, folder: Path) -> str:
    if table.singles:
        return f"{os.path.relpath(table.singles[0], folder)} … {os.path.relpath(table.singles[-1], folder)}"
    return LogFile(os.path.relpath(table.path, folder), topic=table.topic).label


def _file(table: FirstRows, folder: Path) -> dict[str, Any]:
    """Table [[files]] of a file."""
    if table.singles:
        return {"singles": [os.path.relpath(path, folder) for path in table.singles]}
    entries: dict[str, Any] = {"path": os.path.relpath(table.path, folder)}
    if table.delimiter != ",":
        entries["delimiter"] = table.delimiter
    if table.topic is not None:
        entries["topic"] = table.topic
    if table.long is not None:
        entries |= {"names_in": list(table.long.keys), "time_in": table.long.time}
        entries |= {"interpolate": True} if table.long.interpolate else {}
    return entries if table.has_header else entries | {"header": False}


def _about(tables: Sequence[FirstRows]) -> str:
    parts: list[str] = []
    for table in tables:
        rows, columns = table.values.shape
        count = f"its first {rows} rows" if rows >= LOOKED_AT - 1 else f"{rows} rows"
        note = f"; {table.note}" if table.note else ""
        parts.append(f"{table.path.name} ({count}, {columns} columns{note})")
    return " and ".join(parts)


def _left_out(
    tables: Sequence[FirstRows],
    sets: Sequence[ColumnSet],
    taken: Sequence[ColumnSet],
    others: Sequence[Sequence[ColumnName]],
    time: str | None,
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
    said += [reason for table in tables for reason in table.left_out]
    unused = [column for columns in others for column in columns if column.name != time]
    said += [
        f"{column.name}: a time that does not rise, or not the first" for column in unused if column.quantity == "time"
    ]
    single = [column.name for column in unused if column.quantity != "time"]
    if single:
        said.append(f"{', '.join(single[:12])}{', …' if len(single) > 12 else ''}: not one for each joint")
    return tuple(said)
