"""Motions and parameters as arrays, checked at the door of every public function, in the form that kernels take."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ShapeError
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
    """As `motion_arrays`, in the one form in memory that kernels are compiled for.

    Raises:
        ShapeError: as `motion_arrays`.
    """
    return tuple(plain_array(values) for values in motion_arrays(robot, **arrays))


def plain_array(values: Array) -> Array:
    """The array, or a copy where it is not C-contiguous, aligned and writeable: another form would be compiled anew."""
    return values if values.flags.carray else np.require(values, requirements=("C_CONTIGUOUS", "ALIGNED", "WRITEABLE"))


def result_array(out: Array | None, shape: tuple[int, int]) -> Array:
    """`out`, or a new array where it is None.

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
