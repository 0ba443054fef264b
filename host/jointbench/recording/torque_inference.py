"""Entries of a mapping inferred from a log's torques and currents: which columns, in which unit, on which side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointbench.arrays import Array
from jointbench.model import Robot
from jointbench.recording.log_table import ColumnSet
from jointbench.recording.mapping import CURRENT_UNITS, TO_FILL_IN, TORQUE_UNITS
from jointbench.recording.mapping_inference import (
    Entry,
    State,
    ask_side,
    ask_unit,
    columns_entries,
    is_geared,
    of_kinds,
    short_value,
)

_LOADS, _RARE = (0.02, 2.0), 0.999
"""Share of a joint's limit of torque between which the largest torque of a motion lies: robots do not move at a
fiftieth of what they can, nor beyond twice of it; and share of the rows below that largest one."""

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
        entries += _torque(robot, "joint_torque", sensors[0], "the names speak of a sensor", "read")
    if from_current:
        chosen += motors
        entries += _torque(robot, "torque", motors[0], "the names speak of torque by the current", "read")
    elif plain:
        chosen += motors
        why = (
            "the names speak of torque, and of no sensor, so of the motors' torque; if a sensor measured it, call the "
            "table [joint_torque]"
        )
        entries += _torque(robot, "torque", motors[0], why, "guessed")
    elif currents:
        chosen += motors
        entries += _current(robot, motors[0])
    elif unknown:
        chosen += motors
        entries += _by_elimination(robot, motors[0])
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
            ask_unit(robot, "torque", f"one of {', '.join((*TORQUE_UNITS, *CURRENT_UNITS))}"),
            ask_side("torque", is_geared(robot)),
        ]
    return entries, chosen


def _torque(robot: Robot, table: str, columns: ColumnSet, why: str, state: State) -> list[Entry]:
    unit = columns.said.unit if columns.said.unit in TORQUE_UNITS else None
    reason = "the names say so" if unit else "the usual one; import holds the size against the robot's file"
    entries = columns_entries(table, columns.table, columns.names, f"{columns.order}; {why}", state)
    units = of_kinds(robot, unit or "N·m", unit or "N")
    entries.append(Entry(table, "unit", short_value(units), reason, "read" if unit else "guessed"))
    if table == "joint_torque":
        return [*entries, Entry(table, "side", "joint", "sensors sit behind the gear")]
    if not is_geared(robot):
        return [*entries, ask_side(table, False)]
    factors = np.array([TORQUE_UNITS[each] for each in units])
    loads = {side: _load(robot, columns.values * factors, side) for side in ("joint", "motor")}
    states = f"the largest is {_percent(loads['joint'])} of a joint's limit as torque of the joints, "
    states += f"{_percent(loads['motor'])} as torque of the motors"
    possible = [side for side, load in loads.items() if _LOADS[0] < load < _LOADS[1]]
    if len(possible) == 1:
        return [*entries, Entry(table, "side", possible[0], states)]
    if columns.said.of_motor and not columns.said.from_current:
        return [*entries, Entry(table, "side", "motor", "the names speak of motors")]
    if not possible:
        why = f"{states}: neither is likely; torque after the gear, as most controllers log it"
        return [*entries, Entry(table, "side", "joint", why, "guessed")]
    return [*entries, Entry(table, "side", TO_FILL_IN, f"motor or joint: {states}", "to fill in")]


def _load(robot: Robot, torque: Array, side: str) -> float:
    """Largest share of its limit that a joint's torque has, but for a thousandth of the rows."""
    at_joints = torque @ robot.transmission_matrix if side == "motor" else torque
    return float(np.max(np.nanquantile(np.abs(at_joints), _RARE, axis=0) / robot.torque_limits))


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def _current(robot: Robot, columns: ColumnSet) -> list[Entry]:
    table, largest = "torque", float(np.nanmax(np.abs(columns.values)))
    why = f"{columns.order}; motor current, and no torque is logged"
    entries = columns_entries(table, columns.table, columns.names, why)
    said = columns.said.unit if columns.said.unit in CURRENT_UNITS else None
    unit = said or ("mA" if largest > _MOST_AMPERES else "A")
    why = "the names say so" if said else f"values up to {largest:.4g}"
    state: State = "read" if said else "guessed"
    if said is None and is_geared(robot):
        at_motors = columns.values * np.array([drive.torque_constant for drive in robot.drives])
        loads = {each: _load(robot, factor * at_motors, "motor") for each, factor in CURRENT_UNITS.items()}
        possible = [each for each, load in loads.items() if _LOADS[0] < load < _LOADS[1]]
        if len(possible) == 1:
            unit, state = possible[0], "read"
            shares = ", ".join(f"as {each} {_percent(load)}" for each, load in loads.items())
            why = f"the largest, as a share of a joint's limit of torque: {shares}"
    if all(drive.torque_constant == 1.0 and drive.ratio == 1.0 for drive in robot.drives):
        need = f"N·m (N) at the joint per {unit}, torque constant x gear ratio, a list of {robot.n_joints} numbers, "
        pairs = zip(robot.joint_names, columns.names, strict=True)
        need += (
            f"one for each of {', '.join(f'{joint} ({column})' for joint, column in pairs)}; the robot's file has no "
        )
        need += "motors"
        unit_value = short_value(of_kinds(robot, "N·m", "N"))
        return [
            *entries,
            Entry(table, "unit", unit_value, f"after the gain; the columns are in {unit} ({why})", state),
            Entry(table, "gain", [TO_FILL_IN] * robot.n_joints, need, "to fill in"),
            Entry(table, "side", "joint", "after the gain"),
        ]
    constants = ", ".join(f"{drive.torque_constant:g}" for drive in robot.drives)
    why += f"; torque constants by the robot's file: {constants} N·m/A"
    return [*entries, Entry(table, "unit", unit, why, state), Entry(table, "side", "motor", "currents are")]


def _by_elimination(robot: Robot, columns: ColumnSet) -> list[Entry]:
    table = "torque"
    why = f"{columns.order}; neither positions nor velocities, so torques or currents by elimination"
    entries = columns_entries(table, columns.table, columns.names, why, "guessed")
    need = f"one of {', '.join((*TORQUE_UNITS, *CURRENT_UNITS))}"
    if not is_geared(robot):
        return [*entries, ask_unit(robot, table, need), ask_side(table, False)]
    constants = np.array([drive.torque_constant for drive in robot.drives])
    loads = {
        ("N·m", "joint"): _load(robot, columns.values, "joint"),
        ("N·m", "motor"): _load(robot, columns.values, "motor"),
        ("A", "motor"): _load(robot, constants * columns.values, "motor"),
        ("mA", "motor"): _load(robot, 1e-3 * constants * columns.values, "motor"),
    }
    possible = {each: load for each, load in loads.items() if _LOADS[0] < load < _LOADS[1]}
    states = ", ".join(f"as {unit} of the {side}s {_percent(load)}" for (unit, side), load in loads.items())
    states = f"the largest, as a share of a joint's limit: {states}"
    if len(possible) == 1:
        unit, side = next(iter(possible))
        return [*entries, Entry(table, "unit", unit, states, "guessed"), Entry(table, "side", side, "", "guessed")]
    units = {unit for unit, _ in possible or loads}
    sides = {side for _, side in possible or loads}
    unit_value = TO_FILL_IN if len(units) > 1 else units.pop()
    side_value = TO_FILL_IN if len(sides) > 1 else sides.pop()
    return [
        *entries,
        Entry(table, "unit", unit_value, f"{need}; {states}", "to fill in" if unit_value == TO_FILL_IN else "guessed"),
        Entry(
            table,
            "side",
            side_value,
            "motor or joint side of the gear" if side_value == TO_FILL_IN else states,
            "to fill in" if side_value == TO_FILL_IN else "guessed",
        ),
    ]
