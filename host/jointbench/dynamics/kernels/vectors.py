"""3-vectors and rotations of lanes or of plain numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from jointbench.dynamics.kernels.compiled import inlined
from jointbench.dynamics.kernels.lanes import LANES, At, Doubles, Number, load, store

Vector: TypeAlias = tuple[Number, Number, Number]
Matrix: TypeAlias = tuple[Number, Number, Number, Number, Number, Number, Number, Number, Number]
"""Row by row."""

# Lanes lie behind one another, so these are where the next ones are.
L1, L2, L3, L4, L5, L6, L7, L8 = (np.uint64(LANES * k) for k in range(1, 9))


@inlined
def vector(array: Doubles, at: At) -> Vector:
    """Three lanes."""
    return load(array, at), load(array, at + L1), load(array, at + L2)


@inlined
def put(array: Doubles, at: At, value: Vector) -> None:
    """Set three lanes."""
    store(array, at, value[0])
    store(array, at + L1, value[1])
    store(array, at + L2, value[2])


@inlined
def matrix(array: Doubles, at: At) -> Matrix:
    """Nine lanes."""
    x, y, z = vector(array, at), vector(array, at + L3), vector(array, at + L6)
    return x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2]


@inlined
def put_matrix(array: Doubles, at: At, value: Matrix) -> None:
    """Set nine lanes."""
    put(array, at, (value[0], value[1], value[2]))
    put(array, at + L3, (value[3], value[4], value[5]))
    put(array, at + L6, (value[6], value[7], value[8]))


@inlined
def add(left: Vector, right: Vector) -> Vector:
    """Sum."""
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


@inlined
def scale(factor: Number, value: Vector) -> Vector:
    """Multiple."""
    return factor * value[0], factor * value[1], factor * value[2]


@inlined
def dot(left: Vector, right: Vector) -> Number:
    """Inner product."""
    return left[0] * right[0] + left[1] * right[1] + left[2] * right[2]


@inlined
def cross(left: Vector, right: Vector) -> Vector:
    """Cross product."""
    return (
        left[1] * right[2] - left[2] * right[1],
        left[2] * right[0] - left[0] * right[2],
        left[0] * right[1] - left[1] * right[0],
    )


@inlined
def rotate(r: Matrix, v: Vector) -> Vector:
    """R v: out of the rotated frame."""
    return (
        r[0] * v[0] + r[1] * v[1] + r[2] * v[2],
        r[3] * v[0] + r[4] * v[1] + r[5] * v[2],
        r[6] * v[0] + r[7] * v[1] + r[8] * v[2],
    )


@inlined
def rotate_back(r: Matrix, v: Vector) -> Vector:
    """Rᵀ v: into the rotated frame."""
    return (
        r[0] * v[0] + r[3] * v[1] + r[6] * v[2],
        r[1] * v[0] + r[4] * v[1] + r[7] * v[2],
        r[2] * v[0] + r[5] * v[1] + r[8] * v[2],
    )
