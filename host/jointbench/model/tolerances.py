"""Tolerances of a robot's calibration: how well zeros, lengths, axes, torques and clocks are known that nobody fits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jointbench.model.table import Table

_DEGREE, _MM, _PERCENT = math.pi / 180.0, 1e-3, 1e-2

_KEYS = {
    "zero_deg": ("zero", _DEGREE),
    "zero_mm": ("sliding_zero", _MM),
    "torque_constant_percent": ("torque_constant", _PERCENT),
    "torque_sensor_percent": ("torque_sensor", _PERCENT),
    "gear_ratio_percent": ("gear_ratio", _PERCENT),
}
"""Keys of a table of tolerances that joints may have of their own: which field, and the factor to SI."""

_COMMON_KEYS = {
    "length_mm": ("length", _MM),
    "axis_deg": ("axis", _DEGREE),
    "mounting_deg": ("mounting", _DEGREE),
    "clock_percent": ("clock", _PERCENT),
}


@dataclass(frozen=True)
class Tolerances:
    """Standard deviations of what a calibration leaves unknown, from data sheets and experience (GUM type B).

    A bound ±b of which no value is likelier than another counts as b/√3. The defaults are those of an arm that was
    put together with care and calibrated by hand, with torques from motor currents and a data sheet's torque constant.

    Attributes:
        zero: of a turning joint's position [rad].
        sliding_zero: of a sliding joint's position [m].
        torque_constant: of torques that come from motor currents, relative.
        torque_sensor: of the gain of torque sensors at joints, relative.
        gear_ratio: relative; 0 where teeth are counted.
        length: of each coordinate of a joint's place on the link before it [m].
        axis: tilt of a joint's axis on the link before it, about each normal of the axis [rad].
        mounting: tilt of the base about each level axis [rad].
        clock: of the recording's time, relative.
        joints: joints with tolerances of their own, by name.

    Source: JCGM 100:2008 (GUM), 4.3.
    """

    zero: float = 0.2 * _DEGREE
    sliding_zero: float = 1.0 * _MM
    torque_constant: float = 5.0 * _PERCENT
    torque_sensor: float = 2.0 * _PERCENT
    gear_ratio: float = 0.0
    length: float = 1.0 * _MM
    axis: float = 0.2 * _DEGREE
    mounting: float = 0.2 * _DEGREE
    clock: float = 0.1 * _PERCENT
    joints: tuple[tuple[str, Tolerances], ...] = ()

    def of(self, joint: str) -> Tolerances:
        """Return those of a joint."""
        return dict(self.joints).get(joint, self)

    def words(self, *without: str) -> str:
        """All that are not exact but some fields, such as "zero 0.2°, length 1 mm"."""
        units = {"deg": "°", "mm": " mm", "percent": " %"}
        parts: list[str] = []
        for key, (name, to_si) in (_KEYS | _COMMON_KEYS).items():
            word, _, unit = key.rpartition("_")
            if getattr(self, name) > 0.0 and name not in without:
                parts.append(f"{word.replace('_', ' ')} {getattr(self, name) / to_si:.3g}{units[unit]}")
        own = f"; of their own: {', '.join(name for name, _ in self.joints)}" if self.joints else ""
        return ", ".join(parts) + own

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Tolerances:
        """Read what `dataclasses.asdict` made of a record."""
        joints = tuple((str(name), Tolerances.from_dict(own)) for name, own in values.get("joints", ()))
        given: dict[str, Any] = {**values, "joints": joints}
        return Tolerances(**given)


def read_tolerances(table: Table, joint_names: tuple[str, ...], default: Tolerances | None = None) -> Tolerances:
    """Read a table of tolerances, such as `[tolerances] zero_deg = 0.5`, with `[tolerances.j3]` for one joint.

    Args:
        table: with units in the names of its keys; what it does not say is as in `default`.
        joint_names: of the robot.
        default: None: those of `Tolerances`.

    Raises:
        FileError: a key is unknown, a value is no number or below 0, or a table is of no joint.
    """
    common = _read(table, _KEYS | _COMMON_KEYS, default or Tolerances())
    joints = dict(common.joints)
    for name in joint_names:
        if table.has(name):
            entry = table.table(name)
            joints[name] = _read(entry, _KEYS, replace(joints.get(name, common), joints=()))
            entry.finish()
    table.finish()
    return replace(common, joints=tuple(joints.items()))


def _read(table: Table, keys: Mapping[str, tuple[str, float]], default: Tolerances) -> Tolerances:
    changed = {name: to_si * table.magnitude(key) for key, (name, to_si) in keys.items() if table.has(key)}
    if not changed:
        return default
    # What is said of all joints holds for those with some of their own, too, but for what these say.
    return replace(default, **changed, joints=tuple((name, replace(own, **changed)) for name, own in default.joints))
