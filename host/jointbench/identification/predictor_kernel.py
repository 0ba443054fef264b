"""Links and drives of one sample, compiled as one: each step taken in Python would cost as much as all of this."""

from __future__ import annotations

import math

from jointbench.dynamics.kernels.compiled import inlined, kernel
from jointbench.dynamics.kernels.lanes import Doubles
from jointbench.dynamics.kernels.newton_euler import fill_torques
from jointbench.dynamics.kernels.sharing import Counters
from jointbench.dynamics.tree import Tree
from jointbench.identification.friction.element import Form

_SIGN, _SPEED, _BELL, _TANH = (float(form) for form in (Form.SIGN, Form.SPEED, Form.BELL, Form.TANH))


@inlined
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


@kernel
def torque_of_one(
    tree: Tree, links: Doubles, drives: Doubles, laws: Doubles, q: Doubles, dq: Doubles, ddq: Doubles, work: Doubles,
    counters: Counters, out: Doubles,
) -> None:  # fmt: skip
    """Fill `out` with the torque of one sample.

    Args:
        tree: of the robot.
        links: standard parameters, shape (n_bodies, 10).
        drives: offset, inertia, viscous of each joint, then rows of coulomb and speed of each that rubs, side by side,
            shape (1 + 2 * n_joints + 2 * n_rubbing, n_joints).
        laws: elements of friction laws, a row each: joint, form, coefficient, shape, direction; shape (n_elements, 5).
        q, dq, ddq, out: shape (n_joints,).
        work: eight samples of position, velocity, acceleration and torque, shape (4, 8, n_joints).
        counters: of the pieces of a batch, here a single one.
    """
    n = len(q)
    for j in range(n):
        work[0, 0, j], work[1, 0, j], work[2, 0, j] = q[j], dq[j], ddq[j]
    counters[:] = 0
    fill_torques(tree, links, work[0], work[1], work[2], work[3], counters)
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
    for first in range(1 + 2 * n, len(drives), 2):
        speed = 0.0
        for k in range(n):
            speed += drives[first + 1, k] * dq[k]
        if speed != 0.0:
            sign = 1.0 if speed > 0.0 else -1.0
            for j in range(n):
                out[j] += drives[first, j] * sign
