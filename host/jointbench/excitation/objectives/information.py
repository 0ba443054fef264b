"""Information that a motion carries about the base parameters, their sizes, and those it would determine poorly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

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

WEAK_RELATIVE_SIGMA = 0.3
"""A parameter whose σ is beyond this share of it is poorly excited: its sign is not even sure at three of them."""

WEAK_INFLATION = 10.0
"""Nor is it known well if its deviation is more than this many times what it were if all others were known."""

_CONFUSION_CORRELATION = 0.5
"""Correlation of two estimates from which on they are said to be confused."""

_MAX_NAMED = 2

_UNIDENTIFIABLE_INFLATION = 1e6
"""Inflation from which on no noise is small enough; rounding alone leaves some 1e13."""


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
        links_only = self.base.n_full == 10 * self.robot.n_links
        columns = regressor(self.robot, *motion) if links_only else model_columns(self.robot, *motion)[0]
        sample_columns = self.base.project(columns).reshape(len(motion[0]), self.robot.n_joints, -1)
        return _finite((sample_columns * self._inverse_sigma[:, None]).reshape(len(columns), -1))

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
            parameters = zip(PARAMETER_NAMES, joint.link.standard_parameters.tolist(), strict=True)
            known |= {f"{joint.name}.{parameter}": value for parameter, value in parameters}
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
    links_only = base.n_full == 10 * robot.n_links
    columns = regressor(robot, q, dq, ddq) if links_only else model_columns(robot, q, dq, ddq)[0]
    shares = np.abs(base.project(columns)).reshape(_MOTIONS, robot.n_joints, -1) / robot.torque_limits[:, None]
    return 1.0 / shares.max(axis=(0, 1))


@dataclass(frozen=True)
class WeakParameter:
    """A base parameter that a motion determines poorly.

    Attributes:
        name: of the parameter that leads it.
        inflation: its standard deviation over that which it had if all others were known, at least 1.
        relative_sigma: its standard deviation over its size; None where the noise is not given.
        confused_with: those whose estimates err along with it, the most first.
    """

    name: str
    inflation: float
    relative_sigma: float | None
    confused_with: tuple[str, ...]

    @property
    def words(self) -> str:
        """Description as a sentence."""
        sentence = f"σ is {self.inflation:.3g} times what it were if the others were known"
        if self.inflation > _UNIDENTIFIABLE_INFLATION:
            sentence = "unidentifiable from this motion"
        elif self.relative_sigma is not None:
            sentence = f"σ is {100.0 * self.relative_sigma:.3g} % of it"
        confused = f"; hard to tell from {' and '.join(self.confused_with)}" if self.confused_with else ""
        return f"{self.name}: {sentence}{confused}"


@dataclass(frozen=True)
class WeakParameters:
    """The base parameters that a motion excites poorly, the worst first.

    Attributes:
        parameters: all of them.
        judged_by: "relative_sigma", or "inflation" where the noise is not given.
        limit: value beyond which a parameter is poorly excited.
        n_parameters: number of base parameters.
        assumptions: on parameters that are not taken relative to their own values.
    """

    parameters: tuple[WeakParameter, ...]
    judged_by: Literal["relative_sigma", "inflation"]
    limit: float
    n_parameters: int
    assumptions: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of these parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def words(self) -> tuple[str, ...]:
        """A summary, then a sentence on each parameter."""
        share = f"σ within {100.0 * self.limit:g} % of it"
        inflation = f"σ at most {self.limit:g} times what it were if the others were known"
        criterion = share if self.judged_by == "relative_sigma" else inflation
        if not self.parameters:
            return (f"all {self.n_parameters} base parameters are well excited ({criterion})",)
        poorly_excited = f"{len(self.parameters)} of {self.n_parameters} base parameters are poorly excited"
        return (f"{poorly_excited} ({criterion} is not reached)", *(parameter.words for parameter in self.parameters))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        parameters = [
            {
                "name": parameter.name,
                "inflation": parameter.inflation,
                "relative_sigma": parameter.relative_sigma,
                "confused_with": list(parameter.confused_with),
            }
            for parameter in self.parameters
        ]
        return {
            "judged_by": self.judged_by,
            "limit": self.limit,
            "n_parameters": self.n_parameters,
            "poorly_excited": parameters,
            "assumptions": list(self.assumptions),
        }


def weak_parameters(
    robot: Robot,
    base: BaseParameters,
    motion: Motion,
    *,
    noise: ArrayLike | None = None,
    prior: Mapping[str, float] | None = None,
    limit: float | None = None,
    repeats: int = 1,
) -> WeakParameters:
    """Find the base parameters that a motion determines poorly.

    With the noise, those with σ_i / |θ_i| beyond the limit, σ by weighted least squares from these samples, if their
    noise is independent, and |θ| as of `parameter_scales`. Without, those with σ_i beyond `limit` times what it were if
    all others were known: 1 / sin of the angle between a column and what the others' make up.

    Args:
        robot: the robot.
        base: its base parameters, with drives or without.
        motion: q, dq, ddq at samples, shape (n_samples, n_joints) each, SI.
        noise: standard deviation of each joint's torque [N·m or N], shape (n_joints,).
        prior: values of full parameters that the robot's file does not know, as in `parameter_scales`.
        limit: WEAK_RELATIVE_SIGMA or WEAK_INFLATION where not given.
        repeats: how often the motion is recorded, for σ.

    Raises:
        ExcitationError: the motion is not finite or has too few samples; noise, prior or repeats are none.
        ShapeError: arrays differ in shape or do not match the robot.

    Source: Belsley, Kuh & Welsch, Regression Diagnostics, 1980 (variance inflation).
    """
    if repeats < 1:
        raise ExcitationError(f"repeats = {repeats}: the motion is recorded once or more often")
    columns = Information.of(robot, base, noise).columns(motion)
    lengths = np.linalg.norm(columns, axis=0)
    covariance = _covariance_of_unit_columns(columns, lengths)
    inflation = np.sqrt(np.diag(covariance))
    names = base.leading_names
    relative: Array | None = None
    assumptions: tuple[str, ...] = ()
    if noise is not None:
        scales = parameter_scales(robot, base, prior)
        relative = inflation / (np.maximum(lengths, _rounding_floor(lengths)) * scales.values * np.sqrt(repeats))
        assumptions = scales.words
    judged = inflation if relative is None else relative
    if limit is None:
        limit = WEAK_INFLATION if relative is None else WEAK_RELATIVE_SIGMA
    parameters = [
        WeakParameter(
            names[i],
            float(inflation[i]),
            None if relative is None else float(relative[i]),
            _confused_with(names, covariance, int(i)),
        )
        for i in np.argsort(-judged, kind="stable")
        if judged[i] > limit
    ]
    judged_by = "inflation" if relative is None else "relative_sigma"
    return WeakParameters(tuple(parameters), judged_by, limit, len(names), assumptions)


def _covariance_of_unit_columns(columns: Array, lengths: Array) -> Array:
    """Return (UᵀU)⁻¹ of the columns U of unit length, finite in directions that rounding alone determines."""
    # A column of zeros stays one, orthogonal to all others.
    unit = columns / np.maximum(lengths, _rounding_floor(lengths))
    _, values, rows = np.linalg.svd(unit, full_matrices=False)
    return (rows.T * np.maximum(values, _rounding_floor(values)) ** -2.0) @ rows


def _rounding_floor(values: Array) -> float:
    """Rounding error of zero beside the largest of these values; never zero."""
    return max(len(values) * np.finfo(np.float64).eps * float(values.max()), np.finfo(np.float64).tiny ** 0.5)


def _confused_with(names: tuple[str, ...], covariance: Array, i: int) -> tuple[str, ...]:
    """The parameters with the estimate that correlates most with that of parameter i."""
    deviations = np.sqrt(np.diag(covariance))
    correlation = np.abs(covariance[i]) / (deviations[i] * deviations)
    confused = [
        int(j) for j in np.argsort(-correlation, kind="stable") if j != i and correlation[j] > _CONFUSION_CORRELATION
    ]
    return tuple(names[j] for j in confused[:_MAX_NAMED])
