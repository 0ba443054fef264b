"""What drives a robot along its reference while it is recorded: the boards' servo, or one to stand for an unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError, RunError
from jointbench.recording.run import Run, boards_of

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
        """Of each joint by itself: stiffness J w², damping 2 J w, so that the error dies out without overshoot.

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


def board_servo(run: Run) -> Servo | None:
    """The servo as the registers of a run's boards had it, or None where the run was not made with boards.

    The board's current follows its command at once here, and its velocity is the true one: what it takes to measure
    them, some milliseconds, is left out.

    Raises:
        FitError: its boards' registers are damaged.
    """
    if "board" not in run.provenance:
        return None
    try:
        boards, _ = boards_of(run.path, run.provenance)
        robot = run.robot
        of_joint = {robot.joint_index(facts.joint): facts for facts in boards.values() if not facts.on_foot}
        rows: list[list[float]] = []
        for joint, drive in enumerate(robot.drives):
            facts = of_joint[joint]
            per_ampere = drive.torque_constant
            counts = facts.motor_counts / (2.0 * np.pi)  # [1/rad]
            per_count = counts * per_ampere  # A/count to N·m/rad
            per_rate = per_count * facts.tick_period
            rows.append(
                [
                    facts.si("servo.kp") * per_count,
                    facts.si("servo.kd") * per_rate,
                    facts.si("servo.velocity_feedforward") * per_rate,
                    facts.si("servo.friction") * per_ampere,
                    facts.si("servo.friction_band") / (counts * facts.tick_period),
                    facts.si("servo.ki") * per_count / facts.tick_period,
                    facts.si("limit.current") * per_ampere,
                ]
            )
    except (KeyError, RunError) as error:
        raise FitError(
            f"run {run.path}: its boards' servo cannot be read from {error}; choose an estimator that needs none, "
            f'such as "wls"'
        ) from error
    return Servo(robot.transmission_matrix, *np.array(rows).T.copy())
