"""The physically consistent parameters that are nearest to an estimate of base parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from jointbench.arrays import Array
from jointbench.errors import FitError, ShapeError
from jointbench.identification.judgement import Verdict
from jointbench.model import PARAMETER_NAMES, BaseParameters

_UNSEEN = 1e-10
"""Singular value of the scaled triangle, relative to the largest, under which the data do not see a direction."""

_ROUNDING = 1e-14

_WHOLE = 1.0 - 1e-6
"""Share of a parameter in directions that the data tell, above which it is told itself."""


@dataclass(frozen=True, eq=False)
class BaseEstimate:
    """Base parameters and the root of their information: |root @ (other - values)|² is the distance in σ, squared.

    Attributes:
        base: what the values stand for; links and drives.
        values: shape (rank,); anything, such as 0, where the data do not tell a parameter.
        root: of full row rank, shape (n_told, rank); n_told is how many directions the data tell.
    """

    base: BaseParameters
    values: Array
    root: Array

    def __post_init__(self) -> None:
        """Check that the parameters are those of a robot that stands on its own base.

        Raises:
            ShapeError: they are of something else, or values or root do not fit them.
            FitError: a value is not a number.
        """
        width = len(PARAMETER_NAMES) * self.base.robot.n_links
        if self.base.n_full < width or self.base.full_names[:1] != (f"{self.base.robot.joints[0].name}.m",):
            raise ShapeError(
                f"these base parameters group {self.base.n_full} parameters, led by {self.base.full_names[0]}; "
                f"needed are those of base_parameters({self.base.robot.name!r}): {width} of the links, then the drives'"
            )
        if self.values.shape != (self.base.rank,) or self.root.shape[1:] != (self.base.rank,):
            raise ShapeError(
                f"values of shape {self.values.shape} and an information root of {self.root.shape} for "
                f"{self.base.rank} base parameters; needed are ({self.base.rank},) and (n, {self.base.rank})"
            )
        bad = np.flatnonzero(~np.isfinite(self.values))
        if len(bad):
            raise FitError(
                f"the estimate of {self.base.leading_names[bad[0]]} is {self.values[bad[0]]}; "
                f"only finite values can be made physically possible"
            )
        if not np.isfinite(self.root).all():
            raise FitError("the estimate's covariance holds values that are not numbers; look at the fit it comes from")

    @classmethod
    def of_covariance(cls, base: BaseParameters, values: ArrayLike, covariance: ArrayLike) -> BaseEstimate:
        """Return that of an estimate and its covariance, as a fit gives them.

        Args:
            base: what the values stand for.
            values: shape (rank,).
            covariance: shape (rank, rank); an infinite variance where the data cannot tell a parameter.

        Raises:
            ShapeError: the shapes differ from these.
            FitError: the covariance of what is told is not positive definite, or a value is not a number.
        """
        values, covariance = np.array(values, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
        if values.shape != (base.rank,) or covariance.shape != (base.rank, base.rank):
            raise ShapeError(
                f"values of shape {values.shape} and a covariance of shape {covariance.shape} for {base.rank} base "
                f"parameters; needed are ({base.rank},) and ({base.rank}, {base.rank})"
            )
        finite = np.flatnonzero(~np.isinf(np.diag(covariance)))
        sigma = np.sqrt(np.maximum(np.diag(covariance)[finite], 0.0))
        bad = [base.leading_names[k] for k, each in zip(finite, sigma, strict=True) if not each > 0.0]
        if bad:
            raise FitError(f"the variance of {', '.join(bad)} is not positive; give that of noise, however small")
        correlation = covariance[np.ix_(finite, finite)] / np.outer(sigma, sigma)
        try:
            lower = np.linalg.cholesky(correlation)
        except np.linalg.LinAlgError as error:
            raise FitError(
                "the covariance of the estimate is not positive definite; more rows than parameters make it so, or "
                "give the triangle of the regressor's QR decomposition (BaseEstimate.of_qr)"
            ) from error
        root = np.zeros((len(finite), base.rank))
        root[:, finite] = np.linalg.solve(lower, np.diag(1.0 / sigma))
        return cls(base, np.where(np.isinf(np.diag(covariance)), 0.0, values), root)

    @classmethod
    def of_qr(cls, base: BaseParameters, triangle: ArrayLike, right: ArrayLike) -> BaseEstimate:
        """Return that of data compressed by QR: |regressor b - torque|² = |triangle b - right|² + a constant.

        Args:
            base: what the columns stand for.
            triangle: of rows of the base regressor, each divided by its torque's σ, as `StreamingQR.triangle`;
                shape (n, rank).
            right: shape (n,), of the torques divided likewise.

        Raises:
            ShapeError: the shapes differ from these.
            FitError: a value is not a number, or there are only zeros.
        """
        matrix, right = np.asarray(triangle, dtype=np.float64), np.asarray(right, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != base.rank or right.shape != matrix.shape[:1]:
            raise ShapeError(
                f"a triangle of shape {matrix.shape} with {right.shape} on the right; needed are (n, {base.rank}), (n,)"
            )
        scale = np.linalg.norm(matrix, axis=0)
        if not np.isfinite(matrix).all() or not np.isfinite(right).all() or not scale.any():
            raise FitError("the triangle of the data holds values that are not numbers, or nothing; look at its rows")
        matrix = np.where(scale > _ROUNDING * scale.max(), matrix, 0.0)  # such columns are rounding of what is zero
        scale[~matrix.any(axis=0)] = 1.0
        u, s, vt = np.linalg.svd(matrix / scale, full_matrices=False)
        kept = s > _UNSEEN * s[0]
        vt[np.abs(vt) < _ROUNDING] = 0.0  # so that what no row has is known to be untold
        values = vt[kept].T @ ((u[:, kept].T @ right) / s[kept]) / scale
        return cls(base, values, s[kept, None] * vt[kept] * scale)

    @property
    def n_told(self) -> int:
        """Number of directions of the base parameters that the data tell."""
        return len(self.root)

    def distance(self, base_parameters: ArrayLike) -> float:
        """Return the distance of other base parameters from the estimate [σ]: the root of their chi-square."""
        return float(np.linalg.norm(self.root @ (np.asarray(base_parameters, dtype=np.float64) - self.values)))

    @property
    def sigma(self) -> Array:
        """Standard deviation of each base parameter, infinite where it is not told, shape (rank,)."""
        scale = np.linalg.norm(self.root, axis=0)
        seen = scale > 0.0
        _, s, vt = np.linalg.svd(self.root[:, seen] / scale[seen], full_matrices=False)
        told = np.sum(vt**2, axis=0) > _WHOLE
        variance = np.full(len(scale), np.inf)
        variance[seen] = np.where(told, np.sum((vt.T / s) ** 2, axis=1) / scale[seen] ** 2, np.inf)
        return np.sqrt(variance)


_LIKELY, _POSSIBLE = 0.05, 0.001
"""Chance that noise alone puts an estimate so far from the truth, which is possible: above the first nothing speaks
against it, below the second it is not believed."""

_AT_EDGE = 1.5
"""A link is at the edge up to so many margins: the rest is what solvers leave."""


@dataclass(frozen=True, eq=False)
class PhysicalParameters:
    """Parameters of links and drives that a robot can have: each link a body of positive density, no negative friction.

    Attributes:
        estimate: what they were made of.
        standard_parameters: ten of each link in link order, zero of neglected ones [kg, kg·m, kg·m²],
            shape (10 * n_links,).
        drive_parameters: as of `drive_parameter_names` [SI], shape (n_drive_parameters,).
        compensation_parameters: as of `compensation_parameter_names` [SI], of either sign.
        further_parameters: what extends the base parameters, such as friction laws' [SI], none negative.
        smallest_eigenvalues: of each link's pseudo-inertia relative to its reference body's; nan of neglected links,
            shape (n_links,).
        margin: that they are at least.
        unchanged: whether the base parameters are the estimate's own, to rounding.
        method: "lmi" or "log_cholesky".
        prior: what chose among parameters that the data cannot tell apart.
        status: of the solver, in words.
        notes: what its user should know, such as links of whose inertia the robot's file says something impossible.
    """

    estimate: BaseEstimate
    standard_parameters: Array
    drive_parameters: Array
    compensation_parameters: Array
    further_parameters: Array
    smallest_eigenvalues: Array
    margin: float
    unchanged: bool
    method: str
    prior: str
    status: str
    notes: tuple[str, ...]

    @property
    def full_parameters(self) -> Array:
        """All of them, in the order of `model_columns`, shape (n_full,)."""
        return np.concatenate(
            [
                self.standard_parameters,
                self.drive_parameters,
                self.compensation_parameters,
                self.further_parameters,
            ]
        )

    @property
    def base_parameters(self) -> Array:
        """The base parameters they give, shape (rank,)."""
        return self.estimate.base.group(self.full_parameters)

    @property
    def moved(self) -> Array:
        """Distance of each base parameter from the estimate [its σ], 0 where that is not told, shape (rank,)."""
        return (self.base_parameters - self.estimate.values) / self.estimate.sigma

    @property
    def distance(self) -> float:
        """Distance of all of them together from the estimate [σ], with their correlation."""
        return self.estimate.distance(self.base_parameters)

    @property
    def chi_square(self) -> float:
        """The distance squared: at most that of the truth, which has chi-square with `estimate.n_told` freedoms."""
        return self.distance**2

    @property
    def chance(self) -> float:
        """Chance that noise alone puts an estimate at least so far from what is possible (at most this)."""
        return float(special.chdtrc(self.estimate.n_told, self.chi_square))

    @property
    def links_at_edge(self) -> tuple[str, ...]:
        """Names of the links that are just possible: thin as a sheet, a rod or a point in some direction."""
        links = (joint.link.name for joint in self.estimate.base.robot.joints)
        least = self.smallest_eigenvalues
        return tuple(name for name, value in zip(links, least, strict=True) if value <= _AT_EDGE * self.margin)

    @property
    def verdict(self) -> Verdict:
        """Verdict on whether the estimate can be that of a robot: "identified", "poor fit" or "refused"."""
        edge = f"; at the edge: {', '.join(self.links_at_edge)}" if self.links_at_edge else ""
        if self.unchanged:
            return Verdict("physical", "identified", f"the estimate is physically possible as it is{edge}")
        figures = (
            f"the nearest physically possible parameters are {self.distance:.3g} σ away "
            f"(chi-square of {self.estimate.n_told}, chance {self.chance:.2g}){edge}"
        )
        word = "identified" if self.chance >= _LIKELY else "poor fit" if self.chance >= _POSSIBLE else "refused"
        return Verdict("physical", word, figures)

    def require(self) -> PhysicalParameters:
        """These parameters, where the estimate can be that of a robot.

        Raises:
            FitError: the verdict is "refused"; names the links that are moved most.
        """
        if not self.verdict.is_refused:
            return self
        worst = np.argsort(-np.abs(self.moved))[:3]
        names = ", ".join(f"{self.estimate.base.leading_names[k]} by {self.moved[k]:+.1f} σ" for k in worst)
        raise FitError(
            f"robot {self.estimate.base.robot.name!r}: {self.verdict.reason}; moved most: {names}. "
            f"Look for a wrong sign or unit of a torque, a joint exchanged with another, or friction the model lacks"
        )
