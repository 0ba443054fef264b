"""Units and sides of positions and velocities, by the robot's limits and by each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointbench.arrays import Array
from jointbench.recording.mapping import POSITION_UNITS, TO_FILL_IN, VELOCITY_UNITS
from jointbench.recording.proposal.column_sets import ColumnSet
from jointbench.recording.proposal.proposal import Entry, State, columns_entries
from jointbench.robot import Robot

_MARGIN = 0.05
"""Share of its range by which a joint may be beyond its limits."""

_USED = 0.05
"""Share of the robot's ranges that a motion must use for a unit to be likely."""

_AGREEING = 0.1
"""How near the factor between velocities and positions' differences must be to that of a unit."""

_LEFT = 0.02
"""Share of a column's power that may be something else where it is the velocity of another one."""

_WIDTH = 9
"""Rows that are averaged before velocities are compared."""

_ANGLES, _LENGTHS = ("rad", "deg"), ("m", "mm")


def guess_position(robot: Robot, positions: ColumnSet) -> tuple[list[Entry], Array | None]:
    """Unit and side of positions, and what they are then [rad or m], shape (rows, n_joints); None where open."""
    table = "position"
    nameless = positions.quantity == "unknown"
    why = positions.order + "; the first ones, taken for positions" * nameless
    entries = columns_entries(table, positions.table, positions.names, why, "guessed" if nameless else "read")
    geared = robot.drive_train.n_motors == robot.n_joints and not np.array_equal(
        robot.transmission_matrix, np.eye(robot.n_joints)
    )
    low, high = robot.position_limits.T
    used: dict[tuple[tuple[str, ...], str], float] = {}
    for kind in range(2):
        units = tuple((_ANGLES if joint.kind == "revolute" else _LENGTHS)[kind] for joint in robot.independent_joints)
        if positions.said.unit is not None and positions.said.unit not in units:
            continue
        for side in ("motor", "joint") if geared else ("joint",):
            if positions.said.of_motor and geared and side != "motor":
                continue
            q = _in_si(robot, positions.values, units, side)
            margin = _MARGIN * (high - low)
            if np.all((q > low - margin) & (q < high + margin)):
                used[units, side] = float(np.max(np.ptp(q, axis=0) / (high - low)))
    if not used:
        ends = zip(positions.values.min(axis=0).tolist(), positions.values.max(axis=0).tolist(), strict=True)
        seen = ", ".join(f"{low:.4g} to {high:.4g}" for low, high in ends)
        why = f"none keeps the positions inside the robot's limits (they go {seen}); one of {', '.join(POSITION_UNITS)}"
        entries.append(Entry(table, "unit", TO_FILL_IN, why, "to fill in"))
        entries.append(Entry(table, "side", TO_FILL_IN, "motor or joint side of the gear", "to fill in"))
        return entries, None
    best = max(used, key=lambda each: used[each])
    units, side = best
    likely = [each for each in used if used[each] > _USED]
    states = ", ".join(f"as {_short(each[0])} on the {each[1]}s' side {used[each]:.0%}" for each in used)
    why = f"inside the robot's limits; share of their range that joints use: {states}"
    if positions.said.unit is not None:
        why = f"the names say so; {why}"
    state: State = "read" if len(likely) == 1 else "guessed"
    entries.append(Entry(table, "unit", _short_value(units), why, state))
    entries.append(
        Entry(table, "side", side, "", state) if geared else Entry(table, "side", side, "the robot's file has no gears")
    )
    return entries, _in_si(robot, positions.values, units, side)


def guess_velocity(robot: Robot, velocities: ColumnSet, side: str, own: Array | None) -> list[Entry]:
    """Unit of velocities.

    Args:
        robot: the robot.
        velocities: the columns.
        side: of the gear where the positions are.
        own: differences of the positions [rad/s or m/s], None where they are not known, shape (rows, n_joints).
    """
    table = "velocity"
    why = f"{velocities.order}; only checks use it"
    entries = columns_entries(table, velocities.table, velocities.names, why)
    kinds = [joint.kind for joint in robot.independent_joints]
    candidates = [unit for unit in VELOCITY_UNITS if ("m/s" in unit) == (kinds[0] != "revolute")]
    if own is not None and len(set(kinds)) == 1:
        factor = _factor(velocities.values, own if side == "joint" else own @ robot.transmission_matrix.T)
        unit = min(candidates, key=lambda each: abs(np.log(abs(factor) * VELOCITY_UNITS[each])))
        if abs(abs(factor) * VELOCITY_UNITS[unit] - 1.0) < _AGREEING:
            why = f"{abs(factor) * VELOCITY_UNITS[unit]:.3f} times the positions' differences"
            return [*entries, Entry(table, "unit", unit, why), Entry(table, "side", side)]
    if velocities.said.unit in candidates:
        return [*entries, Entry(table, "unit", velocities.said.unit, "the names say so"), Entry(table, "side", side)]
    why = f"the positions do not tell; one of {', '.join(candidates)}, or leave this table out"
    return [*entries, Entry(table, "unit", TO_FILL_IN, why, "to fill in"), Entry(table, "side", side)]


def velocity_among(position: ColumnSet, unknown: Sequence[ColumnSet]) -> ColumnSet | None:
    """Of columns that no name explains, those that follow the differences of positions."""
    moving = np.ptp(position.values, axis=0) > 0.0
    if not moving.any():
        return None
    own = np.gradient(_smooth(position.values[:, moving]), axis=0)
    for each in unknown:
        if len(each.values) != len(position.values) or not np.all(np.ptp(each.values[:, moving], axis=0) > 0.0):
            continue
        other = _smooth(each.values[:, moving])
        power = np.sum(own**2, axis=0)
        factors = np.sum(own * other, axis=0) / power
        left = np.sum((other - factors * own) ** 2, axis=0) / np.maximum(factors**2 * power, 1e-300)
        alike = np.abs(factors / np.median(factors) - 1.0)
        if (
            np.median(left) < _LEFT and np.median(alike) < _AGREEING
        ):  # friction follows velocity too, each joint's its own
            return each
    return None


def period_by_motion(position: Array, velocity: Array) -> float | None:
    """Sample period [s] at which positions [rad] change as velocities [rad/s] say; None where they do not."""
    change, speed = np.gradient(_smooth(position), axis=0), _smooth(velocity)
    power = np.sum(speed**2, axis=0)
    if not np.any(power > 0.0):
        return None
    moving = power > 0.0
    periods = np.sum(change * speed, axis=0)[moving] / power[moving]
    period = float(np.median(periods))
    return period if period > 0.0 and np.median(np.abs(periods / period - 1.0)) < _AGREEING else None


def _factor(velocity: Array, own: Array) -> float:
    """Factor from positions' differences to velocities, as the median over the joints that move."""
    speed, own = _smooth(velocity), _smooth(own)
    power = np.sum(own**2, axis=0)
    moving = power > 1e-12 * power.max()
    return float(np.median(np.abs(np.sum(speed * own, axis=0)[moving] / power[moving])))


def _smooth(values: Array) -> Array:
    """Mean over a few rows, which takes the steps of encoders away; as many fewer rows."""
    sums = np.cumsum(np.vstack([np.zeros(values.shape[1]), values]), axis=0)
    return (sums[_WIDTH:] - sums[:-_WIDTH]) / _WIDTH


def _in_si(robot: Robot, values: Array, units: Sequence[str], side: str) -> Array:
    q = values * np.array([POSITION_UNITS[unit] for unit in units])
    return q @ np.linalg.inv(robot.transmission_matrix).T if side == "motor" else q


def _short(units: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(units))


def _short_value(units: Sequence[str]) -> str | list[str]:
    return units[0] if len(set(units)) == 1 else list(units)
