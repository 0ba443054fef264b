"""Checks that motions and parameters fit the robot, at the door of every public function."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.robot import Robot


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
