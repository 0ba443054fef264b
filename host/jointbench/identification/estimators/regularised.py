"""Estimates drawn towards something: ridge towards zero, Bayes towards the robot file's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.blocked_least_squares import sizes_alone
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.least_squares import TOLD_BY_PRIOR, Estimate, joint_weights, judged
from jointbench.identification.physical.pseudo_inertia import reference_bodies
from jointbench.identification.rows import Block, ChangedRows, Rows
from jointbench.identification.triangles import Solution, Triangles, compress, solve
from jointbench.model import PARAMETER_NAMES, BaseParameters, Robot

_STRENGTHS = np.concatenate([[0.0], 10.0 ** np.arange(-10.0, 1.5, 0.5)])
"""Tried: none, and half decades from what changes nothing up to parameters of a tenth."""


@dataclass(frozen=True)
class Ridge:
    """argmin Σ (torque - regressor pi)² / sigma_j² + strength n Σ_i (s_i pi_i)², s_i the rms of a column in sigmas.

    Columns are standardized by that: the strength is a share of what n rows say of a parameter. It is chosen by fitting
    to 70 % of the recording and predicting the other 30 %, in blocks of time. What the motion tells well is hardly
    drawn, what it does not tell apart is shared out evenly: good to predict motion alike, but biased. The error bars
    are those of the noise alone, without that bias.

    Attributes:
        strength: None: chosen; or a number from 0.

    Source: Hoerl & Kennard, Technometrics 12(1), 1970; of robots Lu et al., Chinese J. Mechanical Engineering 37, 2024.
    """

    strength: float | None = None

    name: ClassVar[str] = "ridge"

    def __post_init__(self) -> None:
        """Refuse strengths that are none."""
        if self.strength is not None and not (np.isfinite(self.strength) and self.strength >= 0.0):
            raise FitError(f"strength = {self.strength!r} must be a number from 0, or None to have it chosen")

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        triangles = compress(problem.parts)
        weights = joint_weights(triangles)
        strength, note, figures = self.strength, "", dict[str, float]()
        if strength is None:
            strength, errors = _choose(problem.parts)
            best, plain = errors[_STRENGTHS.tolist().index(strength)], errors[0]
            note = (
                f"strength {strength:.3g} of the ridge, chosen by three tenths of the time held out: their torque's "
                f"error is {best:.3%} of the torque, of plain least squares {plain:.3%}; "
            )
            figures = {"held_out_relative_error": best, "held_out_relative_error_without": plain}
        solution = solve(triangles, weights, _pull(triangles, weights, strength))
        untold = solve(triangles, weights).untold
        estimate = judged(problem.parts, triangles, weights, solution)
        covariance = estimate.covariance.copy()
        covariance[untold, :] = covariance[:, untold] = 0.0
        covariance[untold, untold] = np.inf
        note += "the error bars do not know of the bias towards zero"
        return replace(estimate, covariance=covariance, notes=(note,), figures={"strength": strength, **figures})


def _pull(triangles: Triangles, weights: Array, strength: float) -> Array:
    """Rows that draw the standardized parameters to zero, shape (p, p + 1)."""
    lengths = np.linalg.norm(triangles.stacked(weights)[:, :-1], axis=0)
    return np.sqrt(strength) * np.hstack([np.diag(lengths), np.zeros((len(lengths), 1))])


def _choose(parts: Sequence[Rows]) -> tuple[float, list[float]]:
    """The best strength, and each one's relative error of the weighted torque held out."""
    split = split_by_time(parts)
    if not split.held_out.counts.any() or split.fitted.counts.sum() <= split.fitted.matrices.shape[2]:
        raise FitError(
            f"{split.fitted.counts.sum()} rows to fit and {split.held_out.counts.sum()} held out are too few to choose "
            f"the ridge's strength; record longer, or give it, as 1e-6"
        )
    weights = joint_weights(split.fitted)
    torque = float(np.sum(split.held_out.stacked(weights)[:, -1] ** 2))
    errors: list[float] = []
    for strength in _STRENGTHS:
        solution = solve(split.fitted, weights, _pull(split.fitted, weights, float(strength)))
        squares = float(weights**2 @ split.held_out.squares(solution.parameters))
        errors.append(float(np.sqrt(squares / torque)) if torque > 0.0 else 0.0)
    return float(_STRENGTHS[int(np.argmin(errors))]), errors


_BLOCKS = 10
_HELD = (2, 5, 8)
"""Of ten equal blocks of time three are held out, spread over the recording: 70 % to fit, 30 % to judge."""


@dataclass(frozen=True, eq=False)
class Split:
    """The recordings' rows in two parts: rows to fit, and rows that are held out."""

    fitted: Triangles
    held_out: Triangles


def split_by_time(parts: Sequence[Rows]) -> Split:
    """Cut each recording's time into ten blocks and hold three of them out."""
    ends = [_ends(part) for part in parts]
    fitted, held = (
        compress([_Blocks(part, start, stop, which) for part, (start, stop) in zip(parts, ends, strict=True)])
        for which in (False, True)
    )
    return Split(fitted, held)


def _ends(rows: Rows) -> tuple[int, int]:
    places = [(block.start, block.stop) for block in rows.blocks()]
    return min((start for start, _ in places), default=0), max((stop for _, stop in places), default=1)


@dataclass(frozen=True, eq=False)
class _Blocks(ChangedRows):
    """The rows between two places that are held out, or the others."""

    start: int
    stop: int
    held: bool

    def blocks(self) -> Iterator[Block]:
        for block in self.rows.blocks():
            number = _BLOCKS * (np.arange(block.start, block.stop) - self.start) // max(1, self.stop - self.start)
            chosen = np.isin(number, _HELD) == self.held
            yield replace(block, used=block.used & chosen[:, None])


def leave_one_out(triangles: Triangles, part: int) -> Split:
    """Hold one recording out."""
    held = np.arange(len(triangles.counts)) // triangles.n_joints == part
    return Split(_of_groups(triangles, ~held), _of_groups(triangles, held))


def _of_groups(triangles: Triangles, groups: NDArray[np.bool_]) -> Triangles:
    """The triangles of some groups, the others empty."""
    return replace(
        triangles,
        matrices=np.where(groups[:, None, None], triangles.matrices, 0.0),
        counts=np.where(groups, triangles.counts, 0),
    )


@dataclass(frozen=True, eq=False)
class Posterior:
    """Data and prior weighed against each other.

    Attributes:
        estimate: of the parameters; its error bars hold the prior's error beside the noise's.
        solution: that it is of.
        weights: of the rows' groups as solved, shape (n_groups,).
        inflation: c, how many times the residuals' correlation raises the variances of least squares.
    """

    estimate: Estimate
    solution: Solution
    weights: Array
    inflation: float


def posterior(parts: Sequence[Rows], triangles: Triangles, known: Array) -> Posterior:
    """Solve min Σ (torque - regressor pi)² / (c sigma_j²) + |known (pi, -1)|².

    Args:
        parts: rows of one recording each.
        triangles: of them.
        known: rows of what is thought beside the data, (regressor | value) in its own σ, shape (n, p + 1).
    """
    weights = joint_weights(triangles, known)
    first = judged(parts, triangles, weights, solve(triangles, weights, known))
    weights = weights / max(1.0, first.inflation) ** 0.5
    solution = solve(triangles, weights, known)
    estimate = judged(parts, triangles, weights, solution, prior=known[:, :-1])
    return Posterior(estimate, solution, weights, first.inflation)


@dataclass(frozen=True)
class Bayes:
    """Posterior of a Gaussian prior: min Σ (torque - regressor pi)² / (c sigma_j²) + |(pi - thought) / sigma_prior|².

    The prior is of the full parameters, and so is that of base parameters the one of the sums they are. c is how many
    times the residuals' correlation raises the variances of least squares: rows count for what they tell. With prior σ
    so large that it says nothing this is "wls", error bars included; these hold the prior's error beside the noise's.
    The parameters need not be physically possible: `Model.physical` makes them so, and the estimator "physical" with a
    weight has a prior that keeps them so.

    Attributes:
        mass, first_moment, inertia, drive: prior σ of each kind, relative, as in `RelativeSigma`. 1: the file may be
            wrong by as much as itself, which leaves all but what the motion does not tell to the data.

    Source: Gelman et al., Bayesian Data Analysis, 3rd ed., 2013, ch. 14.8.
    """

    mass: float = 1.0
    first_moment: float = 1.0
    inertia: float = 1.0
    drive: float = 1.0

    name: ClassVar[str] = "bayes"

    def __post_init__(self) -> None:
        """Refuse what is no σ."""
        self._relative()

    def __call__(self, problem: Problem) -> Estimate:
        """Estimate the parameters."""
        triangles = compress(problem.parts)
        prior = parameter_prior(problem.base, self._relative(), triangles)
        fitted = posterior(problem.parts, triangles, prior.rows(problem.base))
        estimate = fitted.estimate
        note = (
            f"prior of the robot's file, relative σ of mass {self.mass:g}, first moments {self.first_moment:g}, "
            f"inertia {self.inertia:g}, drives {self.drive:g}"
        )
        if prior.guessed:
            note += f"; the file says nothing of {', '.join(prior.guessed)}, and balls of their size stand for them"
        by_prior = list(prior.told(problem.base, estimate.covariance))
        return replace(estimate, notes=(note,), figures={"inflation": fitted.inflation, TOLD_BY_PRIOR: by_prior})

    def _relative(self) -> RelativeSigma:
        return RelativeSigma(self.mass, self.first_moment, self.inertia, self.drive)


_WIDTH = len(PARAMETER_NAMES)
_SMALL = 1e-12

_TOLD_BY_PRIOR = 0.5
"""Share of its prior variance above which a parameter is what was thought of it rather than what was measured."""


@dataclass(frozen=True)
class RelativeSigma:
    """Standard deviations of the prior, relative to the size of each parameter.

    Attributes:
        mass: of a link, to its mass.
        first_moment: to its mass times its size, which is the root mean square distance of its mass from its frame.
        inertia: to its mass times its size squared.
        drive: to the drive's own value where the robot's file gives one; else, as of compensations, to what alone would
            make up the joint's torque, around zero.
    """

    mass: float
    first_moment: float
    inertia: float
    drive: float

    def __post_init__(self) -> None:
        """Refuse what is no σ; infinite is one."""
        for name, value in vars(self).items():
            if not value > 0.0:
                raise FitError(f"{name} = {value!r} must be above 0, as a share of the parameter's size (inf: unknown)")


@dataclass(frozen=True, eq=False)
class ParameterPrior:
    """Full parameters and their σ, independent of each other.

    Attributes:
        values: shape (n_full,).
        sigma: infinite where nothing is thought, shape (n_full,).
        guessed: names of the links that the robot's file says nothing of; a ball of the link's size stands for each.
    """

    values: Array
    sigma: Array
    guessed: tuple[str, ...]

    def rows(self, base: BaseParameters) -> Array:
        """Rows [R | R b] of unit σ for base parameters, so that |R (base - b)|² is their chi-square.

        K pi has the covariance K S Kᵀ. What an unknown parameter has a share in is unknown in that direction: R holds
        only the directions in which it has none.
        """
        known = np.isfinite(self.sigma)
        kept = _complement(base.grouping[:, ~known])
        spread = kept.T @ base.grouping[:, known] * self.sigma[known]
        size = np.linalg.norm(spread, axis=1)
        upper = np.asarray(np.linalg.qr((spread / size[:, None]).T, mode="r"))
        root = np.linalg.solve(upper.T, (kept / size).T)
        return np.column_stack([root, root @ (base.grouping[:, known] @ self.values[known])])

    def told(self, base: BaseParameters, covariance: Array) -> tuple[str, ...]:
        """Base parameters that the prior tells more than the data: less than half their variance is gone."""
        with np.errstate(invalid="ignore"):
            before = np.where(base.grouping != 0.0, base.grouping**2 * self.sigma**2, 0.0).sum(axis=1)
        after = np.diag(covariance)
        more = np.isfinite(before) & (after > _TOLD_BY_PRIOR * before)
        return tuple(name for name, which in zip(base.leading_names, more, strict=True) if which)


def _complement(columns: Array) -> Array:
    """Orthonormal directions in which none of the columns has a share, shape (rank, n)."""
    present = columns[:, np.any(columns != 0.0, axis=0)]
    if not present.shape[1]:
        return np.eye(len(columns))
    u, s, _ = np.linalg.svd(present)
    return np.asarray(u[:, int(np.sum(s > _SMALL * s[0])) :], dtype=np.float64)


def parameter_prior(base: BaseParameters, relative: RelativeSigma, triangles: Triangles) -> ParameterPrior:
    """The prior of a robot's links, drives and compensations.

    Args:
        base: of the robot.
        relative: σ by kind.
        triangles: of the rows, from which the size of friction is taken where the file does not give it.
    """
    robot = base.robot
    links = link_prior(robot, relative)
    values, sigma = np.zeros(base.n_full), np.full(base.n_full, np.inf)
    values[: len(links.values)], sigma[: len(links.sigma)] = links.values, links.sigma
    first = _WIDTH * robot.n_links
    known = base.known_beside_links
    values[first:] = np.nan_to_num(known)
    sizes = np.where(np.nan_to_num(known) != 0.0, np.abs(np.nan_to_num(known)), drive_sizes(base, triangles))
    sigma[first:] = relative.drive * np.where(np.isfinite(sizes), sizes, 1.0)
    sigma[first:][~np.isfinite(sizes)] = np.inf
    return ParameterPrior(values, sigma, links.guessed)


def link_prior(robot: Robot, relative: RelativeSigma) -> ParameterPrior:
    """The prior of the links alone, ten parameters each; infinite σ of neglected ones."""
    bodies = reference_bodies(robot)
    values, sigma = np.zeros(_WIDTH * robot.n_links), np.full(_WIDTH * robot.n_links, np.inf)
    for link, reference, matrix in zip(bodies.links, bodies.parameters, bodies.matrices, strict=True):
        part = slice(_WIDTH * link, _WIDTH * (link + 1))
        given = robot.joints[link].link.standard_parameters
        values[part] = reference if given is None else given
        mass, size = matrix[3, 3], np.sqrt(np.trace(matrix[:3, :3]) / matrix[3, 3])
        sigma[part] = mass * np.concatenate(
            [[relative.mass], [relative.first_moment * size] * 3, [relative.inertia * size**2] * 6]
        )
    guessed = tuple(
        robot.joints[link].link.name for link, nominal in zip(bodies.links, bodies.nominal, strict=True) if not nominal
    )
    return ParameterPrior(values, sigma, guessed)


def drive_sizes(base: BaseParameters, triangles: Triangles) -> Array:
    """Return the size of each parameter behind the links' that alone makes up the torque where it acts, else infinite.

    Root mean square torque over root mean square column, shape (n_full - 10 * n_links,).
    """
    columns = np.linalg.norm(triangles.matrices[:, :, :-1], axis=1)
    torques = np.linalg.norm(triangles.matrices[:, :, -1], axis=1)
    return sizes_alone(base, torques, columns)
