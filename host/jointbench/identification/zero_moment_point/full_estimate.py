"""Estimates of all parameters of a biped's links, mirror images taken together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError, RobotError
from jointbench.identification.estimators.estimator import JoinedRows
from jointbench.identification.estimators.regularised import ParameterPrior, RelativeSigma, link_prior, posterior
from jointbench.identification.judgement import Verdict, judge_parameters
from jointbench.identification.physical import BaseEstimate, PhysicalParameters, physical_parameters
from jointbench.identification.physical.pseudo_inertia import pseudo_inertia, standard_parameters
from jointbench.identification.rows import RowsInMemory
from jointbench.identification.triangles import compress
from jointbench.identification.zero_moment_point.reduced_parameters import mean_distance, theoretical_point
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.identification.zero_moment_point.trust_region import starting_rows
from jointbench.model import (
    PARAMETER_NAMES,
    BaseParameters,
    FreeBaseMotion,
    Link,
    Robot,
    floating_regressor,
    forward_kinematics,
)
from jointbench.model.base_parameters import grouping_matrix, independent_columns
from jointbench.model.variants import BASE_JOINTS, on_free_base

_SAME_LINE = 1e-6
"""How far a joint's axis may be from the image of the other leg's [m, and as a sine]: robot files are exact."""


class MirrorImage(NamedTuple):
    """A link whose body is the mirror image of another's.

    Attributes:
        link, source: indices of both among the base's link and then each joint's.
        turn: its ten standard parameters are turn @ those of the source, shape (10, 10).
    """

    link: int
    source: int
    turn: Array


def mirror_images(robot: Robot) -> tuple[MirrorImage, ...]:
    """Links of the swing leg as mirror images of the support leg's: P = M P_source Mᵀ of pseudo-inertias.

    From foot to foot the k-th link mirrors the k-th last, and the one in the middle none. In the posture where all
    joints are at zero the plane lies half way between that link's two joints, across the line from one to the other.

    Args:
        robot: its base is the foot it stands on, its other foot the end of its only chain of links.

    Raises:
        RobotError: there is no such chain, or a joint's axis has no mirror image; names it.
    """
    if robot.n_links % 2 or [joint.parent for joint in robot.joints] != list(range(-1, robot.n_links - 1)):
        raise RobotError(
            f"robot {robot.name!r} is not one chain from foot to foot with a link in the middle: its legs cannot be "
            f"compared; take left_is_right=False"
        )
    places = _places(robot)
    middle = robot.n_links // 2
    axis = places[middle, :3, :3] @ robot.joints[middle - 1].axis
    here, there = places[middle : middle + 2, :3, 3]
    across = there - here - axis * (axis @ (there - here))
    distance = float(np.linalg.norm(across))
    if distance < _SAME_LINE:
        names = [joint.name for joint in robot.joints[middle - 1 : middle + 1]]
        raise RobotError(
            f"robot {robot.name!r}: joints {names[0]!r} and {names[1]!r} on its middle link are on one line, which "
            f"tells no plane between its legs; take left_is_right=False"
        )
    normal = across / distance
    mirror = np.eye(4)
    mirror[:3, :3] -= 2.0 * np.outer(normal, normal)
    mirror[:3, 3] = normal * (normal @ (2.0 * here + across))
    _check(robot, places, mirror)
    images: list[MirrorImage] = []
    for source in range(len(places) // 2):
        link = len(places) - 1 - source
        moved = np.linalg.inv(places[link]) @ mirror @ places[source]
        turn = standard_parameters(moved @ pseudo_inertia(np.eye(10)) @ moved.T).T
        images.append(MirrorImage(link, source, turn))
    return tuple(images)


def _places(robot: Robot) -> Array:
    """Frames of the base's link and of each joint's where all joints are at zero, shape (1 + n_links, 4, 4)."""
    rotations, origins = forward_kinematics(robot, np.zeros((1, robot.n_joints)))
    places = np.tile(np.eye(4), (1 + robot.n_links, 1, 1))
    places[1:, :3, :3], places[1:, :3, 3] = rotations[0], origins[0]
    return places


def _check(robot: Robot, places: Array, mirror: Array) -> None:
    """Refuse legs whose joints are not on mirrored axes."""
    axes = np.array([place[:3, :3] @ joint.axis for place, joint in zip(places[1:], robot.joints, strict=True)])
    for first in reversed(range(robot.n_links // 2)):  # outwards, as a wrong joint moves those beyond it
        last = robot.n_links - 1 - first
        axis = mirror[:3, :3] @ axes[first]
        away = mirror[:3, :3] @ places[1 + first, :3, 3] + mirror[:3, 3] - places[1 + last, :3, 3]
        off = max(np.linalg.norm(np.cross(axis, axes[last])), np.linalg.norm(np.cross(axis, away)))
        if off > _SAME_LINE:
            names = robot.joints[first].name, robot.joints[last].name
            raise RobotError(
                f"robot {robot.name!r}: the axis of {names[1]!r} is not the mirror image of that of {names[0]!r}, off "
                f"by {off:.2g} (m, or as a sine); correct the robot's file, or take left_is_right=False"
            )


_WIDTH = len(PARAMETER_NAMES)
_BEFORE = BASE_JOINTS - 1
"""Links between the ground and the base, which are neglected."""

_SAMPLES = 400
"""Random postures, three rows each: some ten rows a column, as `random_columns` has."""


@dataclass(frozen=True, eq=False)
class FullBodies:
    """The bodies with parameters of their own, and how those of all links follow from theirs.

    Attributes:
        base: the parameters that vertical force and zero-moment point tell of a robot whose support foot rests. Its
            robot is `on_free_base` with the links that are images of others neglected, its full parameters ten of each
            link of that.
        spread: T of pi = T @ full parameters, shape (10 * (1 + n_links), base.n_full).
    """

    base: BaseParameters
    spread: Array

    @cached_property
    def mass_row(self) -> Array:
        """Row that gives the whole robot's mass, row @ base parameters, shape (rank,)."""
        # What is told of all motions weighs each group by what its leading parameter does.
        return self.spread[::_WIDTH].sum(axis=0)[self.base.columns]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters, each by its leading one, such as "r_thigh.mcx"."""
        owners = [joint.link.name for joint in self.base.robot.joints]
        return tuple(f"{owners[column // _WIDTH]}.{PARAMETER_NAMES[column % _WIDTH]}" for column in self.base.columns)

    def group(self, standard_parameters: Array) -> Array:
        """Base parameters, shape (rank,), of pi, in which images are images."""
        full = np.zeros(self.base.n_full)
        full[-len(standard_parameters) :] = standard_parameters
        return self.base.grouping @ full

    def project(self, columns: Array) -> Array:
        """Columns of the base parameters, (…, rank), of those of pi, (…, 10 * (1 + n_links))."""
        return columns @ self.spread[:, self.base.columns]


def full_bodies(robot: Robot, *, left_is_right: bool = True, seed: int = 0) -> FullBodies:
    """Find the bodies of a biped, and what of their parameters the forces under its support foot can tell.

    Args:
        robot: its base is the foot it stands on.
        left_is_right: whether the links of the swing leg are mirror images of the support leg's.
        seed: of the random motions that independent columns are found from.

    Raises:
        RobotError: the robot's base does not move; or left is to be right, and the geometry is not.
        NumericalError: no clear gap separates independent from dependent columns.
    """
    bodies = on_free_base(robot)
    spread = np.eye(_WIDTH * (_BEFORE + 1 + robot.n_links))[_WIDTH * _BEFORE :]
    for image in mirror_images(robot) if left_is_right else ():
        link, source = (slice(_WIDTH * (_BEFORE + k), _WIDTH * (_BEFORE + k + 1)) for k in (image.link, image.source))
        spread[:, source] += spread[:, link] @ image.turn
        spread[:, link] = 0.0
        bodies = _neglecting(bodies, _BEFORE + image.link)
    names = tuple(f"{joint.name}.{quantity}" for joint in bodies.joints for quantity in PARAMETER_NAMES)
    matrix = _random_columns(robot, seed) @ spread
    columns, gap = independent_columns(bodies, matrix, names)
    base = BaseParameters(
        robot=bodies,
        rank=len(columns),
        gap=gap,
        names=tuple(names[column] for column in columns),
        columns=np.array(columns, dtype=np.intp),
        full_names=names,
        grouping=grouping_matrix(matrix, columns),
    )
    return FullBodies(base, spread)


def _neglecting(robot: Robot, link: int) -> Robot:
    joints = list(robot.joints)
    joints[link] = replace(joints[link], link=Link(joints[link].link.name, neglected=True))
    return replace(robot, joints=tuple(joints))


def _random_columns(robot: Robot, seed: int) -> Array:
    """Return random columns of moments and vertical force on a resting base, (n_rows, 10 * (1 + n_links))."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-np.pi, np.pi, (_SAMPLES, robot.n_joints))
    dq, ddq = 2.0 * rng.standard_normal((2, _SAMPLES, robot.n_joints))
    still = np.zeros((_SAMPLES, 3))
    resting = FreeBaseMotion(still, still, still - robot.gravity)
    rows = floating_regressor(robot, resting, q, dq, ddq).reshape(_SAMPLES, -1, _WIDTH * (1 + robot.n_links))
    # Forces along the ground act at its height: at another point they would only mix rows.
    assert robot.base_foot is not None  # of a stance
    height = robot.base_foot.origin[2]
    fx, fy, fz, nx, ny, _ = rows[:, :6].transpose(1, 0, 2)
    return np.concatenate([height * fx - ny, height * fy + nx, fz])


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
        """Names of the base parameters, each by its leading one, such as "r_thigh.mcx"."""
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
            NumericalError: the search for them ends without an answer.
        """
        return physical_parameters(BaseEstimate.of_covariance(self.bodies.base, self.values, self.covariance))

    @property
    def verdict(self) -> Verdict:
        """Verdict on whether links can have these parameters: "identified", "poor fit" or "refused"."""
        return self.physical.verdict

    @cached_property
    def standard_parameters(self) -> Array:
        """Parameters of the possible bodies: ten of the base's link, then of each link, shape (10 * (1 + n_links),)."""
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
        RobotError: left is to be right, and the geometry is not.
        FitError: there are fewer samples than parameters.
        NumericalError: the robot's geometry is nearly degenerate.

    Source: base parameters from the wrench on the base: Ayusawa, Venture & Nakamura, IJRR 33(3), 2014; the prior as in
    Gelman et al., Bayesian Data Analysis, 3rd ed., 2013, ch. 14.8.
    """
    bodies = full_bodies(stance.robot, left_is_right=left_is_right)
    rank, k = bodies.base.rank, len(stance.nuisance_names)
    if stance.n_samples < rank + k:
        raise FitError(
            f"{stance.n_samples} samples are too few for {rank} parameters of the links and {k} of the sensors; "
            f"record longer, or estimate fewer with fit_stance"
        )
    thought = link_prior(bodies.base.robot, prior)
    known = _known(bodies, thought, k, total_mass)
    rows = [_rows(stance, bodies)]
    estimate = posterior(rows, compress(rows), known).estimate
    sigma = np.sqrt(np.diag(estimate.covariance))
    return FullStanceEstimate(
        robot=stance.robot,
        bodies=bodies,
        values=estimate.parameters[:rank],
        covariance=estimate.covariance[:rank, :rank],
        prior_sigma=_prior_sigma(bodies, thought),
        nuisance_names=stance.nuisance_names,
        nuisance=stance.data_sheet * estimate.parameters[rank:],
        nuisance_sigma=stance.data_sheet * sigma[rank:],
        total_mass=total_mass,
        n_samples=stance.n_samples,
        lags=estimate.lags,
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
    return JoinedRows(tuple(RowsInMemory(regressor[piece], values[piece], used[piece]) for piece in pieces))


def _known(bodies: FullBodies, thought: ParameterPrior, k: int, total_mass: float) -> Array:
    """Return what is known beside the data, (regressor | value) in its own σ."""
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
