"""The regressor's columns: the torque of each coordinate against each body that it moves, for eight samples."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from jointbench.dynamics.kernels.compiled import inlined, kernel
from jointbench.dynamics.kernels.lanes import LANES, At, Doubles, Number, store_rows, zeros
from jointbench.dynamics.kernels.motion import (
    ALPHA,
    FELT,
    OMEGA,
    ORIGIN,
    ROTATION,
    body_at,
    joint_axes,
    lift_base,
    move_body,
    work_size,
)
from jointbench.dynamics.kernels.sharing import Counters, finish, take
from jointbench.dynamics.kernels.vectors import (
    L3,
    Matrix,
    Vector,
    add,
    cross,
    dot,
    matrix,
    put,
    rotate_back,
    scale,
    vector,
)
from jointbench.dynamics.tree import Tree

Ten: TypeAlias = tuple[Number, Number, Number, Number, Number, Number, Number, Number, Number, Number]
Terms: TypeAlias = tuple[Matrix, Vector, Vector, Vector]

_U = np.uint64
_TWIST = _U(6 * LANES)


# Samples of a piece: it takes some 10 us.
PIECE = 64

# From this size on an array [bytes] does not stay in the processor's caches.
_FAR = 8e6


@kernel
def fill_regressor(tree: Tree, q: Doubles, dq: Doubles, ddq: Doubles, out: Doubles, counters: Counters) -> None:
    """Fill pieces of W, flat, as long as there are any; its rows are coordinates, ten columns a body.

    Args:
        tree: of the robot.
        q, dq, ddq: shape (n_samples, n_coordinates), at least eight samples.
        out: W of all samples, flat.
        counters: of pieces of PIECE samples.
    """
    n, size = len(q), tree.pair_of.size * 10
    work, twists = np.empty(work_size(tree)), np.empty(len(tree.row) * 6 * LANES)
    lift_base(tree, work)
    piece = take(counters)
    while piece * PIECE < n:
        for start in range(piece * PIECE, min(piece * PIECE + PIECE, n), LANES):
            # The last eight may begin among those before: what is done twice comes out alike.
            at = min(start, n - LANES)
            rows = out[at * size : (at + LANES) * size]
            _fill_lanes(tree, q, dq, ddq, _U(at), rows, out.nbytes > _FAR, work, twists)
        finish(counters)
        piece = take(counters)


@inlined
def _fill_lanes(
    tree: Tree,
    q: Doubles,
    dq: Doubles,
    ddq: Doubles,
    start: At,
    rows: Doubles,
    far: bool,
    work: Doubles,
    twists: Doubles,
) -> None:
    """Fill the rows of eight samples."""
    if far:
        # Although most of it is overwritten: the processor fetches memory ahead of one straight pass, but not ahead of
        # the hops below, which then find their lines in the cache. Where they are there already it would cost a fifth.
        rows[:] = 0.0
    width = _U(10 * len(tree.parent))
    size = width * _U(len(tree.pair_of))
    for body in range(len(tree.parent)):
        move_body(tree, body, work, q, dq, ddq, start)
        terms = body_terms(body, work)
        for row in range(len(tree.pair_of)):
            pair, at = tree.pair_of[row, body], _U(row) * width + _U(10 * body)
            if pair >= 0:
                store_rows(rows, at, size, columns(tree, body, pair, terms, work, twists))
            elif not far:
                store_rows(rows, at, size, zeros())


@inlined
def body_terms(body: int, work: Doubles) -> Terms:
    """What all pairs of a body share: the matrix S of its force, omega, alpha and what its origin feels."""
    at = body_at(body)
    omega, alpha, felt = vector(work, at + OMEGA), vector(work, at + ALPHA), vector(work, at + FELT)
    x, y, z = omega
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    spin = (
        0.0 - (yy + zz), xy - alpha[2], xz + alpha[1],
        xy + alpha[2], 0.0 - (xx + zz), yz - alpha[0],
        xz - alpha[1], yz + alpha[0], 0.0 - (xx + yy),
    )  # fmt: skip
    return spin, omega, alpha, felt


@inlined
def columns(tree: Tree, body: int, pair: int, terms: Terms, work: Doubles, twists: Doubles) -> Ten:
    """The ten columns of a pair: the coordinate's torque against the body.

    The coordinate moves the body with the twist (z, v) per unit speed; its torque is then z · moment + v · force, with
    force m a + S mc, S = [alpha]× + omega omegaᵀ - omega² E, and moment mc × a + I alpha + omega × (I omega).
    """
    spin, omega, alpha, felt = terms
    z, v = _twist(tree, body, pair, work, twists)
    first = add(rotate_back(spin, v), cross(felt, z))
    turned = cross(z, omega)
    return (
        dot(v, felt),
        first[0],
        first[1],
        first[2],
        z[0] * alpha[0] + turned[0] * omega[0],
        z[0] * alpha[1] + z[1] * alpha[0] + turned[0] * omega[1] + turned[1] * omega[0],
        z[0] * alpha[2] + z[2] * alpha[0] + turned[0] * omega[2] + turned[2] * omega[0],
        z[1] * alpha[1] + turned[1] * omega[1],
        z[1] * alpha[2] + z[2] * alpha[1] + turned[1] * omega[2] + turned[2] * omega[1],
        z[2] * alpha[2] + turned[2] * omega[2],
    )


@inlined
def _twist(tree: Tree, body: int, pair: int, work: Doubles, twists: Doubles) -> tuple[Vector, Vector]:
    """How fast the body turns and moves with the coordinate, in its own frame; kept for the bodies it carries."""
    turning, sliding = joint_axes(tree, body)
    share = tree.factor[body] if tree.own[pair] else 0.0
    z, v = scale(share, turning), scale(share, sliding)
    if tree.carried_from[pair] >= 0:
        here, carried = body_at(body), _TWIST * _U(tree.carried_from[pair])
        rotation, around = matrix(work, here + ROTATION), vector(twists, carried)
        along = add(vector(twists, carried + L3), cross(around, vector(work, here + ORIGIN)))
        z, v = add(rotate_back(rotation, around), z), add(rotate_back(rotation, along), v)
    if tree.carries[body]:
        put(twists, _TWIST * _U(pair), z)
        put(twists, _TWIST * _U(pair) + L3, v)
    return z, v
