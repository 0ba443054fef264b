"""Simulation of a robot with given parameters under its servo: the motion it would make of a reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, inverse_dynamics
from jointbench.dynamics.batch import plain_array
from jointbench.dynamics.tree import tree_of
from jointbench.errors import FitError, NotSimulable
from jointbench.identification.estimators.servo import Servo
from jointbench.identification.predictor import DriveTorque
from jointbench.robot import Robot

_REST = 1e-3
"""Share of a joint's fastest reference within which Coulomb friction grows in proportion instead of at once."""

_ASTRAY = 1.0
"""Distance from the reference beyond which the robot does not follow it [rad or m]."""


class SimulatedMotion(NamedTuple):
    """Position and velocity at the beginning of each step, shape (n_steps, n_joints) each."""

    q: Array
    dq: Array


class Plant:
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
            NotSimulable: it is not positive in all of them.
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
            raise NotSimulable(
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
            NotSimulable: the parameters make no positive mass matrix, or the robot does not follow.
        """
        from jointbench.dynamics.kernels.sharing import new_counters
        from jointbench.identification.estimators import closed_loop_kernel as kernel

        drives, speeds = self.drives, np.abs(velocity @ self.drives.speeds.T)
        fastest = speeds.max(axis=0, initial=0.0)
        plant = kernel.PlantArrays(
            tree_of(self.robot), plain_array(self.links).reshape(-1, 10), drives.inertia, drives.viscous,
            drives.offset, plain_array(drives.coulomb), plain_array(drives.speeds),
            _REST * np.where(fastest > 0.0, fastest, 1.0),
        )  # fmt: skip
        arrays = kernel.ServoArrays(*(plain_array(np.asarray(values)) for values in vars(servo).values()))
        forward = np.zeros_like(reference) if feedforward is None else feedforward
        q, dq = np.empty(reference.shape), np.empty(reference.shape)
        outcome = kernel.follow(
            plant, arrays, plain_array(reference), plain_array(velocity), plain_array(forward), step, _ASTRAY,
            plain_array(start), new_counters(), q, dq,
        )  # fmt: skip
        if outcome == kernel.NOT_POSITIVE:
            raise NotSimulable(f"by the parameters so far the mass matrix is not positive in some pose; {_INSTEAD}")
        if outcome == kernel.RAN_AWAY:
            raise NotSimulable(
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
