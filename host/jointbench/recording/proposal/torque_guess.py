"""Which columns are torques of motors, torques of sensors, or currents, and what is missing to use them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointbench.recording.mapping import CURRENT_UNITS, TO_FILL_IN, TORQUE_UNITS
from jointbench.recording.proposal.column_sets import ColumnSet
from jointbench.recording.proposal.proposal import Entry, State, columns_entries
from jointbench.robot import Robot

_MOST_AMPERES = 100.0
"""Currents beyond are in mA: the drives of robots do not take so many amperes."""


def guess_torques(robot: Robot, sets: Sequence[ColumnSet]) -> tuple[list[Entry], list[ColumnSet]]:
    """Choose the torques.

    Args:
        robot: the robot.
        sets: columns that vary and are torque, current or unknown.

    Returns:
        The entries, and the sets chosen.
    """
    torques = [each for each in sets if each.quantity == "torque"]
    sensors = [each for each in torques if each.said.of_sensor]
    from_current = [each for each in torques if each.said.from_current]
    plain = [each for each in torques if each not in sensors and each not in from_current]
    currents = [each for each in sets if each.quantity == "current"]
    unknown = [each for each in sets if each.quantity == "unknown"]
    entries, chosen = list[Entry](), list[ColumnSet]()
    motors = (from_current or plain or currents or unknown)[:1]
    if sensors:
        chosen.append(sensors[0])
        entries += _torque("joint_torque", sensors[0], "the names speak of a sensor", "read")
    if from_current:
        chosen += motors
        entries += _torque("torque", motors[0], "the names speak of torque by the current", "read")
    elif plain:
        chosen += motors
        why = (
            "the names speak of torque, and of no sensor, so of the motors' torque; if a sensor measured it, call the "
            "table [joint_torque]"
        )
        entries += _torque("torque", motors[0], why, "guessed")
    elif currents:
        chosen += motors
        entries += _current(robot, motors[0])
    elif unknown:
        chosen += motors
        entries += _by_elimination(motors[0])
    if sensors:
        why = "there are sensors only"
        if motors:
            why = (
                'sensors measure what the links need; "motor" fits the torque of the motors, with the friction of '
                "motors and gears in it"
            )
        entries.append(Entry("fit", "torque", "joint", why, "guessed" if motors else "read"))
    if not chosen:
        why = (
            "no columns of torque or current were found, one for each joint; for sensors, name the table [joint_torque]"
        )
        entries = [
            Entry("torque", "columns", TO_FILL_IN, why, "to fill in"),
            Entry("torque", "unit", TO_FILL_IN, f"one of {', '.join((*TORQUE_UNITS, *CURRENT_UNITS))}", "to fill in"),
            Entry("torque", "side", TO_FILL_IN, "motor or joint side of the gear", "to fill in"),
        ]
    return entries, chosen


def _torque(table: str, columns: ColumnSet, why: str, state: State) -> list[Entry]:
    unit = columns.said.unit if columns.said.unit in TORQUE_UNITS else None
    reason = "the names say so" if unit else "the usual one; import holds the size against the robot's file"
    motor = columns.said.of_motor and not columns.said.from_current and table == "torque"
    where = "the names speak of motors" if motor else "torque after the gear, as most controllers log it"
    where = "sensors sit behind the gear" if table == "joint_torque" else where
    return [
        *columns_entries(table, columns.table, columns.names, f"{columns.order}; {why}", state),
        Entry(table, "unit", unit or "N·m", reason, "read" if unit else "guessed"),
        Entry(table, "side", "motor" if motor else "joint", where, "read" if motor or table != "torque" else "guessed"),
    ]


def _current(robot: Robot, columns: ColumnSet) -> list[Entry]:
    table, largest = "torque", float(np.nanmax(np.abs(columns.values)))
    why = f"{columns.order}; motor current, and no torque is logged"
    entries = columns_entries(table, columns.table, columns.names, why)
    said = columns.said.unit if columns.said.unit in CURRENT_UNITS else None
    unit = said or ("mA" if largest > _MOST_AMPERES else "A")
    why = "the names say so" if said else f"values up to {largest:.4g}"
    state: State = "read" if said else "guessed"
    if all(drive.torque_constant == 1.0 and drive.ratio == 1.0 for drive in robot.drives):
        need = f"N·m at the joint per {unit}, torque constant x gear ratio, a list of {robot.n_joints} numbers"
        return [
            *entries,
            Entry(table, "unit", "N·m", f"after the gain; the columns are in {unit} ({why})", state),
            Entry(table, "gain", TO_FILL_IN, f"{need}; the robot's file has no motors", "to fill in"),
            Entry(table, "side", "joint", "after the gain"),
        ]
    constants = ", ".join(f"{drive.torque_constant:g}" for drive in robot.drives)
    why += f"; torque constants by the robot's file: {constants} N·m/A"
    return [*entries, Entry(table, "unit", unit, why, state), Entry(table, "side", "motor", "currents are")]


def _by_elimination(columns: ColumnSet) -> list[Entry]:
    table = "torque"
    why = f"{columns.order}; neither positions nor velocities, so torques or currents by elimination"
    need = f"one of {', '.join((*TORQUE_UNITS, *CURRENT_UNITS))}"
    return [
        *columns_entries(table, columns.table, columns.names, why, "guessed"),
        Entry(table, "unit", TO_FILL_IN, need, "to fill in"),
        Entry(table, "side", TO_FILL_IN, "motor or joint side of the gear", "to fill in"),
    ]
