"""A robot under its servo, step by step, compiled: as each step hangs on the one before, they make no batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointbench.dynamics.batch import LANES
from jointbench.dynamics.kernels.compiled import inlined, kernel
from jointbench.dynamics.kernels.lanes import Doubles
from jointbench.dynamics.kernels.newton_euler import fill_torques
from jointbench.dynamics.kernels.sharing import Counters
from jointbench.dynamics.tree import Tree

GAMMA = 1.0 - 0.5**0.5
"""Of the two-stage method: with it the method damps whatever is faster than its steps."""

NOT_POSITIVE, RAN_AWAY = -1, -2
"""Why a simulation ended: no positive mass matrix, or a joint farther from its reference than it may be."""


class PlantArrays(NamedTuple):
    """Links and drives of a robot, as `DriveTorque` has them; n = n_joints.

    Coulomb friction grows in proportion within `band` of rest, of each speed that rubs, so that rest is a state.
    """

    tree: Tree
    links: Doubles  # (n_bodies, 10)
    inertia: Doubles  # (n, n)
    viscous: Doubles  # (n, n)
    offset: Doubles  # (n,)
    coulomb: Doubles  # (n, n_rubbing)
    speeds: Doubles  # (n_rubbing, n)
    band: Doubles  # (n_rubbing,)


class ServoArrays(NamedTuple):
    """What a servo makes of errors, one row a motor; see `Servo`."""

    matrix: Doubles  # (m, n)
    stiffness: Doubles
    damping: Doubles
    velocity_feedforward: Doubles
    friction: Doubles
    friction_band: Doubles
    integral: Doubles
    limit: Doubles  # (m,) each


@kernel
def follow(
    plant: PlantArrays, servo: ServoArrays, reference: Doubles, velocity: Doubles, feedforward: Doubles, step: float,
    most: float, start: Doubles, counters: Counters, q_out: Doubles, dq_out: Doubles,
) -> int:  # fmt: skip
    """Fill `q_out` and `dq_out` with what the robot does; returns the number of steps, or why there are not as many.

    In each step the servo looks at the state once and holds its torque, as a board does in a tick.

    Args:
        plant, servo: the robot and what drives it.
        reference, velocity: to follow, shape (n_steps, n).
        feedforward: joint torque beside the servo's, shape (n_steps, n).
        step: [s].
        most: distance from the reference beyond which it is given up [rad or m].
        start: position at the first step, shape (n,); at rest.
        counters: of the pieces of a batch, here a single one.
        q_out, dq_out: at the beginning of each step, shape (n_steps, n).
    """
    n = len(start)
    batch = np.zeros((4, LANES * (-(-(n + 1) // LANES)), n))  # position, velocity, acceleration, torque
    for i in range(n):
        batch[2, i + 1, i] = 1.0
    q, dq, torque, held = start.copy(), np.zeros(n), np.empty(n), np.zeros(len(servo.stiffness))
    matrices, vectors = np.empty((4, n, n)), np.empty((4, n))
    for k in range(len(reference)):
        q_out[k], dq_out[k] = q, dq
        for i in range(n):
            if not abs(reference[k, i] - q[i]) <= most:
                return RAN_AWAY
        _drive(servo, reference[k], velocity[k], q, dq, held, step, torque)
        for i in range(n):
            torque[i] += feedforward[k, i]
            vectors[2, i], vectors[3, i] = q[i], dq[i]
        for stage in range(2):
            # Called here and nowhere else: whatever calls it is compiled as long as it is itself.
            _pose(vectors[2], vectors[3], batch)
            counters[:] = 0
            fill_torques(plant.tree, plant.links, batch[0], batch[1], batch[2], batch[3], counters)
            _equations(plant, vectors[3], batch, torque, matrices[2], matrices[3], vectors[1])
            positive = _begin(q, dq, step, matrices, vectors) if stage == 0 else _end(q, dq, step, matrices, vectors)
            if not positive:
                return NOT_POSITIVE
    return len(reference)


@inlined
def _begin(q: Doubles, dq: Doubles, step: float, matrices: Doubles, vectors: Doubles) -> bool:
    """First stage of a step: its slope, and the state from which the second one is told.

    A two-stage linearly implicit Runge-Kutta method, of second order whatever matrix stands for the derivative: here
    it is that of friction alone, which is what can be stiff.

    Args:
        q, dq: state at the beginning of the step.
        step: [s].
        matrices: mass matrix and damped one, both to be filled; mass matrix and friction's slope, of the state.
        vectors: acceleration of the first stage, to be filled; force; position and velocity of the second stage.

    Returns:
        Whether the mass matrix is positive.

    Source: Verwer, Spee, Blom & Hundsdorfer, SIAM J. Scientific Computing 20(4), 1999, eq. 1.3 (ROS2).
    """
    n = len(q)
    mass, damped, latest, slope = matrices[0], matrices[1], matrices[2], matrices[3]
    first, force, moved, faster = vectors[0], vectors[1], vectors[2], vectors[3]
    for i in range(n):
        first[i] = force[i]
        for j in range(n):
            mass[i, j] = latest[i, j]
            damped[i, j] = mass[i, j] + GAMMA * step * slope[i, j]
    if not _factor(damped):
        return False
    _solve(damped, first)
    for i in range(n):
        moved[i] = q[i] + step * (dq[i] + GAMMA * step * first[i])
        faster[i] = dq[i] + step * first[i]
    return True


@inlined
def _end(q: Doubles, dq: Doubles, step: float, matrices: Doubles, vectors: Doubles) -> bool:
    """Second stage: the state at the end of the step; arguments as in `_begin`, now of the second stage's state."""
    n = len(q)
    mass, damped, latest = matrices[0], matrices[1], matrices[2]
    first, force, rest, faster = vectors[0], vectors[1], vectors[2], vectors[3]
    if not _factor(latest):
        return False
    _solve(latest, force)
    # The damped matrix of the first stage goes with this one, too.
    for i in range(n):
        rest[i] = 0.0
        for j in range(n):
            rest[i] += mass[i, j] * (force[j] - 2.0 * first[j])
    _solve(damped, rest)
    for i in range(n):
        by_first = dq[i] + GAMMA * step * first[i]
        by_second = faster[i] - 2.0 * by_first + GAMMA * step * rest[i]
        q[i] += step * (1.5 * by_first + 0.5 * by_second)
        dq[i] += step * (1.5 * first[i] + 0.5 * rest[i])
    return True


@inlined
def _drive(
    servo: ServoArrays, reference: Doubles, velocity: Doubles, q: Doubles, dq: Doubles, held: Doubles, step: float,
    torque: Doubles,
) -> None:  # fmt: skip
    """Joint torque that the servo gives; `held` is its integral, which stops growing where the torque is limited."""
    torque[:] = 0.0
    for i in range(len(held)):
        error, planned, lag = 0.0, 0.0, 0.0
        for j in range(len(q)):
            error += servo.matrix[i, j] * (reference[j] - q[j])
            planned += servo.matrix[i, j] * velocity[j]
            lag += servo.matrix[i, j] * (velocity[j] - dq[j])
        command = servo.stiffness[i] * error + servo.damping[i] * lag + servo.velocity_feedforward[i] * planned
        command += servo.friction[i] * min(1.0, max(-1.0, planned / servo.friction_band[i])) + held[i]
        more = servo.integral[i] * error * step
        if (command > servo.limit[i] and more > 0.0) or (command < -servo.limit[i] and more < 0.0):
            more = 0.0
        held[i] = min(servo.limit[i], max(-servo.limit[i], held[i] + more))
        command = min(servo.limit[i], max(-servo.limit[i], command))
        for j in range(len(q)):
            torque[j] += servo.matrix[i, j] * command


@inlined
def _pose(q: Doubles, dq: Doubles, batch: Doubles) -> None:
    """Put a state into each lane that asks for the torque of an acceleration: none, then each joint's unit one."""
    for lane in range(len(q) + 1):
        for i in range(len(q)):
            batch[0, lane, i], batch[1, lane, i] = q[i], dq[i]


@inlined
def _equations(
    plant: PlantArrays, dq: Doubles, batch: Doubles, torque: Doubles, mass: Doubles, slope: Doubles, force: Doubles
) -> None:
    """Fill mass matrix, slope of friction over velocity, and force = mass @ ddq, of the torques of a batch."""
    n = len(dq)
    for i in range(n):
        force[i] = torque[i] - batch[3, 0, i] - plant.offset[i]
        for j in range(n):
            force[i] -= plant.viscous[i, j] * dq[j]
            slope[i, j] = plant.viscous[i, j]
            mass[i, j] = batch[3, j + 1, i] - batch[3, 0, i] + plant.inertia[i, j]
    for r in range(len(plant.speeds)):
        share = 0.0
        for j in range(n):
            share += plant.speeds[r, j] * dq[j] / plant.band[r]
        for i in range(n):
            force[i] -= plant.coulomb[i, r] * min(1.0, max(-1.0, share))
            for j in range(n):
                if abs(share) < 1.0:
                    slope[i, j] += plant.coulomb[i, r] * plant.speeds[r, j] / plant.band[r]


@inlined
def _factor(matrix: Doubles) -> bool:
    """Replace the lower half of a symmetric matrix by its Cholesky factor; false where it is not positive."""
    for j in range(len(matrix)):
        for i in range(j, len(matrix)):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            if i == j and not value > 0.0:
                return False
            matrix[i, j] = value**0.5 if i == j else value / matrix[j, j]
    return True


@inlined
def _solve(factor: Doubles, right: Doubles) -> None:
    """Replace `right` by the solution of factor factorᵀ x = right."""
    n = len(right)
    for i in range(n):
        for k in range(i):
            right[i] -= factor[i, k] * right[k]
        right[i] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            right[i] -= factor[k, i] * right[k]
        right[i] /= factor[i, i]
