"""Derivatives of weighted sums of the regressor's columns or of torques, by reverse accumulation, for eight samples.

What is summed is L = Σ z · N + v · F over pairs of a coordinate and a body: N and F are moment and force about the
body's origin (newton_euler.py) of a body with the weights in place of its ten parameters, (z, v) the body's twist per
unit speed of the coordinate (columns.py). The derivatives of L by all that the bodies' motion is made of, here called
*slopes*, are carried from the tips to the base, against the way that the motion came.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from jointbench.dynamics.kernels.columns import Ten
from jointbench.dynamics.kernels.compiled import inlined, kernel
from jointbench.dynamics.kernels.lanes import LANES, At, Doubles, Number, load, load_rows, load_strided, store
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
    L6,
    Vector,
    add,
    cross,
    dot,
    matrix,
    put,
    rotate,
    rotate_back,
    scale,
    vector,
)
from jointbench.dynamics.tree import Tree

Motion: TypeAlias = tuple[Vector, Vector, Vector]
"""Of omega, alpha and what the origin feels, or the slopes by them."""

_U = np.uint64
_LANES = _U(LANES)

# A twist and then the slope by it; a body's slopes by omega, alpha, and what it feels.
_TWIST, _SLOPE = _U(12 * LANES), _U(6 * LANES)
_BODY = _U(9 * LANES)

# Samples of a piece: it takes some 20 us.
PIECE = 64


@kernel
def fill_regressor_slopes(
    tree: Tree, q: Doubles, dq: Doubles, ddq: Doubles, weights: Doubles, out: Doubles, counters: Counters
) -> None:
    """Derivatives of Σ weights * W, pieces of the samples as long as there are any.

    Args:
        tree: of the robot.
        q, dq, ddq: shape (n_samples, n_coordinates), at least eight samples.
        weights: of each element of W, flat.
        out: derivatives by q, dq, ddq, shape (n_samples, 3 * n_coordinates).
        counters: of pieces of PIECE samples.
    """
    n, width = len(q), 10 * len(tree.parent)
    size = _U(width * len(tree.pair_of))
    work, twists = np.empty(work_size(tree)), np.empty(len(tree.row) * 12 * LANES)
    slopes, sums = np.empty(len(tree.parent) * 9 * LANES), np.empty(out.shape[1] * LANES)
    lift_base(tree, work)
    piece = take(counters)
    while piece * PIECE < n:
        for start in range(piece * PIECE, min(piece * PIECE + PIECE, n), LANES):
            # The last eight may begin among those before: what is done twice comes out alike.
            at = _U(min(start, n - LANES))
            move_pairs(tree, q, dq, ddq, at, work, twists)
            slopes[:] = 0.0
            sums[:] = 0.0
            for body in range(len(tree.parent) - 1, -1, -1):
                for pair in range(tree.first[body], tree.first[body + 1]):
                    column = at * size + _U(tree.row[pair] * width + 10 * body)
                    add_pair(body, pair, load_rows(weights, column, size), work, twists, slopes)
                    pull_twist(tree, body, pair, tree.carried_from[pair], work, twists, sums)
                pull_motion(tree, body, dq, at, work, slopes, sums)
            put_sums(sums, out, at)
        finish(counters)
        piece = take(counters)


@kernel
def fill_torque_slopes(
    tree: Tree,
    links: Doubles,
    q: Doubles,
    dq: Doubles,
    ddq: Doubles,
    weights: Doubles,
    out: Doubles,
    counters: Counters,
) -> None:
    """Derivatives of Σ weights * torque, pieces of the samples as long as there are any.

    As above, but with one pair a body: the twist of a robot whose coordinates move at speeds `weights`.

    Args:
        tree: of the robot.
        links: standard parameters, shape (n_bodies, 10).
        q, dq, ddq, weights: shape (n_samples, n_coordinates), at least eight samples.
        out: derivatives by q, dq, ddq, shape (n_samples, 3 * n_coordinates).
        counters: of pieces of PIECE samples.
    """
    n, rows = len(q), _U(len(tree.pair_of))
    work, twists = np.empty(work_size(tree)), np.empty(len(tree.parent) * 12 * LANES)
    slopes, sums = np.empty(len(tree.parent) * 9 * LANES), np.empty(out.shape[1] * LANES)
    lift_base(tree, work)
    piece = take(counters)
    while piece * PIECE < n:
        for start in range(piece * PIECE, min(piece * PIECE + PIECE, n), LANES):
            at = _U(min(start, n - LANES))
            for body in range(len(tree.parent)):
                move_body(tree, body, work, q, dq, ddq, at)
                speed = load_strided(weights, at * rows + _U(tree.coordinate[body]), rows)
                _twist(tree, body, tree.parent[body], body, tree.factor[body] * speed, work, twists)
            slopes[:] = 0.0
            sums[:] = 0.0
            for body in range(len(tree.parent) - 1, -1, -1):
                p = links[body]
                ten = (p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9])
                add_pair(body, body, ten, work, twists, slopes)
                pull_twist(tree, body, body, tree.parent[body], work, twists, sums)
                pull_motion(tree, body, dq, at, work, slopes, sums)
            put_sums(sums, out, at)
        finish(counters)
        piece = take(counters)


@inlined
def move_pairs(tree: Tree, q: Doubles, dq: Doubles, ddq: Doubles, start: At, work: Doubles, twists: Doubles) -> None:
    """Fill `work` and the twists of all pairs, for the samples from `start` on."""
    for body in range(len(tree.parent)):
        move_body(tree, body, work, q, dq, ddq, start)
        for pair in range(tree.first[body], tree.first[body + 1]):
            share = tree.factor[body] if tree.own[pair] else 0.0
            _twist(tree, body, tree.carried_from[pair], pair, share, work, twists)


@inlined
def _twist(tree: Tree, body: int, carried: int, to: int, share: Number, work: Doubles, twists: Doubles) -> None:
    """Set twist `to` of a body: what carries it, number `carried` or -1, and its joint's own; and its slope to zero."""
    turning, sliding = joint_axes(tree, body)
    z, v = scale(share, turning), scale(share, sliding)
    if carried >= 0:
        here, at = body_at(body), _TWIST * _U(carried)
        rotation, around = matrix(work, here + ROTATION), vector(twists, at)
        along = add(vector(twists, at + L3), cross(around, vector(work, here + ORIGIN)))
        z, v = add(rotate_back(rotation, around), z), add(rotate_back(rotation, along), v)
    at = _TWIST * _U(to)
    put(twists, at, z)
    put(twists, at + L3, v)
    put(twists, at + _SLOPE, (0.0, 0.0, 0.0))
    put(twists, at + _SLOPE + L3, (0.0, 0.0, 0.0))


@inlined
def add_pair(body: int, pair: int, ten: Ten, work: Doubles, twists: Doubles, slopes: Doubles) -> None:
    """Add slopes of z · N + v · F by the twist and by the body's motion.

    F = m a + alpha × h + omega × (omega × h), N = h × a + J alpha + omega × (J omega).
    """
    here, at, to = body_at(body), _TWIST * _U(pair), _BODY * _U(body)
    omega, alpha, felt = vector(work, here + OMEGA), vector(work, here + ALPHA), vector(work, here + FELT)
    z, v = vector(twists, at), vector(twists, at + L3)
    mass, first = ten[0], (ten[1], ten[2], ten[3])
    inertia = (ten[4], ten[5], ten[6], ten[5], ten[7], ten[8], ten[6], ten[8], ten[9])
    momentum, turned = rotate(inertia, omega), cross(z, omega)
    force = add(scale(mass, felt), add(cross(alpha, first), cross(omega, cross(omega, first))))
    moment = add(cross(first, felt), add(rotate(inertia, alpha), cross(omega, momentum)))
    by_omega = add(add(cross(momentum, z), rotate(inertia, turned)), _centrifugal_slope(omega, v, first))
    by_alpha = add(rotate(inertia, z), cross(first, v))
    by_felt = add(scale(mass, v), cross(z, first))
    _add_to(twists, at + _SLOPE, moment)
    _add_to(twists, at + _SLOPE + L3, force)
    _add_to(slopes, to, by_omega)
    _add_to(slopes, to + L3, by_alpha)
    _add_to(slopes, to + L6, by_felt)


@inlined
def _centrifugal_slope(omega: Vector, left: Vector, right: Vector) -> Vector:
    """Slope of left · (omega × (omega × right)) by omega."""
    along, across = scale(dot(omega, right), left), scale(dot(omega, left), right)
    return add(add(along, across), scale(-2.0 * dot(left, right), omega))


@inlined
def pull_twist(tree: Tree, body: int, pair: int, carried: int, work: Doubles, twists: Doubles, sums: Doubles) -> None:
    """Carry the slope by a body's twist to that which carries it, and to the joint's position."""
    here, at = body_at(body), _TWIST * _U(pair)
    z, v = vector(twists, at), vector(twists, at + L3)
    by_z, by_v = vector(twists, at + _SLOPE), vector(twists, at + _SLOPE + L3)
    _turn(tree, body, add(cross(z, by_z), cross(v, by_v)), sums)
    if carried >= 0:
        rotation, to = matrix(work, here + ROTATION), _TWIST * _U(carried)
        by_v = rotate(rotation, by_v)
        by_z = add(rotate(rotation, by_z), cross(vector(work, here + ORIGIN), by_v))
        _add_to(twists, to + _SLOPE, by_z)
        _add_to(twists, to + _SLOPE + L3, by_v)
        _slide(tree, body, cross(by_v, vector(twists, to)), sums)


@inlined
def pull_motion(tree: Tree, body: int, dq: Doubles, start: At, work: Doubles, slopes: Doubles, sums: Doubles) -> None:
    """Carry the slopes by a body's motion to its parent's, and to the joint's."""
    factor, rows = tree.factor[body], _U(len(tree.pair_of))
    velocity = factor * load_strided(dq, start * rows + _U(tree.coordinate[body]), rows)
    here, at = body_at(body), _BODY * _U(body)
    omega, alpha, felt = vector(work, here + OMEGA), vector(work, here + ALPHA), vector(work, here + FELT)
    by_omega, by_alpha, by_felt = vector(slopes, at), vector(slopes, at + L3), vector(slopes, at + L6)
    turning, sliding = joint_axes(tree, body)
    _turn(tree, body, add(cross(omega, by_omega), add(cross(alpha, by_alpha), cross(felt, by_felt))), sums)
    # The joint's own part of the motion: a turning axis crossed with itself is nothing, so omega may be the whole.
    gained = add(cross(by_alpha, omega), by_omega)
    by_velocity = dot(turning, gained) + dot(sliding, scale(2.0, cross(by_felt, omega)))
    _add_to_sum(tree, body, sums, 1, by_velocity)
    _add_to_sum(tree, body, sums, 2, dot(turning, by_alpha) + dot(sliding, by_felt))
    parent = tree.parent[body]
    if parent >= 0:
        above, to = body_at(parent), _BODY * _U(parent)
        rotation, origin = matrix(work, here + ROTATION), vector(work, here + ORIGIN)
        by_own = add(cross(scale(velocity, turning), by_alpha), scale(2.0 * velocity, cross(sliding, by_felt)))
        by_omega = rotate(rotation, add(by_omega, by_own))
        by_alpha, by_felt = rotate(rotation, by_alpha), rotate(rotation, by_felt)
        omega, alpha = vector(work, above + OMEGA), vector(work, above + ALPHA)
        _add_to(slopes, to, add(by_omega, _centrifugal_slope(omega, by_felt, origin)))
        _add_to(slopes, to + L3, add(by_alpha, cross(origin, by_felt)))
        _add_to(slopes, to + L6, by_felt)
        _slide(tree, body, add(cross(by_felt, alpha), cross(omega, cross(omega, by_felt))), sums)


@inlined
def _turn(tree: Tree, body: int, moment: Vector, sums: Doubles) -> None:
    """Add what a turn of the joint does: it turns all vectors x that come into its frame, by -axis × x each.

    Args:
        tree: of the robot.
        body: that the joint moves.
        moment: Σ x × (slope by x). The joint's own part of x, along the axis, drops out.
        sums: where it is added.
    """
    turning, _ = joint_axes(tree, body)
    _add_to_sum(tree, body, sums, 0, -1.0 * dot(turning, moment))


@inlined
def _slide(tree: Tree, body: int, by_origin: Vector, sums: Doubles) -> None:
    """Add what a shift of the joint does to the origin of the body's frame."""
    slide = tree.slide[body]
    _add_to_sum(tree, body, sums, 0, dot((slide[0], slide[1], slide[2]), by_origin))


@inlined
def _add_to_sum(tree: Tree, body: int, sums: Doubles, order: int, slope: Number) -> None:
    """Add to the derivative by the position, velocity or acceleration that the body's joint follows."""
    at = (_U(order) * _U(len(tree.pair_of)) + _U(tree.coordinate[body])) * _LANES
    store(sums, at, load(sums, at) + tree.factor[body] * slope)


@inlined
def _add_to(array: Doubles, at: At, value: Vector) -> None:
    put(array, at, add(vector(array, at), value))


@inlined
def put_sums(sums: Doubles, out: Doubles, start: At) -> None:
    """Set the rows of eight samples."""
    for k in range(_LANES):
        for column in range(_U(out.shape[1])):
            out[start + k, column] = sums[column * _LANES + k]
