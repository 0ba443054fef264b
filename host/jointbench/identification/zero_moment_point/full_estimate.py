"""All that the forces under a biped's foot tell of its links' standard parameters, and its file's word on the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import StanceError
from jointbench.identification.estimators.priors import ParameterPrior, RelativeSigma, link_prior, posterior
from jointbench.identification.estimators.problem import JoinedRows
from jointbench.identification.judgement.verdict import Verdict, judge_parameters
from jointbench.identification.least_squares.triangles import compress
from jointbench.identification.physical import BaseEstimate, PhysicalParameters, physical_parameters
from jointbench.identification.rows import RowsInMemory
from jointbench.identification.zero_moment_point.error_bars import starting_rows
from jointbench.identification.zero_moment_point.full_bodies import FullBodies, full_bodies
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.identification.zero_moment_point.theory import mean_distance, theoretical_point
from jointbench.robot import Robot

PRIOR = RelativeSigma(mass=0.5, first_moment=0.5, inertia=0.5, drive=1.0)
"""The robot's file may be wrong by half of each mass, of where it is, and of how it turns."""

_WEIGHING = 1e-4
"""How exact the total mass is, as a share of it: scales for 30 kg tell some grams."""


@dataclass(frozen=True, eq=False)
class FullStanceEstimate:
    """Base parameters of a biped's links from the forces under the foot it stands on.

    Attributes:
        robot: whose they are.
        bodies: which bodies have parameters, and what of these the forces can tell.
        values: of the base parameters [SI], shape (rank,).
        covariance: of them, noise, sensors and prior together, shape (rank, rank).
        prior_sigma: standard deviation of each before the data spoke, shape (rank,).
        nuisance_names: of what lies between theory and measurement.
        nuisance, nuisance_sigma: estimated beside the parameters, shape (k,).
        total_mass: as weighed [kg].
        n_samples: rows of the stance.
        lags: for how many rows the residuals count as correlated.
        left_is_right: whether the swing leg was taken for the mirror image of the support leg.
    """

    robot: Robot
    bodies: FullBodies
    values: Array
    covariance: Array
    prior_sigma: Array
    nuisance_names: tuple[str, ...]
    nuisance: Array
    nuisance_sigma: Array
    total_mass: float
    n_samples: int
    lags: int
    left_is_right: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Of the base parameters, each by its leading one, such as "r_thigh.mcx"."""
        return self.bodies.names

    @property
    def sigma(self) -> Array:
        """Standard deviation of each parameter, shape (rank,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def told(self) -> Array:
        """Share of what was thought beforehand of each parameter's variance that the data took away, shape (rank,)."""
        return 1.0 - np.diag(self.covariance) / self.prior_sigma**2

    @cached_property
    def parameter_verdicts(self) -> tuple[Verdict, ...]:
        """The word on each parameter; "refused" where the data say less of it than the robot's file."""
        words = judge_parameters(self.names, self.values, self.sigma)
        return tuple(
            verdict if told > 0.5 else Verdict(verdict.name, "refused", _thought(sigma, told))
            for verdict, sigma, told in zip(words, self.sigma, self.told, strict=True)
        )

    @cached_property
    def physical(self) -> PhysicalParameters:
        """The possible bodies that are nearest to the estimate, and among those that are as near, to the robot's file.

        Raises:
            PhysicalSolverFailed: the search for them ends without an answer.
        """
        return physical_parameters(BaseEstimate.of_covariance(self.bodies.base, self.values, self.covariance))

    @property
    def verdict(self) -> Verdict:
        """Whether links can have these parameters: "identified", "weak" or "refused"."""
        return self.physical.verdict

    @cached_property
    def standard_parameters(self) -> Array:
        """Of the possible bodies: ten of the base's link, then of each link, shape (10 * (1 + n_links),)."""
        return self.bodies.spread @ self.physical.standard_parameters

    def predict(self, stance: Stance) -> Array:
        """Theoretical zero-moment points of a stance [m], shape (n, 2)."""
        return theoretical_point(stance, self.standard_parameters)

    def distance(self, stance: Stance) -> float:
        """Mean distance between theoretical and measured zero-moment point [m]."""
        return mean_distance(stance, self.standard_parameters)

    def deviations(self, standard_parameters: Array) -> Array:
        """(values - truth) / sigma for a known pi, shape (rank,); of a robot that is mirrored where left is right."""
        return (self.values - self.bodies.group(standard_parameters)) / self.sigma


def fit_stance_full(
    stance: Stance, total_mass: float, *, left_is_right: bool = True, prior: RelativeSigma = PRIOR
) -> FullStanceEstimate:
    """Estimate all standard parameters of a biped's links that the forces under its foot tell.

    min |F z - C_xy pi|² and |F - C_z pi|², each by its own noise: the moments about the middle of the sole and the
    vertical force are linear in pi, where their quotient is not, and tell no less. Beside pi stand the sensors' gains
    and zeros and the cables' pulls, with what data sheets say, pi itself with the robot's file, and the weighed mass:
    what the motion does not show stays as thought, and its error bar with it.

    Args:
        stance: rows of one run or of several.
        total_mass: as weighed [kg].
        left_is_right: whether the swing leg is the mirror image of the support leg.
        prior: how far the robot's file may be wrong, one σ; its drives do not matter.

    Raises:
        NotMirrored: left is to be right, and the geometry is not.
        StanceError: there are fewer samples than parameters.
        UnclearRank: the robot's geometry is nearly degenerate.

    Source: base parameters from the wrench on the base: Ayusawa, Venture & Nakamura, IJRR 33(3), 2014; the prior as in
    Gelman et al., Bayesian Data Analysis, 3rd ed., 2013, ch. 14.8.
    """
    bodies = full_bodies(stance.robot, left_is_right=left_is_right)
    rank, k = bodies.base.rank, len(stance.nuisance_names)
    if stance.n_samples < rank + k:
        raise StanceError(
            f"{stance.n_samples} samples are too few for {rank} parameters of the links and {k} of the sensors; "
            f"record longer, or estimate fewer with fit_stance"
        )
    thought = link_prior(bodies.base.robot, prior)
    known = _known(bodies, thought, k, total_mass)
    rows = [_rows(stance, bodies)]
    found = posterior(rows, compress(rows), known).estimate
    sigma = np.sqrt(np.diag(found.covariance))
    return FullStanceEstimate(
        robot=stance.robot,
        bodies=bodies,
        values=found.parameters[:rank],
        covariance=found.covariance[:rank, :rank],
        prior_sigma=_prior_sigma(bodies, thought),
        nuisance_names=stance.nuisance_names,
        nuisance=stance.data_sheet * found.parameters[rank:],
        nuisance_sigma=stance.data_sheet * sigma[rank:],
        total_mass=total_mass,
        n_samples=stance.n_samples,
        lags=found.lags,
        left_is_right=left_is_right,
    )


def _rows(stance: Stance, bodies: FullBodies) -> JoinedRows:
    """Moments about the middle of the sole and vertical force as if they were three joints' torques.

    About that point the noises of four equal corners in the three are independent. What lies between theory and
    measurement counts in σ of its data sheet, so that what is known exactly stays out.
    """
    middle = stance.robot.foot(stance.foot).origin[:2]
    arm, force = stance.measured - middle, stance.vertical_force
    columns = bodies.project(stance.columns)
    columns[:, :2] -= middle[:, None] * columns[:, 2:]
    of_force = stance.force_nuisance_columns[:, None]
    of_moments = force[:, None, None] * stance.nuisance_columns + arm[:, :, None] * of_force
    unknown = stance.data_sheet * np.concatenate([of_moments, of_force], axis=1)
    regressor = np.concatenate([columns, unknown], axis=2)
    values = np.column_stack([arm * force[:, None], force])
    used = np.ones(values.shape, dtype=np.bool_)
    starts = np.flatnonzero(starting_rows(stance.time, stance.sample_period))
    pieces = np.split(np.arange(stance.n_samples), starts[1:])
    return JoinedRows(tuple(RowsInMemory(regressor[each], values[each], used[each]) for each in pieces))


def _known(bodies: FullBodies, thought: ParameterPrior, k: int, total_mass: float) -> Array:
    """What is known beside the data, (regressor | value) in its own σ."""
    rank = bodies.base.rank
    links = thought.rows(bodies.base)
    rows = np.zeros((len(links) + k + 1, rank + k + 1))
    rows[: len(links), :rank], rows[: len(links), -1] = links[:, :-1], links[:, -1]
    rows[len(links) : -1, rank:-1] = np.eye(k)
    rows[-1, :rank], rows[-1, -1] = bodies.mass_row / (_WEIGHING * total_mass), 1.0 / _WEIGHING
    return rows


def _prior_sigma(bodies: FullBodies, thought: ParameterPrior) -> Array:
    known = np.where(np.isfinite(thought.sigma), thought.sigma, 0.0)
    return np.linalg.norm(bodies.base.grouping * known, axis=1)


def _thought(sigma: float, told: float) -> str:
    return (
        f"this motion takes only {max(told, 0.0):.0%} off the variance of what the robot's file says, σ {sigma:.2g} is "
        f"left; plan motion that shows it"
    )
