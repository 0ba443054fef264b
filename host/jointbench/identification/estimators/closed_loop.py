"""Simulation of a robot with given parameters under its servo: the motion it would make of a reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.predictor import DriveTorque
from jointbench.model import BaseParameters, Robot, inverse_dynamics
from jointbench.model.kernels import Doubles, fill_torques, kernel, part
from jointbench.model.tree import Tree, plain_array, tree_of

_REST = 1e-3
"""Share of a joint's fastest reference within which Coulomb friction grows in proportion instead of at once."""

_ASTRAY = 1.0
"""Distance from the reference beyond which the robot does not follow it [rad or m]."""


class SimulatedMotion(NamedTuple):
    """Position and velocity at the beginning of each step, shape (n_steps, n_joints) each."""

    q: Array
    dq: Array


_UNLIMITED = 1e300


@dataclass(frozen=True, eq=False)
class Servo:
    """A servo of motors, in SI at the motors' side; all shape (n_motors,) unless said otherwise.

    torque = stiffness error + damping d(error)/dt + velocity_feedforward v + friction sat(v / friction_band)
    + integral ∫ error dt, within ±limit, v being the planned velocity; then joint torque = matrixᵀ torque.

    Attributes:
        matrix: motor position of joint position, shape (n_motors, n_joints).
        stiffness: [N·m/rad].
        damping, velocity_feedforward: [N·m·s/rad].
        friction: [N·m].
        friction_band: [rad/s].
        integral: [N·m/(rad·s)].
        limit: [N·m].
    """

    matrix: Array
    stiffness: Array
    damping: Array
    velocity_feedforward: Array
    friction: Array
    friction_band: Array
    integral: Array
    limit: Array

    @classmethod
    def second_order(cls, inertia: Array, bandwidth_Hz: float) -> Servo:
        """Servo of each joint by itself: stiffness J w², damping 2 J w, so that the error dies out without overshoot.

        Args:
            inertia: J that each joint feels [kg·m² or kg], shape (n_joints,).
            bandwidth_Hz: w / 2 pi.
        """
        w = 2.0 * np.pi * bandwidth_Hz
        none = np.zeros(len(inertia))
        return cls(
            matrix=np.eye(len(inertia)), stiffness=inertia * w**2, damping=2.0 * inertia * w, velocity_feedforward=none,
            friction=none, friction_band=none + 1.0, integral=none, limit=none + _UNLIMITED,
        )  # fmt: skip


class SimulatedPlant:
    """A robot with base parameters, as a simulation needs it.

    Base parameters are enough: they say all torques, and so the mass matrix, too.
    """

    def __init__(self, robot: Robot, base: BaseParameters, parameters: ArrayLike) -> None:
        """Prepare.

        Raises:
            FitError: the robot has passive or undriven joints, or a base that moves: their motion does not follow from
                motor torques alone.
        """
        check_can_be_simulated(robot)
        full = np.zeros(base.n_full)
        full[base.columns] = parameters
        self.robot = robot
        self.links: Array = full[: 10 * robot.n_links]
        self.drives: DriveTorque = DriveTorque.of(robot, full[10 * robot.n_links :])  # there are no compensations

    def inertia(self, q: Array) -> Array:
        """Largest inertia that each joint feels, motors included, over poses [kg·m² or kg], shape (n_joints,).

        Raises:
            FitError: it is not positive in all of them.
        """
        rest = np.zeros_like(q)
        gravity = self.gravity(q)
        felt = np.empty_like(q)
        for joint in range(self.robot.n_joints):
            unit = rest.copy()
            unit[:, joint] = 1.0
            felt[:, joint] = (inverse_dynamics(self.robot, q, rest, unit, self.links) - gravity)[:, joint]
        felt += np.diag(self.drives.inertia)
        joint = int(np.argmin(felt.min(axis=0)))
        if not felt[:, joint].min() > 0.0:
            raise FitError(
                f"by the parameters so far joint {self.robot.joint_names[joint]} has the inertia "
                f"{felt[:, joint].min():.3g} in some pose, which must be above 0 to be simulated; {_INSTEAD}"
            )
        return felt.max(axis=0)

    def gravity(self, q: Array) -> Array:
        """Torque that gravity takes [N·m or N], shape as q."""
        rest = np.zeros_like(q)
        return inverse_dynamics(self.robot, q, rest, rest, self.links)

    def follow(
        self, servo: Servo, reference: Array, velocity: Array, step: float, *, start: Array,
        feedforward: Array | None = None,
    ) -> SimulatedMotion:  # fmt: skip
        """Let the servo drive the robot along a reference, from rest.

        Args:
            servo: looks at the state once a step and holds its torque.
            reference, velocity: position [rad or m] and velocity [rad/s or m/s], shape (n_steps, n_joints).
            step: [s].
            start: position at the first step, shape (n_joints,).
            feedforward: joint torque beside the servo's, shape as reference.

        Raises:
            FitError: the parameters make no positive mass matrix, or the robot does not follow.
        """
        drives, speeds = self.drives, np.abs(velocity @ self.drives.speeds.T)
        fastest = speeds.max(axis=0, initial=0.0)
        plant = PlantArrays(
            tree_of(self.robot), plain_array(self.links).reshape(-1, 10), drives.inertia, drives.viscous,
            drives.offset, plain_array(drives.coulomb), plain_array(drives.speeds),
            _REST * np.where(fastest > 0.0, fastest, 1.0),
        )  # fmt: skip
        arrays = ServoArrays(*(plain_array(np.asarray(values)) for values in vars(servo).values()))
        forward = np.zeros_like(reference) if feedforward is None else feedforward
        q, dq = np.empty(reference.shape), np.empty(reference.shape)
        outcome = follow(
            plant, arrays, plain_array(reference), plain_array(velocity), plain_array(forward), step, _ASTRAY,
            plain_array(start), q, dq,
        )  # fmt: skip
        if outcome == NOT_POSITIVE:
            raise FitError(f"by the parameters so far the mass matrix is not positive in some pose; {_INSTEAD}")
        if outcome == RAN_AWAY:
            raise FitError(
                f"a simulation with the parameters so far leaves its reference by more than {_ASTRAY:g} rad or m: "
                f"the servo, or the parameters, are not the robot's; {_INSTEAD}"
            )
        return SimulatedMotion(q, dq)


_INSTEAD = 'record livelier motion, or choose an estimator that simulates nothing, such as "wls" or "physical"'


def check_can_be_simulated(robot: Robot) -> None:
    """Refuse robots whose motion does not follow from their motors' torques.

    Raises:
        FitError: names what stands against it.
    """
    passive = [name for name, modelled in zip(robot.joint_names, robot.modelled, strict=True) if not modelled]
    undriven = [drive.joint for drive in robot.drives if drive.kind == "none"]
    reason = ""
    if robot.base_link is not None:
        reason = "its base is free to move, and what pushes it is not known"
    elif passive:
        reason = f"joint {passive[0]} is passive, so that its torque has no model"
    elif undriven:
        reason = f"nothing drives joint {undriven[0]}"
    elif robot.compensations:
        reason = f"compensation {robot.compensations[0].name!r} acts on it, which the simulation does not have"
    if reason:
        raise FitError(
            f'robot {robot.name!r} cannot be simulated in closed loop: {reason}; choose "wls", or "iv" with the '
            f'instruments "planned" or "periods", which simulate nothing'
        )


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
    """Gains of a servo on its errors, one row a motor; see `Servo`."""

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
    most: float, start: Doubles, q_out: Doubles, dq_out: Doubles,
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
        q_out, dq_out: at the beginning of each step, shape (n_steps, n).
    """
    n = len(start)
    batch = np.zeros((4, n + 1, n))  # position, velocity, acceleration, torque
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
            fill_torques(plant.tree, plant.links, batch[0], batch[1], batch[2], batch[3])
            _equations(plant, vectors[3], batch, torque, matrices[2], matrices[3], vectors[1])
            positive = _begin(q, dq, step, matrices, vectors) if stage == 0 else _end(q, dq, step, matrices, vectors)
            if not positive:
                return NOT_POSITIVE
    return len(reference)


@part
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


@part
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


@part
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


@part
def _pose(q: Doubles, dq: Doubles, batch: Doubles) -> None:
    """Put a state into each lane that asks for the torque of an acceleration: none, then each joint's unit one."""
    for lane in range(len(q) + 1):
        for i in range(len(q)):
            batch[0, lane, i], batch[1, lane, i] = q[i], dq[i]


@part
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


@part
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


@part
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
