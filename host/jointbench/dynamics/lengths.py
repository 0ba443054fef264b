"""The lengths of a robot's geometry, by symbol: what coefficients of base parameters are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointbench.arrays import Array
from jointbench.robot import Joint, Robot

_NOTHING = 1e-12
"""Below this a length [m] or the sine of an angle is what rounding left of zero."""


@dataclass(frozen=True, eq=False)
class Length:
    """One length of a robot: how far a joint's frame is from its parent's along a fixed direction.

    Attributes:
        symbol: "a3" or "d3" of the modified Denavit-Hartenberg rows, "x3", "y3", "z3" of a placement that is none; the
            number is the joint's place in the robot, from 1.
        joint: index of the joint.
        direction: in the parent's frame, shape (3,).
        value: [m], with its sign.
    """

    symbol: str
    joint: int
    direction: Array
    value: float


def lengths_of(robot: Robot) -> tuple[Length, ...]:
    """All lengths of the robot that are not zero.

    >>> from jointbench.robot import load_robot
    >>> [f"{length.symbol} = {length.value:g} m" for length in lengths_of(load_robot("cobot6"))][:4]
    ['d1 = 0.1223 m', 'a3 = -0.27 m', 'a4 = -0.253 m', 'd4 = 0.1233 m']
    """
    lengths: list[Length] = []
    for i, joint in enumerate(robot.joints):
        origin = np.array(joint.origin)
        for letter, direction in _directions(joint).items():
            value = float(direction @ origin)
            if abs(value) > _NOTHING:
                lengths.append(Length(f"{letter}{i + 1}", i, direction, value))
    return tuple(lengths)


def with_lengths(robot: Robot, lengths: Sequence[Length], values: Array) -> Robot:
    """The robot with other values [m], shape (n_lengths,), of its lengths; its angles stay."""
    origins = np.zeros((robot.n_links, 3))
    for length, value in zip(lengths, values, strict=True):
        origins[length.joint] += value * length.direction
    joints = (
        replace(joint, origin=(float(x), float(y), float(z)))
        for joint, (x, y, z) in zip(robot.joints, origins, strict=True)
    )
    return replace(robot, joints=tuple(joints))


def _directions(joint: Joint) -> dict[str, Array]:
    """Directions of the joint's lengths in its parent's frame: a and d where Denavit and Hartenberg can say it."""
    rotation, origin = joint.placement
    across = np.array([0.0, rotation[2, 2], -rotation[1, 2]])  # to a, and to the joint's z axis
    along = np.array([0.0, rotation[1, 2], rotation[2, 2]])
    if abs(rotation[0, 2]) < _NOTHING and abs(across @ origin) < _NOTHING:
        return {"a": np.array([1.0, 0.0, 0.0]), "d": along}
    return dict(zip("xyz", np.eye(3), strict=True))
