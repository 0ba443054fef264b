"""Information that a motion carries about the base parameters, in units of the noise; sizes of the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.limits.torque_limits import check_prior
from jointbench.model import PARAMETER_NAMES, BaseParameters, Robot, drive_parameter_names, model_columns, regressor
from jointbench.model.chosen_columns import ChosenColumns, Motion
from jointbench.model.model_columns import known_drive_parameters

SMOOTH_SIGN_VELOCITY = 0.05
"""Velocity [rad/s] over which the optimiser's sign function turns: small beside the speeds of an excitation."""

UNKNOWN_TORQUE_SHARE = 0.05
"""A parameter without a prior value is taken for as large as asks for this share of a joint's torque limit: what
friction usually takes. The choice only weighs such parameters against the others."""

MIN_TORQUE_SHARE = 0.001
"""A value that asks for less than this share of a torque limit, as one that is zero by symmetry, counts as one that
does: below it sensors tell nothing, and a relative deviation would have no meaning."""

_MOTIONS = 200
"""Random motions that say what a parameter can ask for: of so many the largest is found within some tenths."""


def smooth_sign(velocity: Array) -> Array:
    """tanh(v / v0), v0 being SMOOTH_SIGN_VELOCITY; shapes as given."""
    return np.tanh(velocity / SMOOTH_SIGN_VELOCITY)


def smooth_sign_derivative(velocity: Array) -> Array:
    """Derivative of `smooth_sign` by the velocity, (1 - tanh²(v / v0)) / v0."""
    return (1.0 - smooth_sign(velocity) ** 2) / SMOOTH_SIGN_VELOCITY


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
        return _finite((by_sample * self._inverse_sigma[:, None]).reshape(len(columns), -1))

    def values(self, motion: Motion) -> Array:
        """The elements of V that are not always zero, with the sign made smooth: for `gram` and `pull_back`.

        Raises:
            ExcitationError, ShapeError: as `columns`.
        """
        self._check_motion(motion)
        return _finite(self._chosen_columns.values(motion, smooth_sign))

    def gram(self, values: Array) -> Array:
        """VᵀV of `values`, shape (rank, rank)."""
        return self._chosen_columns.gram(values)

    def pull_back(self, motion: Motion, values: Array, derivative: Array) -> Motion:
        """Derivatives of a function of VᵀV by the motion.

        Args:
            motion: q, dq, ddq.
            values: of it.
            derivative: derivative of the function by VᵀV, symmetric, shape (rank, rank).

        Returns:
            Derivatives by q, dq and ddq, shape (n_samples, n_joints) each.
        """
        return self._chosen_columns.pull_back(motion, values, derivative, smooth_sign_derivative)

    @cached_property
    def _chosen_columns(self) -> ChosenColumns:
        return ChosenColumns.of(self.robot, self.base.columns, self._inverse_sigma)

    @cached_property
    def _inverse_sigma(self) -> Array:
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


@dataclass(frozen=True, eq=False)
class ParameterScales:
    """Sizes of base parameters.

    Attributes:
        names: of the parameters that lead them.
        values: |θ| of each, above zero, shape (rank,), SI.
        known: which are prior values; the others' are an assumption.
        raised: which prior values are so small that LEAST_TORQUE_SHARE stands for them.
    """

    names: tuple[str, ...]
    values: Array
    known: NDArray[np.bool_]
    raised: NDArray[np.bool_]

    @property
    def words(self) -> tuple[str, ...]:
        """A sentence on each parameter that is not taken relative to its own value."""
        sentences: list[str] = []
        for name, value, known, raised in zip(self.names, self.values, self.known, self.raised, strict=True):
            if not known:
                share = f"{100.0 * UNKNOWN_TORQUE_SHARE:g} % of a joint's torque limit"
                sentences.append(f"{name} has no prior value: taken relative to {value:.3g}, which can ask for {share}")
            elif raised:
                share = f"{100.0 * MIN_TORQUE_SHARE:g} % of a joint's torque limit"
                sentences.append(f"{name} is nearly zero: taken relative to {value:.3g}, which can ask for {share}")
        return tuple(sentences)


def parameter_scales(robot: Robot, base: BaseParameters, prior: Mapping[str, float] | None = None) -> ParameterScales:
    """Sizes of base parameters: from the robot's file, from `prior`, and from what joints can bear.

    Args:
        robot: the robot; what its file gives of links and drives is known.
        base: its base parameters.
        prior: values of other full parameters by name, or better ones, such as {"j1.coulomb": 4.0} (SI).

    Raises:
        ExcitationError: `prior` has an unknown name, or a value that is not a number.
    """
    full = _known_parameters(robot, base, prior or {})
    known = np.isfinite(full[base.columns])
    # What is not known of a group is left out of its size.
    magnitudes = np.abs(base.group(np.nan_to_num(full)))
    full_torque_values = _full_torque_values(robot, base)
    min_values = MIN_TORQUE_SHARE * full_torque_values
    values = np.where(known, np.maximum(magnitudes, min_values), UNKNOWN_TORQUE_SHARE * full_torque_values)
    return ParameterScales(base.leading_names, values, known, known & (magnitudes < min_values))


def _known_parameters(robot: Robot, base: BaseParameters, prior: Mapping[str, float]) -> Array:
    """Full parameters, not a number where unknown, shape (n_full,)."""
    check_prior(robot, prior)
    known = dict(zip(drive_parameter_names(robot), known_drive_parameters(robot).tolist(), strict=True))
    for joint in robot.joints:
        if joint.link.standard_parameters is not None:
            of_link = zip(PARAMETER_NAMES, joint.link.standard_parameters.tolist(), strict=True)
            known |= {f"{joint.name}.{parameter}": value for parameter, value in of_link}
    known |= prior
    return np.array([known.get(name, np.nan) for name in base.full_names])


def _full_torque_values(robot: Robot, base: BaseParameters) -> Array:
    """The value of each base parameter that by itself can ask for all of a joint's torque limit, shape (rank,)."""
    rng = np.random.default_rng(0)
    low, high = robot.position_limits.T
    q = rng.uniform(low, high, (_MOTIONS, robot.n_joints))
    dq, ddq = (
        rng.uniform(-1.0, 1.0, (2, *q.shape)) * np.stack([robot.velocity_limits, robot.acceleration_limits])[:, None]
    )
    of_links_only = base.n_full == 10 * robot.n_links
    columns = regressor(robot, q, dq, ddq) if of_links_only else model_columns(robot, q, dq, ddq)[0]
    shares = np.abs(base.project(columns)).reshape(_MOTIONS, robot.n_joints, -1) / robot.torque_limits[:, None]
    return 1.0 / shares.max(axis=(0, 1))
