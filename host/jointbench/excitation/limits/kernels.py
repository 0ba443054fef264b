"""Compiled kernels: positions of a robot's points, their derivatives by its joints, distances of its capsules."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from jointbench.model.kernels import kernel, part
from jointbench.model.tree import Tree

Doubles: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Three: TypeAlias = tuple[float, float, float]

_PARALLEL = 1e-12
"""Squared sine of the angle below which axes count as parallel: what is found is then nearest to 1e-6 of their length,
and above it, rounding moves the nearest points along axes that hardly part."""


@kernel
def place_points(tree: Tree, q: Doubles, body: Indices, local: Doubles, out: Doubles) -> None:
    """Fill out[k, i] with point `local[i]` of body `body[i]` in the base frame at sample k.

    Args:
        tree: of the robot.
        q: positions of the coordinates [rad or m], shape (n_samples, n_coordinates).
        body: -1 is the base, shape (n_points,).
        local: in the frame of its body [m], shape (n_points, 3).
        out: [m], shape (n_samples, n_points, 3).
    """
    frames = np.empty((len(tree.parent), 12))
    last = body.max() if len(body) else -1
    for k in range(len(q)):
        for i in range(last + 1):
            _place(tree, q[k], i, frames)
        for i in range(len(body)):
            out[k, i, 0], out[k, i, 1], out[k, i, 2] = _point(frames, body[i], local[i])


@kernel
def add_point_gradients(
    tree: Tree, q: Doubles, body: Indices, local: Doubles, direction: Doubles, out: Doubles
) -> None:
    """Add to out[k] how fast each coordinate moves point `local[k]` of body `body[k]` along `direction[k]`.

    Σ over the joints that carry the point of factor * direction · (z × (point - origin)), of z alone where it slides.

    Args:
        tree: of the robot.
        q: shape (n, n_coordinates).
        body, local: as above, one point for each sample.
        direction: in the base frame, shape (n, 3).
        out: shape (n, n_coordinates).
    """
    frames = np.empty((len(tree.parent), 12))
    for k in range(len(q)):
        for i in range(body[k] + 1):
            _place(tree, q[k], i, frames)
        x, y, z = _point(frames, body[k], local[k])
        axis_direction = direction[k]
        i = body[k]
        while i >= 0:
            frame, axis = frames[i], tree.axis[i]
            # What a turn does to the point is moment · axis: direction · (z × r) = (r × direction) · z.
            rx, ry, rz = x - frame[9], y - frame[10], z - frame[11]
            mx, my, mz = (
                ry * axis_direction[2] - rz * axis_direction[1],
                rz * axis_direction[0] - rx * axis_direction[2],
                rx * axis_direction[1] - ry * axis_direction[0],
            )
            derivative = 0.0
            for c in range(3):
                revolute = frame[c] * mx + frame[3 + c] * my + frame[6 + c] * mz
                prismatic = (
                    frame[c] * axis_direction[0] + frame[3 + c] * axis_direction[1] + frame[6 + c] * axis_direction[2]
                )
                derivative += axis[c] * revolute + axis[3 + c] * prismatic
            out[k, tree.coordinate[i]] += tree.factor[i] * derivative
            i = tree.parent[i]


@kernel
def distances(points: Doubles, first: Indices, second: Indices, out: Doubles) -> None:
    """Fill out[k, i] with the distance of the axes of capsules first[i] and second[i] at sample k.

    Args:
        points: ends of all axes in the base frame [m], two for each capsule, shape (n_samples, 2 * n_capsules, 3).
        first, second: shape (n_pairs,).
        out: [m], shape (n_samples, n_pairs).
    """
    for k in range(len(points)):
        for i in range(len(first)):
            _, _, x, y, z = _nearest(points[k], 2 * first[i], 2 * second[i])
            out[k, i] = math.sqrt(x * x + y * y + z * z)


@kernel
def nearest_points(
    points: Doubles, first: Indices, second: Indices, shares: Doubles, intersample_bound: Doubles
) -> None:
    """Find where the axes of capsules first[k] and second[k] are nearest to each other at sample k.

    Args:
        points: as above.
        first, second: shape (n_samples,).
        shares: filled with how far along both axes that is, 0 at the start and 1 at the end, shape (n_samples, 2).
        intersample_bound: filled with the second's point minus the first's [m], shape (n_samples, 3).
    """
    for k in range(len(points)):
        nearest = _nearest(points[k], 2 * first[k], 2 * second[k])
        shares[k, 0], shares[k, 1] = nearest[0], nearest[1]
        intersample_bound[k, 0], intersample_bound[k, 1], intersample_bound[k, 2] = nearest[2], nearest[3], nearest[4]


@part
def _place(tree: Tree, q: Doubles, i: int, frames: Doubles) -> None:
    """Set frames[i], rotation row by row and origin in the base frame, from that of its parent."""
    position = tree.factor[i] * q[tree.coordinate[i]] + tree.offset[i]
    cosine, sine = math.cos(position), math.sin(position)
    link_frame, rotation_parts, origin, slide = frames[i], tree.rotation[i], tree.origin[i], tree.slide[i]
    x, y, z = origin[0] + position * slide[0], origin[1] + position * slide[1], origin[2] + position * slide[2]
    parent = tree.parent[i]
    if parent < 0:
        for c in range(9):
            link_frame[c] = rotation_parts[0, c] + cosine * rotation_parts[1, c] + sine * rotation_parts[2, c]
        link_frame[9], link_frame[10], link_frame[11] = x, y, z
        return
    parent_frame = frames[parent]
    for c in range(3):
        a = rotation_parts[0, c] + cosine * rotation_parts[1, c] + sine * rotation_parts[2, c]
        b = rotation_parts[0, 3 + c] + cosine * rotation_parts[1, 3 + c] + sine * rotation_parts[2, 3 + c]
        d = rotation_parts[0, 6 + c] + cosine * rotation_parts[1, 6 + c] + sine * rotation_parts[2, 6 + c]
        link_frame[c] = parent_frame[0] * a + parent_frame[1] * b + parent_frame[2] * d
        link_frame[3 + c] = parent_frame[3] * a + parent_frame[4] * b + parent_frame[5] * d
        link_frame[6 + c] = parent_frame[6] * a + parent_frame[7] * b + parent_frame[8] * d
    link_frame[9] = parent_frame[9] + parent_frame[0] * x + parent_frame[1] * y + parent_frame[2] * z
    link_frame[10] = parent_frame[10] + parent_frame[3] * x + parent_frame[4] * y + parent_frame[5] * z
    link_frame[11] = parent_frame[11] + parent_frame[6] * x + parent_frame[7] * y + parent_frame[8] * z


@part
def _point(frames: Doubles, body: int, local: Doubles) -> Three:
    x, y, z = local[0], local[1], local[2]
    if body < 0:
        return x, y, z
    f = frames[body]
    return (
        f[9] + f[0] * x + f[1] * y + f[2] * z,
        f[10] + f[3] * x + f[4] * y + f[5] * z,
        f[11] + f[6] * x + f[7] * y + f[8] * z,
    )


@part
def _nearest(points: Doubles, i: int, j: int) -> tuple[float, float, float, float, float]:
    """Shares s and t along the axes from points i to i + 1 and j to j + 1 that are nearest, and what lies between.

    |between|² is a convex quadratic of (s, t). Where its minimum lies outside of the unit square, it is on an edge:
    s as if the other line had no ends, then t for that s, and where t has to stay within its axis, s anew for that t.
    """
    ux, uy, uz = points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1], points[i + 1, 2] - points[i, 2]
    vx, vy, vz = points[j + 1, 0] - points[j, 0], points[j + 1, 1] - points[j, 1], points[j + 1, 2] - points[j, 2]
    wx, wy, wz = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
    uu, vv, uv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz, ux * vx + uy * vy + uz * vz
    uw, vw = ux * wx + uy * wy + uz * wz, vx * wx + vy * wy + vz * wz
    determinant = uu * vv - uv * uv
    s = _clamp((uw * vv - vw * uv) / determinant) if determinant > _PARALLEL * uu * vv else 0.0
    t = (s * uv - vw) / vv if vv > 0.0 else 0.0
    if t < 0.0 or t > 1.0 or vv == 0.0:
        t = _clamp(t)
        s = _clamp((uw + t * uv) / uu) if uu > 0.0 else 0.0
    return s, t, wx + t * vx - s * ux, wy + t * vy - s * uy, wz + t * vz - s * uz


@part
def _clamp(share: float) -> float:
    return min(max(share, 0.0), 1.0)
