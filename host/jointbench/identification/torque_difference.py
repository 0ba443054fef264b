"""Parameters and torques of two models beside each other: which differences are real."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.joint_laws import JointLaws, friction_data
from jointbench.identification.model import Model
from jointbench.model import Robot, model_columns
from jointbench.signals import Motion

_FRICTION = ("viscous", "coulomb")
_DRIVES = ("rotor_inertia", "offset")


@dataclass(frozen=True, eq=False)
class AllParameters:
    """Base parameters that no friction law stands for, then the laws' parameters.

    Attributes:
        names: such as "j2.viscous" and "j2.stribeck_speed".
        parts: which of "links", "drives" and "friction" each belongs to.
        values: of them [SI], shape (n,).
        covariance: of them, an infinite variance where not told, shape (n, n).
    """

    names: tuple[str, ...]
    parts: tuple[str, ...]
    values: Array
    covariance: Array

    @classmethod
    def of(cls, model: Model) -> AllParameters:
        """Those of a model."""
        friction = model.friction
        if friction is None:
            return cls(model.names, tuple(map(_part_of, model.names)), model.parameters, model.repeatability)
        kept = np.flatnonzero(friction.laws.kept)
        names, with_base = tuple(model.names[k] for k in kept), friction.with_base[kept]
        return cls(
            (*names, *friction.names),
            (*map(_part_of, names), *["friction"] * len(friction.names)),
            np.concatenate([model.parameters[kept], friction.parameters]),
            np.block([[model.repeatability[np.ix_(kept, kept)], with_base], [with_base.T, friction.covariance]]),
        )

    @property
    def sigma(self) -> Array:
        """Standard deviation of each, infinite where not told, shape (n,)."""
        return np.sqrt(np.diag(self.covariance))


def _part_of(name: str) -> str:
    """Return the part that a base parameter belongs to, by the full parameter that leads it."""
    quantity = name.rpartition(".")[2]
    return "friction" if quantity in _FRICTION else "drives" if quantity in _DRIVES else "links"


_DEPENDENT = 1e-10
"""Eigenvalue of a correlation matrix, relative to the largest, under which a combination carries no test."""


def holm(p_values: Array) -> Array:
    """Probabilities corrected for their number: those at most α name wrongly anything at all with probability α.

    Args:
        p_values: of each test, nan where there is none, shape (n,).

    Returns:
        Corrected, never below the given ones, nan where there is none, shape (n,).

    Source: Holm, Scandinavian J. Statistics 6(2), 1979.

    >>> holm(np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    order = np.argsort(p_values)  # nan last
    count = int(np.isfinite(p_values).sum())
    corrected = np.full(len(p_values), np.nan)
    steps = p_values[order[:count]] * np.arange(count, 0, -1)
    corrected[order[:count]] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


@dataclass(frozen=True)
class JointTest:
    """Test of whether several differences are all zero.

    Attributes:
        chi_square: Σ of the squares of their independent combinations, each by its σ.
        freedom: how many combinations there are.
        p_value: how likely equal parameters are at least that far apart; nan where the σ rest on too few rows.
    """

    chi_square: float
    freedom: int
    p_value: float


def joint_test(difference: Array, covariances: tuple[Array, ...], effective_rows: tuple[float, ...]) -> JointTest:
    """Test that a difference is zero, its covariance being the sum of estimated ones.

    T² = dᵀ (Σ S_i)⁻¹ d, and T² (ν - r + 1) / (ν r) is F(r, ν - r + 1) for r parameters and covariances known as from ν
    independent rows.

    Args:
        difference: shape (r,).
        covariances: whose sum is that of the difference, shape (r, r) each.
        effective_rows: how many independent rows each covariance is worth.

    Source: Hotelling, Ann. Math. Statist. 2(3), 1931; ν as Nel & van der Merwe, Comm. Statist. 15(12), 1986.
    """
    total = sum(covariances, np.zeros((len(difference), len(difference))))
    scale = np.sqrt(np.diag(total))
    scale[scale == 0.0] = 1.0
    if not len(difference):
        return JointTest(0.0, 0, float("nan"))
    values, vectors = np.linalg.eigh(total / np.outer(scale, scale))
    kept = values > _DEPENDENT * values[-1]
    whitening = (vectors[:, kept] / np.sqrt(values[kept])).T / scale
    chi_square, r = float(np.sum((whitening @ difference) ** 2)), int(kept.sum())
    parts = [whitening @ covariance @ whitening.T for covariance in covariances]
    spread = sum(
        (np.sum(part * part.T) + np.trace(part) ** 2) / rows for part, rows in zip(parts, effective_rows, strict=True)
    )
    freedom = (r + r**2) / float(spread)
    below = freedom - r + 1.0
    p_value = float(special.fdtrc(r, below, chi_square * below / (freedom * r))) if below > 0.0 else float("nan")
    return JointTest(chi_square, r, p_value)


def single_tests(difference: Array, variances: tuple[Array, ...], effective_rows: tuple[float, ...]) -> Array:
    """Probability that equal parameters are at least that far apart, each for itself; nan where σ is infinite.

    Args:
        difference: shape (n,).
        variances: whose sum is that of the difference, shape (n,) each.
        effective_rows: how many independent rows each is worth.

    Source: Welch, Biometrika 34(1-2), 1947, for the degrees of freedom of Student's t.
    """
    total = sum(variances, np.zeros(len(difference)))
    known = np.isfinite(total) & (total > 0.0)
    p_values = np.full(len(difference), np.nan)
    parts = sum(variance[known] ** 2 / rows for variance, rows in zip(variances, effective_rows, strict=True))
    freedom = total[known] ** 2 / parts
    p_values[known] = 2.0 * special.stdtr(freedom, -np.abs(difference[known]) / np.sqrt(total[known]))
    return p_values


PARTS = ("all", "links", "drives", "friction")

_STATES = 1000
"""Of a motion that are looked at: more would say the same."""

_BOUND = 1.96
"""σ that a weighted sum of squares stays within in 95 % of cases, were all of it in one direction; less otherwise."""


@dataclass(frozen=True)
class TorqueDifference:
    """Root mean square over a motion of a difference of torque, by joint: what is found, and what chance makes.

    Attributes:
        rms: of the difference found [N·m or N], shape (n_joints,).
        sigma: what it would be for equal models [N·m or N], shape (n_joints,).
        torque: root mean square of all of one model's torque [N·m or N], shape (n_joints,).
    """

    rms: Array
    sigma: Array
    torque: Array

    @property
    def at_most(self) -> Array:
        """Upper limit of the true difference with 95 % probability [N·m or N], shape (n_joints,)."""
        return self.rms + _BOUND * self.sigma

    @property
    def at_least(self) -> Array:
        """Lower limit, alike."""
        return np.maximum(self.rms - _BOUND * self.sigma, 0.0)


class MotionTorque:
    """Torque of a motion as a function of all parameters of a model; the motion is thinned to what it takes."""

    def __init__(self, model: Model, motion: Motion) -> None:
        """For a model's base parameters and friction laws; their values are given to each method."""
        step = max(1, len(motion.q) // _STATES)
        self._dq = motion.dq[::step]
        columns, _ = model_columns(model.robot, motion.q[::step], self._dq, motion.ddq[::step])
        self._base = model.base.project(columns).reshape(*self._dq.shape, model.base.rank)
        self._laws = JointLaws(model.base, {}) if model.friction is None else model.friction.laws

    def at(self, values: Array) -> Array:
        """The torque for these values of `AllParameters` [N·m or N], shape (n, n_joints)."""
        base, of_laws = self._split(values)
        return self._base @ base + self._laws.torque(self._dq, self._load(base), of_laws)

    def columns(self, values: Array) -> Array:
        """Its derivative by each of them, shape (n, n_joints, n_parameters)."""
        laws, (base, of_laws) = self._laws, self._split(values)
        load, by_base = self._load(base), self._base.copy()
        by_laws = np.zeros((*self._dq.shape, laws.n_parameters))
        for name, j in laws.joints.items():
            part = laws.parts[name]
            data = friction_data(self._dq[:, j], load[:, j])
            by_laws[:, j, part] = laws.laws[name].jacobian(data, of_laws[part])
            slope = laws.load_slope(name, data, of_laws)
            by_base[:, j] += slope[:, None] * np.where(laws.loading, self._base[:, j], 0.0)
        return np.concatenate([by_base[:, :, laws.kept], by_laws], axis=2)

    def _split(self, values: Array) -> tuple[Array, Array]:
        """All base parameters, those that laws stand for zero; and the laws'."""
        kept, of_laws = np.split(values, [int(self._laws.kept.sum())])
        return self._laws.full(kept), of_laws

    def _load(self, base: Array) -> Array:
        return self._base @ np.where(self._laws.loading, base, 0.0)


def torque_differences(
    torque: MotionTorque, a: AllParameters, chosen: NDArray[np.intp], difference: Array, covariance: Array
) -> dict[str, TorqueDifference]:
    """The difference of torque that a difference of parameters makes, by part: all of it, links, drives and friction.

    Args:
        torque: of a motion.
        a: parameters of one model.
        chosen: those that both models tell, shape (n,).
        difference: of these from the other model's, shape (n,).
        covariance: of the difference, shape (n, n).
    """
    before = torque.at(a.values)
    parts = np.array(a.parts, dtype=object)[chosen]
    differences: dict[str, TorqueDifference] = {}
    for part in PARTS:
        mine = np.flatnonzero(parts == part) if part != "all" else np.arange(len(chosen))
        step = np.zeros(len(a.values))
        step[chosen[mine]] = difference[mine]
        columns = torque.columns(a.values + 0.5 * step)[:, :, chosen[mine]]
        spread = np.einsum("njp,pr,njr->j", columns, covariance[np.ix_(mine, mine)], columns, optimize=True)
        differences[part] = TorqueDifference(
            rms=np.sqrt(np.mean((torque.at(a.values + step) - before) ** 2, axis=0)),
            sigma=np.sqrt(np.maximum(spread / len(columns), 0.0)),
            torque=np.sqrt(np.mean(before**2, axis=0)),
        )
    return differences


def states_within_limits(robot: Robot, seed: int = 0) -> Motion:
    """Random states anywhere within the robot's limits: a motion that prefers none.

    Raises:
        FitError: a joint has no limit of position, speed or acceleration.
    """
    lower, upper = robot.position_limits.T
    limits = {"position": upper - lower, "velocity": robot.velocity_limits, "acceleration": robot.acceleration_limits}
    for what, values in limits.items():
        for name, value in zip(robot.joint_names, values, strict=True):
            if not np.isfinite(value):
                raise FitError(
                    f"robot {robot.name!r} has no {what} limit for joint {name}, so it is not known which motions "
                    f"matter; give a run whose motion does"
                )
    q, dq, ddq = np.random.default_rng(seed).uniform(-1.0, 1.0, (3, _STATES, robot.n_joints))
    return Motion(
        0.5 * (lower + upper + q * (upper - lower)), dq * robot.velocity_limits, ddq * robot.acceleration_limits
    )
