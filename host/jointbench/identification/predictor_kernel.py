"""Torque of one sample, links and drives compiled as one: each step taken in Python would cost as much as all of this.

Importing this module imports Numba, which takes a quarter of a second: the predictor does so when one is made.
"""

from __future__ import annotations

import math

from jointbench.identification.friction.law import Form
from jointbench.model.kernels import Doubles, fill_torques, kernel, part
from jointbench.model.tree import Tree

_SIGN, _SPEED, _BELL, _TANH = (float(form) for form in (Form.SIGN, Form.SPEED, Form.BELL, Form.TANH))


@part
def form_of(form: float, shape: float, direction: float, speed: float, load: float) -> float:
    """Torque of a friction law's element per unit of its coefficient."""
    if speed == 0.0 or direction * speed < 0.0:
        return 0.0
    sign = 1.0 if speed > 0.0 else -1.0
    if form == _SIGN:
        return sign
    if form == _SPEED:
        return speed
    if form == _BELL:
        return sign * math.exp(-((speed / shape) ** 2))
    if form == _TANH:
        return math.tanh(shape * speed)
    return sign * abs(load)


@part
def remember(shares: Doubles, stops: Doubles, q: Doubles, state: Doubles) -> None:
    """Let each stop go with its axis, and clip it."""
    n = len(q)
    for i in range(len(stops)):
        axis, threshold = int(stops[i, 0]), stops[i, 1]
        moved = 0.0
        for j in range(n):
            moved += shares[axis, j] * (q[j] - state[j])
        state[n + i] = min(max(state[n + i] + moved / threshold, -1.0), 1.0)
    for j in range(n):
        state[j] = q[j]


@part
def of_term(term: Doubles, velocity: float, load: float, state: Doubles, n: int) -> float:
    """Torque of a carrier times an amplitude times its weight."""
    stop = int(term[1])
    carrier = math.tanh(velocity / term[2]) if stop < 0 else state[n + stop]
    amplitude = 1.0
    if term[3] == 1.0:
        amplitude = abs(load)
    elif term[3] == 2.0:
        amplitude = math.exp(-((velocity / term[4]) ** 2))
    return term[5] * carrier * amplitude


@kernel
def torque_of_one(
    tree: Tree, links: Doubles, drives: Doubles, laws: Doubles, shares: Doubles, joints: Doubles, stops: Doubles,
    terms: Doubles, q: Doubles, dq: Doubles, ddq: Doubles, state: Doubles, work: Doubles,
    out: Doubles,
) -> None:  # fmt: skip
    """Fill `out` with the torque of one sample.

    Args:
        tree: of the robot.
        links: standard parameters, shape (n_bodies, 10).
        drives: offset, inertia, viscous of each joint, then rows of coulomb and speed of each that rubs, side by side,
            shape (1 + 2 * n_joints + 2 * n_rubbing, n_joints).
        laws: elements of friction laws, a row each: joint, form, coefficient, shape, direction; shape (n_elements, 5).
        shares, joints, stops, terms: of friction with memory, as of `MemoryTerms`.
        q, dq, ddq, out: shape (n_joints,).
        state: position of each joint at the sample before, then the stops, which go on; shape (n_joints + n_stops,).
        work: position, velocity, acceleration and torque of one sample, shape (4, 1, n_joints).
    """
    n = len(q)
    for j in range(n):
        work[0, 0, j], work[1, 0, j], work[2, 0, j] = q[j], dq[j], ddq[j]
    fill_torques(tree, links, work[0], work[1], work[2], work[3])
    for j in range(n):
        torque = work[3, 0, j] + drives[0, j]
        for k in range(n):
            torque += drives[1 + j, k] * ddq[k]
        work[3, 0, j] = torque
        for k in range(n):
            torque += drives[1 + n + j, k] * dq[k]
        out[j] = torque
    for i in range(len(laws)):
        j = int(laws[i, 0])
        out[j] += laws[i, 2] * form_of(laws[i, 1], laws[i, 3], laws[i, 4], dq[j], work[3, 0, j])
    remember(shares, stops, q, state)
    for i in range(len(terms)):
        axis = int(terms[i, 0])
        speed, load = 0.0, 0.0
        for k in range(n):
            speed += shares[axis, k] * dq[k]
        if joints[axis] >= 0.0:
            load = work[3, 0, int(joints[axis])]
        torque = of_term(terms[i], speed, load, state, n)
        for j in range(n):
            out[j] += shares[axis, j] * torque
    for first in range(1 + 2 * n, len(drives), 2):
        speed = 0.0
        for k in range(n):
            speed += drives[first + 1, k] * dq[k]
        if speed != 0.0:
            sign = 1.0 if speed > 0.0 else -1.0
            for j in range(n):
                out[j] += drives[first, j] * sign
