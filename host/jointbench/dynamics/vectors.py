"""Batched 3-vectors: the first axis is x, y, z, the last is the sample, any others broadcast."""

import numpy as np

from jointbench.robot.arrays import Array


def cross(left: Array, right: Array) -> Array:
    """Cross product along the first axis; several times faster here than numpy.cross, which moves axes."""
    out = np.empty((3, *np.broadcast_shapes(left.shape[1:], right.shape[1:])))
    out[0] = left[1] * right[2] - left[2] * right[1]
    out[1] = left[2] * right[0] - left[0] * right[2]
    out[2] = left[0] * right[1] - left[1] * right[0]
    return out


def dot(left: Array, right: Array) -> Array:
    """Inner product along the first axis."""
    return left[0] * right[0] + left[1] * right[1] + left[2] * right[2]


def rotate(matrix: Array, vectors: Array) -> Array:
    """Multiply every vector by one constant (3, 3) matrix."""
    return (matrix @ vectors.reshape(3, -1)).reshape(vectors.shape)


def rotate_about_z(cosine: Array, sine: Array, vectors: Array) -> Array:
    """Rotate every vector about z; negate the sine to rotate back."""
    out = np.empty((3, *np.broadcast_shapes(cosine.shape, vectors.shape[1:])))
    out[0] = cosine * vectors[0] - sine * vectors[1]
    out[1] = sine * vectors[0] + cosine * vectors[1]
    out[2] = vectors[2]
    return out
