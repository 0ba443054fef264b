"""What a motion tells of the base parameters: the columns of their regressor, and how these change with the motion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, model_columns, regressor
from jointbench.dynamics.chosen_columns import ChosenColumns, Motion
from jointbench.errors import ExcitationError
from jointbench.excitation.objectives.smooth_sign import smooth_sign, smooth_sign_slope
from jointbench.robot import Robot


@dataclass(frozen=True, eq=False)
class Information:
    """The base regressor of a motion in units of the noise, V = Σ^(-1/2) W_b: VᵀV is what is known of the parameters.

    Its inverse is the covariance of the estimates by weighted least squares from these samples, if their noise is
    independent.

    Attributes:
        robot: the robot.
        base: its base parameters, with drives or without.
        noise: standard deviation of each joint's torque [N·m or N], shape (n_joints,); None for 1 each.
    """

    robot: Robot
    base: BaseParameters
    noise: Array | None = None

    @classmethod
    def of(cls, robot: Robot, base: BaseParameters, noise: ArrayLike | None = None) -> Information:
        """Check the noise, and take it in.

        Raises:
            ExcitationError: not one positive number for each joint.
        """
        if noise is None:
            return cls(robot, base)
        sigma = np.asarray(noise, dtype=np.float64)
        if sigma.shape != (robot.n_joints,) or not (np.isfinite(sigma) & (sigma > 0.0)).all():
            raise ExcitationError(
                f"noise = {np.array2string(sigma, threshold=50)}: it takes {robot.n_joints} positive standard "
                f"deviations of torque, one for each of {', '.join(robot.joint_names)}"
            )
        return cls(robot, base, sigma)

    def columns(self, motion: Motion) -> Array:
        """V of a motion, with Coulomb's sign as it is; shape (n_samples * n_joints, rank).

        Raises:
            ExcitationError: the motion is not finite, or has fewer equations than there are parameters.
            ShapeError: its arrays differ in shape or do not match the robot.
        """
        self._check_motion(motion)
        of_links_only = self.base.n_full == 10 * self.robot.n_links
        columns = regressor(self.robot, *motion) if of_links_only else model_columns(self.robot, *motion)[0]
        by_sample = self.base.project(columns).reshape(len(motion[0]), self.robot.n_joints, -1)
        return _finite((by_sample * self._roots[:, None]).reshape(len(columns), -1))

    def values(self, motion: Motion) -> Array:
        """The elements of V that are not always zero, with the sign made smooth: for `gram` and `pull_back`.

        Raises:
            ExcitationError, ShapeError: as `columns`.
        """
        self._check_motion(motion)
        return _finite(self._chosen.values(motion, smooth_sign))

    def gram(self, values: Array) -> Array:
        """VᵀV of `values`, shape (rank, rank)."""
        return self._chosen.gram(values)

    def pull_back(self, motion: Motion, values: Array, slope: Array) -> Motion:
        """Derivatives of a function of VᵀV by the motion.

        Args:
            motion: q, dq, ddq.
            values: of it.
            slope: derivative of the function by VᵀV, symmetric, shape (rank, rank).

        Returns:
            Derivatives by q, dq and ddq, shape (n_samples, n_joints) each.
        """
        return self._chosen.pull_back(motion, values, slope, smooth_sign_slope)

    @cached_property
    def _chosen(self) -> ChosenColumns:
        return ChosenColumns.of(self.robot, self.base.columns, self._roots)

    @cached_property
    def _roots(self) -> Array:
        return np.ones(self.robot.n_joints) if self.noise is None else 1.0 / self.noise

    def _check_motion(self, motion: Motion) -> None:
        samples, modelled = len(motion[0]), int(self.robot.modelled.sum())
        if samples * modelled < self.base.rank:
            raise ExcitationError(
                f"{samples} samples give {samples * modelled} equations for {self.base.rank} base parameters; at least "
                f"{-(-self.base.rank // modelled)} samples are needed, 150 is usual"
            )
        for values in motion:
            _finite(values)


def _finite(values: Array) -> Array:
    """The values themselves.

    Raises:
        ExcitationError: one is not finite.
    """
    if not np.isfinite(values).all():
        raise ExcitationError("the motion is not finite, or so fast that its torques are not; look at its weights")
    return values
