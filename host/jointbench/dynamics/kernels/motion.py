"""How each body moves, in its own frame: the outward half of every rigid-body recursion, for eight samples.

The state of eight samples is one array, `work`: first what the joint at hand does, then the base, then each body.
"""

from __future__ import annotations

import math

import numpy as np

from jointbench.dynamics.kernels.compiled import inlined
from jointbench.dynamics.kernels.lanes import LANES, At, Doubles, Lanes, load, load_strided, store
from jointbench.dynamics.kernels.vectors import (
    Matrix,
    Vector,
    add,
    cross,
    put,
    put_matrix,
    rotate_back,
    scale,
    vector,
)
from jointbench.dynamics.tree import Tree

_U = np.uint64
_LANES = _U(LANES)

# What is where in `work`, in front of the bodies.
_POSITION, _COSINE, _SINE, _BODIES = (_U(LANES * k) for k in range(4))

# And what is where in a body's part: its rotation and origin in its parent's frame; angular velocity and acceleration;
# what an accelerometer at its origin feels, the acceleration minus gravity; six lanes for whoever comes next.
ROTATION, ORIGIN, OMEGA, ALPHA, FELT, SPARE, _BODY = (_U(LANES * k) for k in (0, 9, 12, 15, 18, 21, 27))

# Angles beyond this are left to the mathematics library: the reduction below would begin to lose digits.
_FAR = 1e6
# Added and taken away again, it rounds to whole numbers: beyond it a double has no binary places.
_ROUND = 1.5 * 2.0**52
# Half of pi in three parts, the first two of 33 bits: their multiples up to 2^20 are exact.
_PART1, _PART2, _PART3 = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21
_S1, _S2, _S3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
_S4, _S5, _S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
_C1, _C2, _C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
_C4, _C5, _C6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11


@inlined
def work_size(tree: Tree) -> int:
    """Length of `work`."""
    return int(body_at(len(tree.parent)))


@inlined
def lift_base(tree: Tree, work: Doubles) -> None:
    """Set the base's part of `work`: it stands still but for an acceleration upwards, which is what gravity is."""
    base = body_at(-1)
    put(work, base + OMEGA, (0.0, 0.0, 0.0))
    put(work, base + ALPHA, (0.0, 0.0, 0.0))
    put(work, base + FELT, (-tree.gravity[0], -tree.gravity[1], -tree.gravity[2]))


@inlined
def body_at(body: int) -> At:
    """Where a body's part of `work` is; -1 is the base, and the number of bodies is where `work` ends."""
    return _BODIES + _BODY * _U(body + 1)


@inlined
def move_body(tree: Tree, body: int, work: Doubles, q: Doubles, dq: Doubles, ddq: Doubles, start: At) -> None:
    """Fill a body's part of `work` from its parent's, for the samples from `start` on.

    Source: Luh, Walker & Paul, J. Dyn. Sys. Meas. Control 102(2), 1980; gravity as a base that accelerates upwards.
    """
    factor, row = tree.factor[body], _U(len(tree.pair_of))
    first = start * row + _U(tree.coordinate[body])
    position = factor * load_strided(q, first, row) + tree.offset[body]
    velocity, acceleration = factor * load_strided(dq, first, row), factor * load_strided(ddq, first, row)
    store(work, _POSITION, position)
    _turn(work)
    at, parent = body_at(body), body_at(tree.parent[body])
    rotation, origin = _placement(tree, body, position, work)
    omega, alpha = vector(work, parent + OMEGA), vector(work, parent + ALPHA)
    felt = add(vector(work, parent + FELT), add(cross(alpha, origin), cross(omega, cross(omega, origin))))
    omega, alpha, felt = rotate_back(rotation, omega), rotate_back(rotation, alpha), rotate_back(rotation, felt)
    # The joint's own part; one of its two axes is zero.
    turning, sliding = joint_axes(tree, body)
    spin = scale(velocity, turning)
    alpha = add(alpha, add(scale(acceleration, turning), cross(omega, spin)))
    felt = add(felt, add(scale(acceleration, sliding), scale(2.0 * velocity, cross(omega, sliding))))
    put_matrix(work, at + ROTATION, rotation)
    put(work, at + ORIGIN, origin)
    put(work, at + OMEGA, add(omega, spin))
    put(work, at + ALPHA, alpha)
    put(work, at + FELT, felt)


@inlined
def joint_axes(tree: Tree, body: int) -> tuple[Vector, Vector]:
    """Angular and linear velocity of a body when its joint moves at unit speed, in its own frame."""
    axis = tree.axis
    return (axis[body, 0], axis[body, 1], axis[body, 2]), (axis[body, 3], axis[body, 4], axis[body, 5])


@inlined
def _placement(tree: Tree, body: int, position: Lanes, work: Doubles) -> tuple[Matrix, Vector]:
    """Rotation and origin in the parent's frame."""
    p, cosine, sine = tree.rotation[body], load(work, _COSINE), load(work, _SINE)
    origin, slide = tree.origin[body], tree.slide[body]
    return (
        p[0, 0] + cosine * p[1, 0] + sine * p[2, 0],
        p[0, 1] + cosine * p[1, 1] + sine * p[2, 1],
        p[0, 2] + cosine * p[1, 2] + sine * p[2, 2],
        p[0, 3] + cosine * p[1, 3] + sine * p[2, 3],
        p[0, 4] + cosine * p[1, 4] + sine * p[2, 4],
        p[0, 5] + cosine * p[1, 5] + sine * p[2, 5],
        p[0, 6] + cosine * p[1, 6] + sine * p[2, 6],
        p[0, 7] + cosine * p[1, 7] + sine * p[2, 7],
        p[0, 8] + cosine * p[1, 8] + sine * p[2, 8],
    ), (origin[0] + position * slide[0], origin[1] + position * slide[1], origin[2] + position * slide[2])


@inlined
def _turn(work: Doubles) -> None:
    """Cosine and sine of the positions, within 2 units in the last place; the compiler makes vectors of this loop.

    Source: Cody & Waite, Software Manual for the Elementary Functions, 1980 (reduction); polynomials of fdlibm,
    Sun Microsystems, 1993 (k_sin.c, k_cos.c), which hold to half a quarter turn.
    """
    far = 0
    for k in range(_LANES):
        position = work[_POSITION + k]
        far += abs(position) > _FAR
        quarters = position * (2.0 / math.pi) + _ROUND - _ROUND
        rest = ((position - quarters * _PART1) - quarters * _PART2) - quarters * _PART3
        z = rest * rest
        sine = rest + rest * z * (_S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6)))))
        cosine = 1.0 - 0.5 * z + z * z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * _C6)))))
        # Which of -2 … 2 quarter turns it is, whole turns taken off.
        quarter = quarters - 4.0 * (0.25 * quarters + _ROUND - _ROUND)
        odd = abs(quarter) == 1.0
        first, second = (cosine, sine) if odd else (sine, cosine)
        work[_SINE + k] = -first if (quarter < 0.0) | (quarter == 2.0) else first
        work[_COSINE + k] = -second if (quarter > 0.0) | (quarter == -2.0) else second
    if far:
        for k in range(_LANES):
            work[_COSINE + k] = math.cos(work[_POSITION + k])
            work[_SINE + k] = math.sin(work[_POSITION + k])
