"""Standard parameters that a robot can have, and how far they are from the estimate they were made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from jointbench.arrays import Array
from jointbench.errors import ImpossibleParameters
from jointbench.identification.judgement.verdict import Verdict
from jointbench.identification.physical.base_estimate import BaseEstimate

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
        return np.concatenate([self.standard_parameters, self.drive_parameters, self.compensation_parameters])

    @property
    def base_parameters(self) -> Array:
        """The base parameters they give, shape (rank,)."""
        return self.estimate.base.group(self.full_parameters)

    @property
    def moved(self) -> Array:
        """How far each base parameter is from the estimate [its σ], 0 where that is not told, shape (rank,)."""
        return (self.base_parameters - self.estimate.values) / self.estimate.sigma

    @property
    def distance(self) -> float:
        """How far all of them together are from the estimate [σ], with their correlation."""
        return self.estimate.distance(self.base_parameters)

    @property
    def chi_square(self) -> float:
        """The distance squared: at most that of the truth, which has chi-square with `estimate.n_told` freedoms."""
        return self.distance**2

    @property
    def chance(self) -> float:
        """Chance that noise alone puts an estimate at least so far from what is possible (at most this)."""
        return float(stats.chi2.sf(self.chi_square, self.estimate.n_told))

    @property
    def links_at_edge(self) -> tuple[str, ...]:
        """Names of the links that are just possible: thin as a sheet, a rod or a point in some direction."""
        links = (joint.link.name for joint in self.estimate.base.robot.joints)
        least = self.smallest_eigenvalues
        return tuple(name for name, each in zip(links, least, strict=True) if each <= _AT_EDGE * self.margin)

    @property
    def verdict(self) -> Verdict:
        """Whether the estimate can be that of a robot: "identified", "weak" or "refused"."""
        edge = f"; at the edge: {', '.join(self.links_at_edge)}" if self.links_at_edge else ""
        if self.unchanged:
            return Verdict("physical", "identified", f"the estimate is physically possible as it is{edge}")
        figures = (
            f"the nearest physically possible parameters are {self.distance:.3g} σ away "
            f"(chi-square of {self.estimate.n_told}, chance {self.chance:.2g}){edge}"
        )
        word = "identified" if self.chance >= _LIKELY else "weak" if self.chance >= _POSSIBLE else "refused"
        return Verdict("physical", word, figures)

    def require(self) -> PhysicalParameters:
        """These parameters, where the estimate can be that of a robot.

        Raises:
            ImpossibleParameters: the verdict is "refused"; names the links that are moved most.
        """
        if self.verdict.word != "refused":
            return self
        worst = np.argsort(-np.abs(self.moved))[:3]
        names = ", ".join(f"{self.estimate.base.leading_names[k]} by {self.moved[k]:+.1f} σ" for k in worst)
        raise ImpossibleParameters(
            f"robot {self.estimate.base.robot.name!r}: {self.verdict.reason}; moved most: {names}. "
            f"Look for a wrong sign or unit of a torque, a joint exchanged with another, or friction the model lacks"
        )
