"""Friction laws fitted joint by joint to what a model leaves of the torque: where the fit of all together begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters
from jointbench.errors import FitError
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import Law
from jointbench.identification.friction.terms import friction_law
from jointbench.identification.friction.variable_projection import valleys, variable_projection
from jointbench.identification.friction_in_model.descent import Bounds
from jointbench.identification.friction_in_model.joint_laws import JointLaws
from jointbench.identification.friction_in_model.law_rows import Point
from jointbench.identification.rows import Block, Rows
from jointbench.signals import rest_threshold

_MOST_ROWS = 8192
"""Of a joint, evenly spread: more change a start, or the choice of a law, by less than it matters."""

_SAME = 0.2
"""Of shapes' logarithms: closer together, they are of one valley."""

_MOST_OTHERS = 3


def friction_left(parts: Sequence[Rows], base: BaseParameters, values: Array, joint: str) -> FrictionData:
    """Friction and offset of a joint: what base parameters but for these leave of its torque, where it moves.

    Speed and load are filtered as the torque is: speed is the column of the joint's viscous friction.

    Args:
        parts: rows of one recording each.
        base: what their columns stand for.
        values: of the base parameters, shape (rank,).
        joint: its name.
    """
    names = base.leading_names
    rest = values.copy()
    for end in ("viscous", "coulomb", "offset"):
        if f"{joint}.{end}" in names:
            rest[names.index(f"{joint}.{end}")] = 0.0
    viscous = names.index(f"{joint}.viscous")
    loading = np.array([not name.endswith((".viscous", ".coulomb")) for name in names])
    j = base.robot.joint_index(joint)
    found = [
        _of_block(block, j, viscous, rest, np.where(loading, rest, 0.0)) for part in parts for block in part.blocks()
    ]
    velocity, torque, load = np.concatenate(found, axis=1)
    every = slice(None, None, -(-max(len(velocity), 1) // _MOST_ROWS))
    return FrictionData(velocity[every], torque[every], load[every], in_time=True).moving()


def _of_block(block: Block, joint: int, viscous: int, rest: Array, loading: Array) -> Array:
    """Velocity, torque left and load of a joint's rows, shape (3, n)."""
    which, columns = block.of_joint(joint)
    used: NDArray[np.bool_] = block.used[:, joint]
    if not used.any():
        return np.zeros((3, 0))
    columns = columns[:, used]
    velocity = columns[np.searchsorted(which, viscous)]
    left = block.torque[used, joint] - rest[which] @ columns
    return np.stack([velocity, left, loading[which] @ columns])


def away_from_rest(data: FrictionData) -> FrictionData:
    """Rows in which friction of the filtered speed is filtered friction: not those next to a reversal."""
    return data.moving(float(rest_threshold(data.velocity[:, None])[0])) if data.n_rows else data


def in_rows(law: str) -> str:
    """A law as it is fitted to such rows, with an offset beside it; one of both directions has it already."""
    return law if law.startswith("asymmetric") else f"{law}+offset"


class Starts(NamedTuple):
    """Where to begin: the best point, other valleys of each joint's law, and bounds of the laws' parameters."""

    best: Point
    others: Mapping[str, Array]
    bounds: Bounds


def starts_of(laws: JointLaws, values: Array, data: Mapping[str, FrictionData]) -> Starts:
    """Each joint's law fitted by itself, by variable projection.

    Args:
        laws: of some joints.
        values: of the base parameters where friction is Coulomb's and viscous, shape (rank,).
        data: of these joints.

    Raises:
        FitError: a joint has too few rows.
    """
    best, bounds, others = [np.zeros(0)], [np.zeros((0, 2))], dict[str, Array]()
    for name, law in laws.laws.items():
        whole, rows = friction_law(in_rows(law.name)), away_from_rest(data[name])
        if rows.n_rows <= len(whole.names):
            raise FitError(
                f"joint {name!r} has {rows.n_rows} rows away from rest, and its friction law {law.name!r} needs more "
                f"than {len(whole.names)}; record more motion of it, or give it no law"
            )
        low, high = np.concatenate([law.coefficient_bounds(data[name]), law.shape_bounds(data[name])]).T
        own = [whole.names.index(each) for each in law.names]
        best.append(np.clip(variable_projection(rows, whole)[own], low, high))
        bounds.append(np.stack([low, high], axis=1))
        if len(law.shapes) > 1:
            others[name] = _apart(best[-1], np.clip(valleys(rows, whole)[:, own], low, high), law)
    point = Point(values[laws.kept], np.concatenate(best))
    return Starts(point, others, Bounds(np.concatenate(bounds), laws.is_shape))


def _apart(best: Array, others: Array, law: Law) -> Array:
    """Those whose shapes differ from the best's and from each other's."""
    found = [best]
    for each in others:
        shapes = [law.split(one)[1] for one in (each, *found)]
        if all(np.any(np.abs(np.log(shapes[0] / shape)) > _SAME) for shape in shapes[1:]):
            found.append(each)
    return np.array(found[1 : 1 + _MOST_OTHERS]).reshape(-1, len(best))
