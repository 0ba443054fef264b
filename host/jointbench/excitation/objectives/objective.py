"""Objectives of a plan: criteria on the information about the base parameters, with gradients by the motion.

A criterion takes the eigenvalues and eigenvectors of the information matrix G = VᵀV. The best motions are where several
small eigenvalues meet, and there the smallest has no derivative; so each criterion has a smooth stand-in, in which the
largest of some x becomes (Σ x^p)^(1/p): never less than the largest, the closer the larger the *sharpness* p is, and
the largest itself for p = inf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.objectives.information import Information, ParameterScales, parameter_scales
from jointbench.model import BaseParameters, Robot
from jointbench.model.chosen_columns import Motion

Criterion = Callable[[Array, Array, Array, float], tuple[float, Array]]
"""Called as criterion(eigenvalues, eigenvectors, units, sharpness): its value, and the derivative by G, symmetric.

Eigenvalues are above zero, shape (n,); eigenvectors are the columns, shape (n, n). Parameters are in the units with
which they were decomposed; those of d_optimal and worst_sigma become 1 / units, shape (n,), times as large.
"""


def condition(values: Array, vectors: Array, units: Array, sharpness: float) -> tuple[float, Array]:
    """Log of the condition number of V, ½ log(largest / smallest)."""
    top, top_derivative = log_largest(np.log(values), sharpness)
    bottom, bottom_derivative = log_largest(-np.log(values), sharpness)
    return 0.5 * (top + bottom), spectral(vectors, 0.5 * (top_derivative - bottom_derivative) / values)


def d_optimal(values: Array, vectors: Array, units: Array, sharpness: float) -> tuple[float, Array]:
    """-log det G for each parameter: twice the log of the mean radius of the confidence ellipsoid. It is smooth."""
    value = 2.0 * np.log(units).mean() - np.log(values).mean()
    return float(value), spectral(vectors, -1.0 / (len(values) * values))


def e_optimal(values: Array, vectors: Array, units: Array, sharpness: float) -> tuple[float, Array]:
    """-log of the smallest eigenvalue: the log of the variance of the worst combination of parameters."""
    value, shares = log_largest(-np.log(values), sharpness)
    return value, spectral(vectors, -shares / values)


def worst_sigma(values: Array, vectors: Array, units: Array, sharpness: float) -> tuple[float, Array]:
    """Log of the largest standard deviation of a parameter, ½ log max diag G⁻¹."""
    inverse = spectral(vectors, 1.0 / values)
    variances = np.diag(inverse)
    value, shares = log_largest(2.0 * np.log(units) + np.log(variances), sharpness)
    return 0.5 * value, -0.5 * (inverse * (shares / variances)) @ inverse


def log_largest(logs: Array, sharpness: float) -> tuple[float, Array]:
    """Log of the largest of some numbers, or of (Σ x^p)^(1/p), of their logs; and its derivative by the logs."""
    largest = logs.max()
    if np.isinf(sharpness):
        shares = np.zeros_like(logs)
        shares[logs.argmax()] = 1.0
        return float(largest), shares
    # What is under e^-700 of the largest counts as nothing: exp would underflow.
    powers = np.exp(np.maximum(sharpness * (logs - largest), -700.0))
    return float(largest + np.log(powers.sum()) / sharpness), powers / powers.sum()


def spectral(vectors: Array, values: Array) -> Array:
    """The symmetric matrix of these eigenvectors and eigenvalues."""
    return (vectors * values) @ vectors.T


def emphasis_by_parameter(base: BaseParameters, emphasis: Mapping[str, float]) -> Array:
    """Emphasis on each base parameter, shape (rank,), 1 where nothing is said.

    A parameter that counts twice as much has a column half as long: an optimum makes up for that.

    Args:
        base: the base parameters, called by the parameters that lead them.
        emphasis: on all of a kind, such as {"coulomb": 0.5}, or on one, {"j1.coulomb": 2.0}, which goes before.

    Raises:
        ExcitationError: an unknown name, or an emphasis that is not a positive number.
    """
    names = base.leading_names
    kinds = [name.rpartition(".")[2] for name in names]
    for name, value in emphasis.items():
        if name not in names and name not in kinds:
            raise ExcitationError(
                f"emphasis on {name!r}: no base parameter is led by it; there are the kinds "
                f"{', '.join(dict.fromkeys(kinds))} and the names {names[0]} … {names[-1]}"
            )
        if not (np.isfinite(value) and value > 0.0):
            raise ExcitationError(f"emphasis of {value:g} on {name!r} must be a positive number; 1 is usual")
    kind_emphasis = [emphasis.get(kind, 1.0) for kind in kinds]
    return np.array([emphasis.get(name, kind_value) for name, kind_value in zip(names, kind_emphasis, strict=True)])


CRITERIA: dict[str, Criterion] = {
    "condition_number": condition,
    "scaled_condition_number": condition,
    "d_optimal": d_optimal,
    "e_optimal": e_optimal,
    "relative_sigma": worst_sigma,
}
"""Criterion of each objective, by its name."""

_LOGARITHMIC = ("condition_number", "scaled_condition_number", "relative_sigma")
"""Objectives whose logarithm is minimised, and which are reported without it."""


@dataclass(frozen=True, eq=False)
class Objective:
    """A criterion on a sampled motion; the less the better.

    With V the base regressor in units of the noise (`Information`) and S its columns' scale:

    - "condition_number": of V S, S = 1 / emphasis.
    - "scaled_condition_number": of V L⁻¹ S, L the lengths of V's columns, S = 1 / emphasis.
    - "d_optimal": -log det(VᵀV) for each parameter.
    - "e_optimal": -log of the smallest eigenvalue of S VᵀV S, S = 1 / emphasis.
    - "relative_sigma": the largest emphasis_i σ_i / |θ_i|, |θ| being `relative_to`, σ that of these samples alone.

    Eigenvalues under n ε of the largest, n parameters and ε the precision of a double, count as that much: where a
    motion leaves parameters in the dark, the value is finite, large and no more than the truth (a condition number of
    about 1e7 as it is minimised, 1e14 as it is reported), and the gradient is finite. Only what makes no torque at all,
    or is not a number, is refused.

    Attributes:
        information: of the robot, its base parameters and the noise.
        name: one of CRITERIA.
        column_scale: diagonal of S, shape (rank,).
        sharpness: of the smooth stand-in that `value_and_gradient` has (`criteria`); inf for none.
        relative_to: what σ is relative to; None but for "relative_sigma".
        known: information of earlier motions, shape (rank, rank), which is added to VᵀV; None where there is none.
    """

    information: Information
    name: str
    column_scale: Array
    sharpness: float = math.inf
    relative_to: ParameterScales | None = None
    known: Array | None = None

    @classmethod
    def of(
        cls,
        robot: Robot,
        base: BaseParameters,
        name: str = "condition_number",
        *,
        noise: ArrayLike | None = None,
        prior: Mapping[str, float] | None = None,
        emphasis: Mapping[str, float] | None = None,
        sharpness: float = math.inf,
        known: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
    ) -> Objective:
        """Make the objective of this name.

        Args:
            robot: the robot.
            base: its base parameters, with drives or without.
            name: one of CRITERIA.
            noise: standard deviation of each joint's torque [N·m or N], shape (n_joints,); 1 where not given.
            prior: values of full parameters that the robot's file does not know, such as {"j1.coulomb": 4.0} (SI).
            emphasis: how much parameters count, such as {"coulomb": 0.5, "j3.Izz": 2.0}; 1 where not given.
            sharpness: as above.
            known: information of earlier motions, as above, in units of this noise and number of samples.
            sizes: what σ is relative to of each base parameter, above zero, shape (rank,); None: by file and `prior`.

        Raises:
            ExcitationError: an unknown name, a noise that is no noise, an unknown parameter, an emphasis that is not
                positive or that "d_optimal" would not notice, a "relative_sigma" without noise, or `known` or `sizes`
                that are not of these base parameters.
        """
        if name not in CRITERIA:
            raise ExcitationError(f"objective {name!r} is not known; there is {', '.join(map(repr, CRITERIA))}")
        if not sharpness > 0.0:
            raise ExcitationError(f"sharpness = {sharpness:g} must be above 0; inf is the criterion itself")
        if name == "d_optimal" and emphasis:
            raise ExcitationError("objective 'd_optimal' has the same optimum whatever the emphasis; leave it out")
        information = Information.of(robot, base, noise)
        scale = 1.0 / emphasis_by_parameter(base, emphasis or {})
        before = None if known is None else _checked("known", known, (base.rank, base.rank))
        if name != "relative_sigma":
            return cls(information, name, scale, sharpness, known=before)
        if noise is None:
            raise ExcitationError(
                "objective 'relative_sigma' needs the noise: the standard deviation of each joint's torque [N·m]"
            )
        scales = parameter_scales(robot, base, prior or {})
        if sizes is not None:
            values, yes = _checked("sizes", sizes, (base.rank,)), np.ones(base.rank, dtype=np.bool_)
            scales = replace(scales, values=values, known=yes, raised=~yes)
        return cls(information, name, scale * scales.values, sharpness, scales, before)

    def with_sharpness(self, sharpness: float) -> Objective:
        """Return this objective with another sharpness: a search may begin with 4 or so, and sharpen it."""
        return replace(self, sharpness=sharpness)

    def value(self, motion: Motion) -> float:
        """The criterion itself, with Coulomb's sign as it is: what is reported.

        Raises:
            ExcitationError: the motion makes no torque, or is not finite.
            ShapeError: its arrays differ in shape or do not match the robot.
        """
        columns = self.information.columns(motion)
        if self.known is not None:
            values, vectors = np.linalg.eigh(self.known)
            columns = np.concatenate((columns, np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T))
        scale = self._working_scale(_floor_at_rounding(np.einsum("ri,ri->i", columns, columns)))
        # By singular values, not by eigenvalues of the product: these have twice the digits.
        _, values, rows = np.linalg.svd(columns * scale, full_matrices=False)
        return self.reported_value(
            CRITERIA[self.name](_floor_at_rounding(values) ** 2, rows.T, scale / self.column_scale, math.inf)[0]
        )

    def reported_value(self, minimised: float) -> float:
        """Convert a value of `value_and_gradient` to the scale of `value`."""
        return math.exp(minimised) if self.name in _LOGARITHMIC else minimised

    def value_and_gradient(self, motion: Motion) -> tuple[float, Motion]:
        """Log of the criterion, its stand-in with a smooth sign, and the derivatives by q, dq and ddq.

        "d_optimal" and "e_optimal" are logs already.

        Args:
            motion: q, dq, ddq at samples, shape (n_samples, n_joints) each.

        Raises:
            ExcitationError: the motion makes no torque, or is not finite.
            ShapeError: its arrays differ in shape or do not match the robot.
        """
        values = self.information.values(motion)
        value, derivative = self.of_gram(self.information.gram(values))
        return value, self.information.pull_back(motion, values, derivative)

    def of_gram(self, gram: Array) -> tuple[float, Array]:
        """The criterion of G = VᵀV as it is minimised, and its derivative by G, symmetric, shape (rank, rank)."""
        gram = gram if self.known is None else gram + self.known
        squared_lengths = _floor_at_rounding(np.diag(gram))
        scale = self._working_scale(squared_lengths)
        values, vectors = np.linalg.eigh(gram * (scale[:, None] * scale))
        value, derivative = CRITERIA[self.name](
            _floor_at_rounding(values), vectors, scale / self.column_scale, self.sharpness
        )
        derivative *= scale[:, None] * scale
        if self.name == "scaled_condition_number":
            # A longer column is shortened: d(1 / L) = -dL² / (2 L³).
            derivative[np.diag_indices_from(derivative)] -= np.einsum("ij,ij->i", derivative, gram) / squared_lengths
        return value, derivative

    def _working_scale(self, squared_lengths: Array) -> Array:
        """Working scale of columns with these squared lengths, shape (rank,)."""
        if self.name in ("condition_number", "e_optimal"):
            return self.column_scale
        # The other criteria do not depend on it, or allow for it; of one length columns lose the fewest digits.
        inverse_lengths = 1.0 / np.sqrt(squared_lengths)
        return self.column_scale * inverse_lengths if self.name == "scaled_condition_number" else inverse_lengths


def _checked(what: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ExcitationError(f"{what} has shape {array.shape}; these base parameters need {shape}, finite numbers")
    return array


def _floor_at_rounding(values: Array) -> Array:
    """Raise values to at least n ε of the largest, the rounding error of zero.

    Raises:
        ExcitationError: the largest is not above zero.
    """
    largest = values.max()
    if not largest > 0.0:
        raise ExcitationError("the motion makes no torque at all: no parameter can be identified")
    return np.maximum(values, len(values) * np.finfo(np.float64).eps * largest)
