"""The array type of the host's maths, fixed-size vectors and matrices of frozen records, and compiled loops.

Numba compiles on first call: importing a module with a compiled loop does not import Numba (about 1 s).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Vector3 = tuple[float, float, float]
Matrix3 = tuple[Vector3, Vector3, Vector3]

IDENTITY: Matrix3 = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""Rotation by zero."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def lazy_njit(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function with `numba.njit(cache=True, nogil=True)` when it is first called.

    Args:
        function: takes arrays and scalars; everything that it calls must be supported by Numba's nopython mode.
    """

    @cache
    def machine_code() -> Callable[_Parameters, _Result]:
        from numba import njit

        return cast(Callable[_Parameters, _Result], njit(cache=True, nogil=True)(function))

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        return machine_code()(*args, **kwargs)

    return call
