"""Total least squares: for a regressor that is itself in error, by an amount that is known or assumed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from jointbench.errors import FitError
from jointbench.identification.estimators.corrected_fit import corrected_least_squares, scaled_total_least_squares
from jointbench.identification.estimators.position_noise import position_noise, regressor_errors
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.estimators.settling import largest_change
from jointbench.identification.least_squares import Estimate, least_squares
from jointbench.identification.least_squares.triangles import compress

ERRORS = ("positions", "columns")


@dataclass(frozen=True)
class TotalLeastSquares:
    """For noisy positions without a plan or repeats: least squares that know how large the regressor's errors are.

    Errors E of the regressor X pull least squares to one side, as XᵀX holds EᵀE in excess. Of errors with the products
    C = λ C₀, (XᵀX - λ C) pi = Xᵀ tau is right. Columns without errors are taken as they are (mixed LS-TLS).

    Attributes:
        errors: what is assumed of them. "positions": white noise of the encoders, as large as the fourth differences of
            the recorded positions say; what it does to each column follows from the model; the torque's own errors
            may have any size. "columns": each column but those of Coulomb friction and offsets is in error by the same
            share of its own length as the torque, independently of the others: the classical total least squares with
            columns scaled to the same length.
        noise: deviation of the noise of positions [rad or m], for all joints, where it is known better.
        seed: of the noise by which its effect is found.

    Raises:
        FitError: an option that is not one of these.

    Source: Van Huffel & Vandewalle, The Total Least Squares Problem, 1991, sec. 3.6 (mixed) and ch. 10 (errors of
    known covariance); Golub & Van Loan, SIAM J. Numerical Analysis 17(6), 1980; with the size of errors known Fuller,
    Measurement Error Models, 1987, sec. 2.2.
    """

    errors: str = "positions"
    noise: float | None = None
    seed: int = 0
    name: ClassVar[str] = "tls"

    def __post_init__(self) -> None:
        """Refuse options that nobody can mean."""
        if self.errors not in ERRORS:
            raise FitError(f"tls: errors = {self.errors!r} must be one of {', '.join(map(repr, ERRORS))}")
        if self.noise is not None and not 0.0 <= self.noise < np.inf:
            raise FitError(f"tls: noise = {self.noise:g} must be a number from 0, in rad or m, or None to be measured")
        if self.seed < 0:
            raise FitError(f"tls: seed = {self.seed} must be 0 or more")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate a problem's parameters.

        Raises:
            FitError: the regressor is no larger than its errors in some direction.
        """
        start = least_squares(problem.parts)
        triangles = compress(problem.parts)
        if self.errors == "columns":
            exact = np.array([name.endswith((".coulomb", ".offset")) for name in problem.base.leading_names])
            found = scaled_total_least_squares(problem.parts, triangles, exact)
            size = float(np.sqrt(found.share))
            said = f"errors of torque and of all inexact columns {100.0 * size:.2g} % of their length"
            assumed = "assumed: each inexact column is in error by the same share of its length as the torque"
            figures: dict[str, object] = {"errors": "columns", "error_share": size}
        else:
            joints = problem.robot.n_joints
            deviations = [
                np.full(joints, self.noise) if self.noise is not None else position_noise(run, observed.settings)
                for run, observed in zip(problem.runs, problem.observations, strict=True)
            ]
            products = regressor_errors(problem, deviations, self.seed)
            found = corrected_least_squares(problem.parts, triangles, products)
            noise = np.sqrt(np.mean(np.square(deviations), axis=0))
            each = ", ".join(f"{value:.2g}" for value in noise)
            said = f"noise of positions {each} rad or m, which is {100.0 * found.share:.2g} % of the squares of one "
            said += "combination of the regressor's columns, and less of all others"
            assumed = "assumed: noise of positions is white, as large as told"
            figures = {"errors": "positions", "position_noise": noise.tolist(), "largest_share": found.share}
        moved, at = largest_change(found.estimate, start.parameters)
        notes = (said, assumed, f"largest difference from wls {moved:.1f} σ, {problem.base.leading_names[at]}")
        return replace(found.estimate, notes=notes, figures=figures | {"largest_difference_from_wls_sigma": moved})
