"""Robots, motions and parameters as arrays, in the one form that compiled kernels take."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.model.joint import Joint
from jointbench.model.robot import Robot


def motion_arrays(robot: Robot, **arrays: ArrayLike) -> tuple[Array, ...]:
    """Return the named arrays as float64 of one common shape (n_samples, n_joints).

    Raises:
        ShapeError: an array has another shape than (n_samples, n_joints), or than the first array.
    """
    checked = {name: np.asarray(values, dtype=np.float64) for name, values in arrays.items()}
    first = next(iter(checked))
    for name, values in checked.items():
        if values.ndim != 2 or values.shape[1] != robot.n_joints:
            raise ShapeError(
                f"{name} has shape {values.shape}; robot {robot.name!r} needs (n_samples, {robot.n_joints}): "
                f"one row per sample, one column per joint ({', '.join(robot.joint_names)})"
            )
        if values.shape != checked[first].shape:
            raise ShapeError(
                f"{name} has {values.shape[0]} samples but {first} has {checked[first].shape[0]}; "
                f"all arrays of a motion must have the same samples"
            )
    return tuple(checked.values())


def parameter_vector(robot: Robot, values: ArrayLike) -> Array:
    """Return standard parameters as float64 of shape (10 * n_links,).

    Raises:
        ShapeError: the vector has another length.
    """
    parameters = np.asarray(values, dtype=np.float64)
    if parameters.shape != (10 * robot.n_links,):
        raise ShapeError(
            f"standard_parameters has shape {parameters.shape}; robot {robot.name!r} needs ({10 * robot.n_links},): "
            f"ten per link in link order"
        )
    return parameters


def motion_batch(robot: Robot, **arrays: ArrayLike) -> tuple[Array, ...]:
    """Return the arrays of `motion_arrays` in the one form in memory that kernels are compiled for.

    Raises:
        ShapeError: an array has another shape than (n_samples, n_joints), or than the first array.
    """
    return tuple(plain_array(values) for values in motion_arrays(robot, **arrays))


def plain_array(values: Array) -> Array:
    """Return the array, or a copy where it is not C-contiguous, aligned and writeable: kernels take no other."""
    return values if values.flags.carray else np.require(values, requirements=("C_CONTIGUOUS", "ALIGNED", "WRITEABLE"))


def result_array(out: Array | None, shape: tuple[int, int]) -> Array:
    """Return `out`, or a new array where it is None.

    Raises:
        ShapeError: `out` is not float64, not C-contiguous, read-only, or of another shape.
    """
    if out is None:
        return np.empty(shape)
    if out.shape != shape or out.dtype != np.float64 or not out.flags.carray:
        form = "" if out.flags.c_contiguous else ", not C-contiguous"
        form += "" if out.flags.writeable else ", read-only"
        raise ShapeError(
            f"out is {out.dtype} of shape {out.shape}{form}; it must be C-contiguous float64 of shape {shape}"
        )
    return out


Indices = NDArray[np.int64]


class Tree(NamedTuple):
    """The kinematics of a robot. Body i moves with joint i; what has no position of its own follows a coordinate.

    The position of joint i is factor[i] * q[coordinate[i]] + offset[i]. A *pair* is a body with a coordinate that moves
    it: where W is not zero, its rows (one per coordinate) and columns (ten per body) are made of them. The coordinate
    of a passive joint makes none, so that its rows are zero. The pairs of body i are first[i] to first[i + 1] - 1.

    Attributes:
        parent: body that carries each body, -1 for the base, shape (n_bodies,).
        coordinate: whose position joint i follows.
        factor, offset: of the rule above.
        rotation: parts P of a body's rotation in its parent, P0 + cos(position) P1 + sin(position) P2, row by row,
            shape (n_bodies, 3, 9).
        origin: of each body's frame in its parent's at position zero [m], shape (n_bodies, 3).
        slide: how that moves with the position of a prismatic joint, shape (n_bodies, 3).
        axis: what the joint's unit velocity is in the body's frame: angular, then linear, shape (n_bodies, 6).
        gravity: in the base frame [m/s²], shape (3,).
        carries: whether other bodies hang on each body.
        first: shape (n_bodies + 1,).
        row: coordinate of each pair.
        carried_from: the parent's pair of the same coordinate, -1 where the parent does not move with it.
        own: whether the body's own joint follows the coordinate.
        pair_of: which pair makes row c, body i; -1 for none, shape (n_coordinates, n_bodies).
    """

    parent: Indices
    coordinate: Indices
    factor: Array
    offset: Array
    rotation: Array
    origin: Array
    slide: Array
    axis: Array
    gravity: Array
    carries: NDArray[np.bool_]
    first: Indices
    row: Indices
    carried_from: Indices
    own: NDArray[np.bool_]
    pair_of: Indices

    @property
    def n_bodies(self) -> int:
        """Number of bodies that move."""
        return len(self.parent)

    @property
    def n_coordinates(self) -> int:
        """Number of independent positions."""
        return len(self.pair_of)


class Slots(NamedTuple):
    """Places of chosen columns: of each row only those elements that may differ from zero.

    Attributes:
        of_row: the slots of row c are of_row[c] to of_row[c + 1] - 1, shape (n_coordinates + 1,).
        parameter: which of the chosen parameters a slot is of, shape (n_slots,).
        of_pair: first slot of each pair of a coordinate and a body (`Tree`).
        of_body: which of `column` are of body i: of_body[i] to of_body[i + 1] - 1, shape (n_bodies + 1,).
        column: which of its ten a body's chosen parameters are; those of a pair are behind one another.
        of_drives: slots of the drives' entries, shape (n_entries,).
    """

    of_row: Indices
    parameter: Indices
    of_pair: Indices
    of_body: Indices
    column: Indices
    of_drives: Indices


_trees: dict[int, Tree] = {}


def tree_of(robot: Robot) -> Tree:
    """Return the robot's kinematics as arrays, made once for each robot object."""
    # By identity: a robot's hash goes through all of its numbers, which takes longer than a small batch.
    key = id(robot)
    if key not in _trees:
        _trees[key] = _tree(robot)
        weakref.finalize(robot, _trees.pop, key, None)
    return _trees[key]


def _tree(robot: Robot) -> Tree:
    joints = robot.joints
    coordinate, factor, offset = robot.coordinates
    parents = [joint.parent for joint in joints]
    first, row, carried_from = _pairs(parents, coordinate.tolist(), robot.modelled.tolist())
    pair_of = np.full((robot.n_joints, len(joints)), -1)
    own = np.zeros(len(row), dtype=np.bool_)
    for i in range(len(joints)):
        for pair in range(first[i], first[i + 1]):
            pair_of[row[pair], i] = pair
            own[pair] = row[pair] == coordinate[i]
    return Tree(
        parent=_indices(parents),
        coordinate=coordinate,
        factor=factor,
        offset=offset,
        rotation=np.array([_rotation_parts(joint) for joint in joints]),
        origin=np.array([joint.origin for joint in joints]),
        slide=np.array([_slide(joint) for joint in joints]),
        axis=np.array([_unit_velocity(joint) for joint in joints]),
        gravity=np.array(robot.gravity),
        carries=np.isin(np.arange(len(joints)), parents),
        first=_indices(first),
        row=_indices(row),
        carried_from=_indices(carried_from),
        own=own,
        pair_of=pair_of,
    )


def _pairs(parents: list[int], coordinate: list[int], modelled: list[bool]) -> tuple[list[int], list[int], list[int]]:
    """first, row and carried_from: each body moves with what moves its parent, and with its own joint's coordinate."""
    first: list[int] = [0]
    row: list[int] = []
    carried_from: list[int] = []
    for parent, joint_coordinate in zip(parents, coordinate, strict=True):
        carried = {row[pair]: pair for pair in range(first[parent], first[parent + 1])} if parent >= 0 else {}
        for pair_coordinate in sorted({*carried, joint_coordinate} if modelled[joint_coordinate] else carried):
            row.append(pair_coordinate)
            carried_from.append(carried.get(pair_coordinate, -1))
        first.append(len(row))
    return first, row, carried_from


def _rotation_parts(joint: Joint) -> Array:
    """Rodrigues' formula after the joint's placement, shape (3, 9)."""
    fixed, _ = joint.placement
    if joint.kind == "prismatic":
        return np.array([fixed.ravel(), np.zeros(9), np.zeros(9)])
    x, y, z = joint.axis
    parallel = np.outer(joint.axis, joint.axis)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.array([(fixed @ matrix).ravel() for matrix in (parallel, np.eye(3) - parallel, cross)])


def _slide(joint: Joint) -> Array:
    fixed, _ = joint.placement
    return fixed @ np.array(joint.axis) if joint.kind == "prismatic" else np.zeros(3)


def _unit_velocity(joint: Joint) -> Array:
    none = np.zeros(3)
    return np.concatenate([joint.axis, none] if joint.kind == "revolute" else [none, joint.axis])


def _indices(values: list[int]) -> Indices:
    return np.array(values, dtype=np.int64)
