"""Joint torques by forces and moments summed from the tips to the base, for eight samples."""

from __future__ import annotations

import numpy as np

from jointbench.dynamics.kernels.compiled import inlined, kernel
from jointbench.dynamics.kernels.lanes import LANES, At, Doubles, load, store
from jointbench.dynamics.kernels.motion import (
    ALPHA,
    FELT,
    OMEGA,
    ORIGIN,
    ROTATION,
    SPARE,
    body_at,
    joint_axes,
    lift_base,
    move_body,
    work_size,
)
from jointbench.dynamics.kernels.sharing import Counters, finish, take
from jointbench.dynamics.kernels.vectors import L3, add, cross, dot, matrix, put, rotate, scale, vector
from jointbench.dynamics.tree import Tree

_U = np.uint64
_LANES = _U(LANES)

# A body's force and moment are where the regressor keeps its matrix.
_FORCE, _MOMENT = SPARE, SPARE + L3


# Samples of a piece: it takes some 10 us.
PIECE = 256


@kernel
def fill_torques(
    tree: Tree, links: Doubles, q: Doubles, dq: Doubles, ddq: Doubles, out: Doubles, counters: Counters
) -> None:
    """Fill pieces of the torques, as long as there are any.

    Args:
        tree: of the robot.
        links: standard parameters, shape (n_bodies, 10).
        q, dq, ddq, out: shape (n_samples, n_coordinates), at least eight samples.
        counters: of pieces of PIECE samples.
    """
    n = len(q)
    work, torques = np.empty(work_size(tree)), np.empty(out.shape[1] * LANES)
    lift_base(tree, work)
    piece = take(counters)
    while piece * PIECE < n:
        for start in range(piece * PIECE, min(piece * PIECE + PIECE, n), LANES):
            # The last eight may begin among those before: what is done twice comes out alike.
            at = min(start, n - LANES)
            _fill_lanes(tree, links, q, dq, ddq, _U(at), work, torques)
            for coordinate in range(out.shape[1]):
                for k in range(LANES):
                    out[at + k, coordinate] = torques[coordinate * LANES + k]
        finish(counters)
        piece = take(counters)


@inlined
def _fill_lanes(
    tree: Tree, links: Doubles, q: Doubles, dq: Doubles, ddq: Doubles, start: At, work: Doubles, torques: Doubles
) -> None:
    """Torques of eight samples, a coordinate's after the other's."""
    for body in range(len(tree.parent)):
        move_body(tree, body, work, q, dq, ddq, start)
        _load(body, work, links[body])
    torques[:] = 0.0
    for body in range(len(tree.parent) - 1, -1, -1):
        at = body_at(body)
        force, moment = vector(work, at + _FORCE), vector(work, at + _MOMENT)
        turning, sliding = joint_axes(tree, body)
        row = _LANES * _U(tree.coordinate[body])
        torque = dot(turning, moment) + dot(sliding, force)
        store(torques, row, load(torques, row) + tree.factor[body] * torque)
        if tree.parent[body] >= 0:
            parent = body_at(tree.parent[body])
            rotation = matrix(work, at + ROTATION)
            force = rotate(rotation, force)
            moment = add(rotate(rotation, moment), cross(vector(work, at + ORIGIN), force))
            put(work, parent + _FORCE, add(vector(work, parent + _FORCE), force))
            put(work, parent + _MOMENT, add(vector(work, parent + _MOMENT), moment))


@inlined
def _load(body: int, work: Doubles, link: Doubles) -> None:
    """Force and moment about its origin that move a body.

    They are m a + alpha × mc + omega × (omega × mc), and mc × a + I alpha + omega × (I omega).
    """
    at = body_at(body)
    omega, alpha, felt = vector(work, at + OMEGA), vector(work, at + ALPHA), vector(work, at + FELT)
    first = (link[1], link[2], link[3])
    inertia = (link[4], link[5], link[6], link[5], link[7], link[8], link[6], link[8], link[9])
    force = add(scale(link[0], felt), add(cross(alpha, first), cross(omega, cross(omega, first))))
    moment = add(cross(first, felt), add(rotate(inertia, alpha), cross(omega, rotate(inertia, omega))))
    put(work, at + _FORCE, force)
    put(work, at + _MOMENT, moment)
