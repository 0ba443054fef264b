"""Which bodies of a biped have inertial parameters of their own, and which of these the forces under a foot tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, FreeBaseMotion, floating_regressor
from jointbench.dynamics.grouping import grouping_matrix, independent_columns
from jointbench.identification.zero_moment_point.left_right import mirror_images
from jointbench.robot import PARAMETER_NAMES, Link, Robot
from jointbench.robot.free_base import BASE_JOINTS, on_free_base

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
        """Of the base parameters, each by its leading one, such as "r_thigh.mcx"."""
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
        FixedBase: the robot's base does not move.
        NotMirrored: left is to be right, and the geometry is not.
        UnclearRank: no clear gap separates independent from dependent columns.
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
    """Of moments about x and y and of the vertical force on a resting base, shape (n_rows, 10 * (1 + n_links))."""
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
