"""The condition number of the base regressor as an objective, with its gradient."""

from dataclasses import dataclass

import numpy as np

from jointbench.dynamics import BaseParameters, drive_columns, inverse_dynamics, model_columns
from jointbench.robot import Array, Robot

SMOOTH_SIGN_VELOCITY = 0.05
"""Velocity [rad/s] over which the optimiser's sign function turns: small beside the speeds of an excitation."""

_STEP = 1e-5
"""Step of the central differences: their error is about 1e-9 of the smooth sign's slope, rounding about 1e-11."""

Motion = tuple[Array, Array, Array]


def condition_number(robot: Robot, base: BaseParameters, motion: Motion) -> float:
    """Condition number of the base regressor over a motion (q, dq, ddq), columns not scaled."""
    return float(np.linalg.cond(base.project(model_columns(robot, *motion)[0])))


@dataclass(frozen=True, eq=False)
class ConditionObjective:
    """log of the condition number over a sampled motion, with Coulomb's sign made smooth.

    With the singular triplets (sigma, u, v) of the base regressor, d sigma = uᵀ dW v: only the largest and the
    smallest matter, and W v is the torque of a robot whose parameters are v. So a gradient costs inverse dynamics of
    perturbed motions, not their regressors; and as samples do not see each other, all of them are perturbed at once.

    Attributes:
        robot: the robot.
        base: its base parameters, with drives.
    """

    robot: Robot
    base: BaseParameters

    def value_and_gradient(self, motion: Motion) -> tuple[float, Motion]:
        """Log of the condition number, and its derivatives by q, dq and ddq, shape (n_samples, n_joints) each."""
        columns, _ = model_columns(self.robot, *motion, sign=smooth_sign)
        columns = self.base.project(columns)
        # The Gram matrix halves the digits, which matters only past a condition number of about 1e7.
        squares, vectors = np.linalg.eigh(columns.T @ columns)
        smallest = max(squares[0], np.finfo(float).eps * squares[-1])
        value = 0.5 * float(np.log(squares[-1] / smallest))
        derivatives = np.zeros((3, *motion[0].shape))
        for square, vector, direction in ((squares[-1], vectors[:, -1], 1.0), (smallest, vectors[:, 0], -1.0)):
            # d log sigma = uᵀ dW v / sigma with u = W v / sigma, hence the square.
            left = (columns @ vector).reshape(motion[0].shape) / square
            derivatives += direction * self._pull_back(motion, vector, left)
        return value, (derivatives[0], derivatives[1], derivatives[2])

    def _pull_back(self, motion: Motion, vector: Array, left: Array) -> Array:
        """Derivatives of Σ left * torque(motion) by q, dq, ddq for base parameters `vector`; (3, samples, joints)."""
        samples, n_joints = motion[0].shape
        perturbed = np.broadcast_to(np.stack(motion)[:, None, None, None], (3, 2, 3, n_joints, samples, n_joints))
        perturbed = perturbed.copy()
        for quantity in range(3):
            for joint in range(n_joints):
                perturbed[quantity, 0, quantity, joint, :, joint] += _STEP
                perturbed[quantity, 1, quantity, joint, :, joint] -= _STEP
        torques = self._torque(perturbed.reshape(3, -1, n_joints), vector)
        torques = torques.reshape(2, 3, n_joints, samples, n_joints)
        slope = (torques[0] - torques[1]) / (2.0 * _STEP)
        return np.einsum("ajki,ki->akj", slope, left)

    def _torque(self, motion: Array, vector: Array) -> Array:
        parameters = np.zeros(self.base.n_full)
        parameters[self.base.columns] = vector
        n_inertial = 10 * self.robot.n_links
        torques = inverse_dynamics(self.robot, motion[0], motion[1], motion[2], parameters[:n_inertial])
        drives, _ = drive_columns(self.robot, motion[1], motion[2], sign=smooth_sign)
        return torques + (drives @ parameters[n_inertial:]).reshape(torques.shape)


def smooth_sign(velocity: Array) -> Array:
    """A sign function with a slope, for optimisers."""
    return np.tanh(velocity / SMOOTH_SIGN_VELOCITY)
