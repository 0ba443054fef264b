"""Arrays as compiled kernels take them, and the ones that callers keep for results."""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics.shapes import motion_arrays
from jointbench.errors import ShapeError
from jointbench.robot import Robot


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
