"""The usable limits as inequality constraints of the optimiser, with their gradients."""

from dataclasses import dataclass

import numpy as np

from jointbench.dynamics import inverse_dynamics
from jointbench.excitation.assemble import motion_of
from jointbench.excitation.condition import Motion
from jointbench.excitation.usable_limits import UsableLimits
from jointbench.robot import Array, Robot

_STEP = 1e-5
"""Step of the central differences of the torque: their error is about 1e-10 of it, rounding about 1e-11."""


@dataclass(frozen=True, eq=False)
class LimitConstraints:
    """Remaining share of every limit at its worst sample, each at least 0 for a feasible motion.

    Per joint: upper and lower position, velocity, acceleration; then torque where it can be predicted. The gradient
    is that of the worst sample, which is all a local optimiser needs.

    Attributes:
        robot: the robot.
        limits: its usable limits.
        basis_values: phi and its derivatives on a time grid.
        sections: the period is cut into this many, equal in samples, and every limit watched in each: a motion has
            several peaks, and a constraint that jumps from one to another misleads the optimiser.
    """

    robot: Robot
    limits: UsableLimits
    basis_values: Motion
    sections: int

    def values_and_jacobian(self, weights: Array) -> tuple[Array, Array]:
        """Constraint values, shape (n,), and their Jacobian by the weights flattened, shape (n, weights.size)."""
        limits = self.limits
        position, velocity, acceleration = self.basis_values
        blocks = [
            _worst_per_section(basis, weights, direction, self.sections)
            for basis, direction in (
                (position, 1.0 / limits.up),
                (position, -1.0 / limits.down),
                (velocity, 1.0 / limits.velocity),
                (velocity, -1.0 / limits.velocity),
                (acceleration, 1.0 / limits.acceleration),
                (acceleration, -1.0 / limits.acceleration),
            )
        ]
        if limits.torque is not None and self.robot.standard_parameters is not None:
            blocks.append(self._torque(weights, limits.torque, self.robot.standard_parameters))
        values, rows = zip(*blocks, strict=True)
        return np.concatenate(values), np.concatenate(rows)

    def _torque(self, weights: Array, limit: Array, parameters: Array) -> tuple[Array, Array]:
        motion = motion_of(self.robot, self.basis_values, weights)
        share = inverse_dynamics(self.robot, *motion, parameters) / limit
        worst = np.argmax(np.abs(share), axis=0)
        at_worst = np.stack([quantity[worst] for quantity in motion])
        slopes = self._torque_slopes(at_worst, parameters) / limit[:, None, None]
        joints = np.arange(len(worst))
        at_sample = np.stack([basis[worst] for basis in self.basis_values])
        rows = -np.einsum("j,jai,ajs->jis", np.sign(share[worst, joints]), slopes, at_sample)
        return 1.0 - np.abs(share[worst, joints]), rows.reshape(len(worst), -1)

    def _torque_slopes(self, at_worst: Array, parameters: Array) -> Array:
        """Derivative of joint j's torque at row j of a motion (3, n, n), by q, dq, ddq of every joint: (n, 3, n)."""
        n = self.robot.n_joints
        moved = np.broadcast_to(at_worst[:, None, None, None], (3, 2, 3, n, n, n)).copy()
        for quantity in range(3):
            for joint in range(n):
                moved[quantity, 0, quantity, joint, :, joint] += _STEP
                moved[quantity, 1, quantity, joint, :, joint] -= _STEP
        q, dq, ddq = moved.reshape(3, -1, n)
        torques = inverse_dynamics(self.robot, q, dq, ddq, parameters).reshape(2, 3, n, n, n)
        slopes = (torques[0] - torques[1]) / (2.0 * _STEP)
        return np.einsum("ajkk->kaj", slopes)


def _worst_per_section(basis: Array, weights: Array, direction: Array, sections: int) -> tuple[Array, Array]:
    """1 - direction * motion at the worst sample of each section and joint, with the gradients."""
    n_joints, size = weights.shape
    share = (basis @ weights.T) * direction
    by_section = share.reshape(sections, -1, n_joints)
    worst = by_section.argmax(axis=1) + np.arange(sections)[:, None] * by_section.shape[1]
    rows = np.zeros((sections, n_joints, n_joints, size))
    for joint in range(n_joints):
        rows[:, joint, joint] = -direction[joint] * basis[worst[:, joint]]
    values = 1.0 - np.take_along_axis(share, worst, axis=0)
    return values.ravel(), rows.reshape(sections * n_joints, -1)
