"""Calibration: what zeros, lengths, axes, torques and clocks known to a tolerance do to identified parameters.

A calibration error κ adds C κ to the predicted torque, C = d(torque) / dκ at the parameters θ that were fitted. A fit
that knows nothing of κ is off by D κ, D = A⁻¹ Xᵀ W C with A its normal equations, prior included; so its covariance
gets D Dᵀ, where columns of C are those of one standard deviation. Zeros that the data tell are fitted beside θ where
quarters of the time left out are then predicted better: gravity shows them. JCGM 100:2008 (GUM), 4.3 and 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from jointbench.arrays import Array
from jointbench.identification.blocked_least_squares import (
    BLOCKS,
    QUARTERS,
    BlockSums,
    block_sums,
    body_prior,
    mean_log_error,
    span_of,
    squares,
)
from jointbench.identification.calibration_rows import KINDS, CalibrationRows, Effect, effects_of
from jointbench.identification.estimators import Problem
from jointbench.identification.least_squares import Estimate
from jointbench.model import (
    Robot,
    Tolerances,
    read_tolerances,
)
from jointbench.model.table import Table

_BETTER = 0.005
"""Least decrease of the logarithm of the error on time left out for which zeros are fitted."""

_CONTRADICTED = 3.3
"""Deviations from what a tolerance lets expect that contradict it: of fifty effects chance alone passes it once in
twenty recordings."""

_TELLING = 0.2
"""Least share of its tolerance by which the data can move an effect, for them to contradict it."""

_MOST = 0.5
"""Share of a variance that is most of it."""

_SEEN = 0.5
"""Standard deviation of a zero, as a share of its tolerance, below which the data tell it."""


def tolerances_of(robot: Robot, asked: Mapping[str, Any] | str | None, *, is_log: bool) -> Tolerances | None:
    """Return the tolerances that a fit takes, None where the calibration counts as exact.

    Args:
        robot: whose file may give some.
        asked: the settings' own.
        is_log: whether a recording is somebody's log: then there are some by default.

    Raises:
        FileError: an entry is unknown, no number, or below 0.
    """
    if isinstance(asked, str):
        return None
    default = robot.tolerances or (Tolerances() if is_log else None)
    if asked is None:
        return default
    return read_tolerances(Table(dict(asked), "fit setting tolerances"), robot.joint_names, default)


@dataclass(frozen=True)
class Zeros:
    """Zeros of joints that were fitted beside the parameters.

    Attributes:
        values: added to the recorded positions [rad or m], shape (n_joints,).
        sigma: standard deviations, the tolerances of those that the data do not tell, shape (n_joints,).
        tolerance: of each, shape (n_joints,).
    """

    values: Array
    sigma: Array
    tolerance: Array

    @property
    def is_told(self) -> NDArray[np.bool_]:
        """Mask of those that the data tell beside their tolerance, shape (n_joints,)."""
        return self.sigma < _SEEN * self.tolerance

    def sentences(self, robot: Robot) -> list[str]:
        """A sentence on each zero that the data tell and that is off."""
        lines: list[str] = []
        for joint, value, sigma, tolerance, is_told in zip(
            robot.independent_joints, self.values, self.sigma, self.tolerance, self.is_told, strict=True
        ):
            if is_told and abs(value) > 2.0 * sigma:
                factor, unit = (180.0 / np.pi, "°") if joint.kind == "revolute" else (1e3, " mm")
                lines.append(
                    f"gravity shows the zero of {joint.name} at {factor * value:+.2f} ± {factor * sigma:.2f}{unit} "
                    f"(tolerance {factor * tolerance:.2g}{unit}): added to its recorded positions here and wherever "
                    f"this model is compared with a recording; set its zero anew, or its offset in the mapping"
                )
        return lines


@dataclass(frozen=True, eq=False)
class Calibration:
    """Shares of parameters' standard deviations: noise, what the model lacks, and the calibration's tolerances.

    Attributes:
        tolerances: that were taken.
        covariance: of the parameters by calibration alone, shape (rank, rank).
        noise: standard deviation that white noise would give, shape (rank,).
        model: what residuals that are correlated, as those of a model that lacks something, add to that, shape (rank,).
        by_kind: standard deviation by each of `KINDS` that is not exact, shape (rank,) each.
        zeros: of the joints, where they were fitted.
        contradictions: a sentence on each tolerance that the recording contradicts, and is taken larger.
    """

    tolerances: Tolerances
    covariance: Array
    noise: Array
    model: Array
    by_kind: Mapping[str, Array]
    zeros: Zeros | None = None
    contradictions: tuple[str, ...] = ()

    def spread(self, kept: NDArray[np.bool_]) -> Calibration:
        """Return that of more parameters, the others without any share.

        Args:
            kept: which of those the first of these here are, shape (rank,); what is behind them is left out.
        """
        places, n = np.flatnonzero(kept), int(np.count_nonzero(kept))

        def placed(values: Array) -> Array:
            whole = np.zeros((len(kept),) * values.ndim)
            whole[np.ix_(*(places,) * values.ndim)] = values[(slice(n),) * values.ndim]
            return whole

        return replace(
            self,
            covariance=placed(self.covariance),
            noise=placed(self.noise),
            model=placed(self.model),
            by_kind={kind: placed(sigma) for kind, sigma in self.by_kind.items()},
        )

    def words(self, robot: Robot, side: str) -> str:
        """List the tolerances that matter to a robot's torque, "motor" or "joint"."""
        kinds = {joint.kind for joint in robot.independent_joints}
        without = ["torque_sensor" if side == "motor" else "torque_constant"]
        without += ["sliding_zero"] * ("prismatic" not in kinds) + ["zero"] * ("revolute" not in kinds)
        return self.tolerances.words(*without)

    @property
    def sigma(self) -> Array:
        """Standard deviation of the parameters by calibration alone, shape (rank,)."""
        return np.sqrt(np.diag(self.covariance))

    def shares(self, parameter: int) -> tuple[float, float, float]:
        """Shares of a parameter's variance: of noise, of what the model lacks, and of calibration."""
        parts = np.array([self.noise[parameter], self.model[parameter], self.sigma[parameter]]) ** 2
        noise, model, calibration = (parts / max(parts.sum(), np.finfo(np.float64).tiny)).tolist()
        return noise, model, calibration

    def condition(self, parameter: int) -> str:
        """Say on what a parameter's σ rests where most of it is calibration, "" where it is not."""
        share = self.shares(parameter)[2]
        if share <= _MOST:
            return ""
        kind = max(self.by_kind, key=lambda kind: float(self.by_kind[kind][parameter]))
        return f"{share:.0%} of its variance is calibration, most of it {KINDS[kind]}"

    def to_dict(self) -> dict[str, Any]:
        """Plain names and arrays, for a file."""
        zeros = None if self.zeros is None else vars(self.zeros)
        return vars(self) | {"tolerances": asdict(self.tolerances), "zeros": zeros}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Calibration:
        """Read what `to_dict` wrote."""
        zeros = values["zeros"]
        return Calibration(
            tolerances=Tolerances.from_dict(values["tolerances"]),
            **{name: np.array(values[name], dtype=np.float64) for name in ("covariance", "noise", "model")},
            by_kind={kind: np.array(sigma, dtype=np.float64) for kind, sigma in values["by_kind"].items()},
            zeros=None if zeros is None else Zeros(**{name: np.array(value) for name, value in zeros.items()}),
            contradictions=tuple(values["contradictions"]),
        )


@dataclass(frozen=True, eq=False)
class CalibrationProblem:
    """Parameters beside calibration errors, one standard deviation of each a unit.

    Attributes:
        sums: of the rows of `CalibrationRows`.
        effects: of the columns behind the parameters'.
        weights: inverse variances of residuals [1/(N·m)²], shape (n_parts, n_joints).
        prior: [X τ]ᵀ[X τ] of what is known of the parameters beside the data, shape (rank + 1, rank + 1).
        inflation: how many rows count as one, as residuals are correlated.
    """

    sums: BlockSums
    effects: tuple[Effect, ...]
    weights: Array
    prior: Array
    inflation: float

    @classmethod
    def of(cls, problem: Problem, estimate: Estimate, tolerances: Tolerances, side: str) -> CalibrationProblem:
        """Set it up about an estimate.

        Args:
            problem: that was solved.
            estimate: of it.
            tolerances: of the calibration.
            side: of the modelled torque, "motor" or "joint".
        """
        base = problem.base
        effects, full = effects_of(base.robot, tolerances, side), _full_parameters(problem, estimate, side)
        rows = [CalibrationRows(part, base, estimate.parameters, full, effects) for part in problem.parts]
        sums, _ = block_sums(rows, [span_of(part) for part in problem.parts])
        sigma = np.nan_to_num(estimate.joint_sigma)
        weights = np.divide(1.0, sigma**2, out=np.zeros_like(sigma), where=sigma > 0.0)
        prior = np.zeros((base.rank + 1, base.rank + 1))
        if estimate.prior is not None:
            prior += estimate.prior.T @ estimate.prior
        return cls(sums, effects, np.tile(weights, (len(rows), 1)), prior, estimate.inflation)

    @property
    def rank(self) -> int:
        """Number of parameters."""
        return len(self.prior) - 1

    @cached_property
    def blocks(self) -> Array:
        """Weighted sums of each block of time, parameters, effects and torque, shape (BLOCKS, w, w)."""
        return self.sums.weighted(self.weights)

    @cached_property
    def zeros_columns(self) -> NDArray[np.intp]:
        """Columns of the joints' zeros behind the parameters', among the effects."""
        return np.flatnonzero([effect.kind == "zero" for effect in self.effects])

    @cached_property
    def _inverse_normal(self) -> Array:
        """A⁻¹ of the parameters alone."""
        p = self.rank
        return _inverse(self.blocks.sum(axis=0)[:p, :p] + self.prior[:p, :p])

    @cached_property
    def slopes(self) -> Array:
        """Error of the parameters by a standard deviation of each effect, D = A⁻¹ Xᵀ W C, shape (rank, n_effects)."""
        return self._inverse_normal @ self.blocks.sum(axis=0)[: self.rank, self.rank : -1]

    @cached_property
    def information(self) -> tuple[Array, Array]:
        """Information on the effects for any parameters: M and M κ of the best κ, (m, m) and (m,)."""
        p, whole = self.rank, self.blocks.sum(axis=0)
        told = whole[p:-1, p:-1] - whole[p:-1, :p] @ self.slopes
        pull = whole[p:-1, -1] - self.slopes.T @ (whole[:p, -1] + self.prior[:p, p])
        return told / self.inflation, pull / self.inflation

    def zeros(self, before: Zeros | None) -> Zeros | None:
        """Estimate the joints' zeros beside all else that may be off, None where the data tell none of them.

        Args:
            before: those in the recording already, which are estimated further.
        """
        columns = self.zeros_columns
        places = [self.effects[column].place for column in columns]
        tolerance = np.zeros(self.sums.counts.shape[1])
        tolerance[places] = [self.effects[column].sigma for column in columns]
        shift = np.zeros(len(self.effects))
        if before is not None:
            shift[columns] = before.values[places] / tolerance[places]
        told, pull = self.information
        posterior = _inverse(np.eye(len(told)) + told)
        values, sigma = np.zeros_like(tolerance), tolerance.copy()
        values[places] = tolerance[places] * (shift + posterior @ (pull - shift))[columns]
        sigma[places] *= np.sqrt(np.diag(posterior)[columns])
        zeros = Zeros(values, sigma, tolerance)
        if before is None and (not zeros.is_told.any() or self._gained_by_zeros() < _BETTER):
            return None
        return zeros

    def _gained_by_zeros(self) -> float:
        """Decrease of the logarithm of the error on quarters of the time left out where zeros are fitted."""
        without, beside = self._error_left_out(self.zeros_columns[:0]), self._error_left_out(self.zeros_columns)
        return without - beside

    def _error_left_out(self, columns: NDArray[np.intp]) -> float:
        """Mean over joints of the logarithm of the error on quarters of the time left out, some effects fitted."""
        p, chosen = self.rank, np.append(np.arange(self.rank), self.rank + columns)
        known = np.diag(np.where(np.arange(len(chosen)) < p, 0.0, self.inflation))
        known[:p, :p] = self.prior[:p, :p]
        pull = np.append(self.prior[:p, p], np.zeros(len(columns)))
        quarters = self.blocks.reshape(QUARTERS, -1, *self.blocks.shape[1:]).sum(axis=1)
        fitted: list[Array] = []
        for quarter in quarters:
            rest = quarters.sum(axis=0) - quarter
            fitted.append(_inverse(rest[np.ix_(chosen, chosen)] + known) @ (rest[chosen, -1] + pull))
        own = np.array(fitted)[self.sums.block * QUARTERS // BLOCKS]
        places = np.append(chosen, self.sums.grams.shape[-1] - 1)
        grams = self.sums.grams[:, :, places[:, None], places]
        return float(mean_log_error(squares(grams, own[:, None, :]).sum(axis=0), self.sums.counts.sum(axis=0)))

    def contradictions(self) -> dict[str, tuple[int, float]]:
        """Effects that the data show to be off by more than their tolerance lets expect, the worst of each kind.

        κ̂ = (1 + M)⁻¹ M κ has the variance 1 - (1 + M)⁻¹ where κ has that of its tolerance.

        Returns:
            By kind: number of the effect, and by how many of its standard deviations it is off at least.
        """
        told, pull = self.information
        posterior = _inverse(np.eye(len(told)) + told)
        mean, spread = posterior @ pull, np.sqrt(np.maximum(1.0 - np.diag(posterior), 0.0))
        worst: dict[str, tuple[int, float]] = {}
        for number in np.flatnonzero((spread > _TELLING) & (np.abs(mean) > _CONTRADICTED * spread)):
            kind, times = self.effects[number].kind, float(abs(mean[number]))
            if times > max(1.0, worst.get(kind, (0, 0.0))[1]):
                worst[kind] = int(number), times
        return worst

    def calibration(self, robot: Robot, tolerances: Tolerances, covariance: Array, zeros: Zeros | None) -> Calibration:
        """Return what the tolerances add to the covariance of the parameters.

        Tolerances of a kind that the recording contradicts are as much larger as it shows the worst of them to be off.
        The errors left are κ - Z κ̂ with Z of the zeros that were fitted and κ̂ = (1 + M)⁻¹ (M κ + noise of variance M).

        Args:
            robot: whose they are.
            tolerances: that the effects are of.
            covariance: of the parameters without them, shape (rank, rank).
            zeros: that were fitted, None where they were not.
        """
        told, n = self.information[0], len(self.effects)
        taken = np.zeros((n, n))
        if zeros is not None:
            taken[self.zeros_columns] = _inverse(np.eye(n) + told)[self.zeros_columns]
        left = np.eye(n) - taken @ told
        errors = left @ left.T + taken @ told @ taken.T
        is_known = np.isfinite(np.diag(covariance))
        worst = self.contradictions()
        factors = np.array([worst.get(effect.kind, (0, 1.0))[1] for effect in self.effects])
        slopes = np.where(is_known[:, None], self.slopes, 0.0) * factors
        by_kind: dict[str, Array] = {}
        for kind in dict.fromkeys(effect.kind for effect in self.effects):
            own = np.flatnonzero([effect.kind == kind for effect in self.effects])
            by_kind[kind] = np.sqrt(np.einsum("pi,ij,pj->p", slopes[:, own], errors[np.ix_(own, own)], slopes[:, own]))
        noise = np.where(is_known, np.diag(self._inverse_normal), 0.0)
        variance = np.where(is_known, np.diag(covariance), 0.0)
        return Calibration(
            tolerances=tolerances,
            covariance=slopes @ errors @ slopes.T,
            noise=np.sqrt(noise),
            model=np.sqrt(np.maximum(variance - noise, 0.0)),
            by_kind=by_kind,
            zeros=zeros,
            contradictions=tuple(self._sentence(robot, *contradiction) for contradiction in worst.values()),
        )

    def _sentence(self, robot: Robot, number: int, times: float) -> str:
        """Say which tolerance the recording contradicts."""
        kind, place, _, _ = self.effects[number]
        of_all = kind in ("length", "axis")
        joints = robot.joints if of_all else robot.independent_joints
        where = f" at {joints[place].name}" if place >= 0 else ""
        return (
            f"the recording contradicts the tolerance of {KINDS[kind]}: what it shows{where} is {times:.1f} times as "
            f"large, so that all of this kind are taken {times:.1f} times as large; check them, and what the model "
            f"lacks"
        )


def _full_parameters(problem: Problem, estimate: Estimate, side: str) -> Array:
    """Parameters of links and drives that give the estimate, as near to the robot's file as can be, (n_full,)."""
    base = problem.base
    ones = np.ones(base.robot.n_joints)
    prior = body_prior(base, ones, np.ones((len(ones), base.rank)))
    spread = prior.sigma_of_all**2 * base.grouping
    away = estimate.parameters - base.grouping @ prior.mean_of_all
    full = prior.mean_of_all + spread.T @ (_inverse(base.grouping @ spread.T) @ away)
    if side == "joint":
        full[[name.endswith(".rotor_inertia") for name in base.full_names]] = 0.0
    return full


def _inverse(matrix: Array) -> Array:
    """Inverse of a matrix of squares, of whatever units; the pseudo-inverse where directions are not told."""
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0.0, scale, 1.0)
    return np.asarray(linalg.pinvh(matrix / np.outer(scale, scale))) / np.outer(scale, scale)
