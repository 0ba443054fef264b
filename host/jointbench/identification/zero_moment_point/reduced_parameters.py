"""Reduced parameters of a biped: masses and their places along the links, and the point they predict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import RobotError
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.model import PARAMETER_NAMES, Link, LinkAxis, Robot

_ALIKE = 1e-6
"""[m] and [kg]: what differs by no more is the same."""

_MOMENTS = ("Ixx", "Iyy", "Izz")

_LIGHTEST = 0.2
_HEAVIEST = 5.0
"""Bounds of a mass, times that of the robot's file."""


@dataclass(frozen=True)
class ReducedParameters:
    """Phi = [lc of each kind of links, m of each kind]: left = right, centres of mass on the links' axes.

    A link of a kind has its centre of mass at start + lc * direction of its axis, and a rotary inertia about it that
    the robot's file tells. The ten standard parameters of all links are polynomials of Phi: pi = T @ t(Phi) with
    t = [1, m, m lc, m lc²], kind by kind.

    Attributes:
        robot: on a floating base, with link kinds; links of no kind are held at what its file says.
        rotary: "cad": inertias about the centres of mass are those of the robot's file; "none": they are neglected, of
            all links, as Wu & Gao do.

    Source: Wu & Gao, J. Harbin Institute of Technology 53(7), 2021.
    """

    robot: Robot
    rotary: Literal["cad", "none"] = "cad"

    def __post_init__(self) -> None:
        """Refuse a robot of which too little is known.

        Raises:
            RobotError, RobotError, RobotError: its links are not told to be alike, its base stands still, or a
                link's mass is not known.
        """
        if not self.robot.link_kinds:
            raise RobotError(
                f"the file of robot {self.robot.name!r} has no [[link_kinds]]; say which links are alike, or estimate "
                f"all of their parameters"
            )
        if self.robot.base_link is None:
            raise RobotError(
                f"the base of robot {self.robot.name!r} does not move; set floating_base = true in its file"
            )
        for link in self._links:
            if link.standard_parameters is None:
                raise RobotError(
                    f"link {link.name!r} of {self.robot.name!r} has no mass; give mass_kg, center_of_mass_mm and "
                    f"inertia_kg_m2 in its file"
                )

    @property
    def n_kinds(self) -> int:
        """Number of kinds of links; there are twice as many parameters."""
        return len(self.robot.link_kinds)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, such as lc_thigh [m] and m_thigh [kg]."""
        kinds = [kind.name for kind in self.robot.link_kinds]
        return tuple(f"{what}_{kind}" for what in ("lc", "m") for kind in kinds)

    @cached_property
    def nominal(self) -> Array:
        """Values of the robot's own file."""
        return self.of(self.robot)

    def of(self, robot: Robot) -> Array:
        """Phi of a robot with the same kinds of links: means over the links of a kind, places projected on the axes.

        Raises:
            RobotError: of a link of a kind no mass is known.
        """
        bodies = {link.name: link for link in _links_of(robot)}
        found = [[_mass_on(axis, bodies[axis.link]) for axis in kind.links] for kind in self.robot.link_kinds]
        means = np.array([np.mean(each, axis=0) for each in found])
        return np.concatenate([means[:, 1], means[:, 0]])

    def of_parameters(self, standard_parameters: Array) -> Array:
        """Phi that standard parameters follow from, rotary inertias apart.

        Args:
            standard_parameters: of the base's link, then of each link, shape (10 * (1 + n_links),).

        Raises:
            RobotError: links of a kind differ, or a centre of mass lies off its axis.
        """
        names, blocks = [link.name for link in self._links], standard_parameters.reshape(-1, 10)
        bounds: list[tuple[float, float]] = []
        for kind in self.robot.link_kinds:
            of_links: list[tuple[float, float]] = []
            for axis in kind.links:
                mass, *moment = blocks[names.index(axis.link), :4]
                center = np.array(moment) / mass
                lc = float((center - axis.start) @ axis.direction)
                off = float(np.linalg.norm(center - axis.start - lc * axis.direction))
                if off > _ALIKE:
                    raise RobotError(f"the centre of mass of link {axis.link!r} is {1e3 * off:.3g} mm off its axis")
                of_links.append((lc, float(mass)))
            if np.ptp(np.array(of_links), axis=0).max() > _ALIKE:
                values = ", ".join(
                    f"{axis.link} {lc:g} m {m:g} kg" for axis, (lc, m) in zip(kind.links, of_links, strict=True)
                )
                raise RobotError(f"the links of kind {kind.name!r} are not alike: {values}")
            bounds.append(of_links[0])
        return np.array(bounds, dtype=np.float64).T.ravel()

    @cached_property
    def mass_row(self) -> Array:
        """Number of links of each kind, shape (2 n_kinds,): mass_row @ Phi + held_mass is the whole robot's mass."""
        return np.array([0.0] * self.n_kinds + [float(len(kind.links)) for kind in self.robot.link_kinds])

    @cached_property
    def held_mass(self) -> float:
        """Mass of the links of no kind [kg]."""
        return float(self.terms[::10, 0].sum())

    @cached_property
    def bounds(self) -> Array:
        """Least and largest value of each parameter, shape (2 n_kinds, 2).

        The centres of mass lie between the ends of the axes, masses within a fifth and five times those of the file.
        """
        places = [[0.0, kind.length] for kind in self.robot.link_kinds]
        masses = self.nominal[self.n_kinds :, None] * [_LIGHTEST, _HEAVIEST]
        return np.vstack([places, masses])

    @cached_property
    def terms(self) -> Array:
        """T of pi = T @ t(Phi), shape (10 * (1 + n_links), 1 + 3 n_kinds)."""
        expansion = np.zeros((len(self._links), 10, 1 + 3 * self.n_kinds))
        kinds = {axis.link: (k, axis) for k, kind in enumerate(self.robot.link_kinds) for axis in kind.links}
        for i, link in enumerate(self._links):
            if link.mass is None:
                continue  # neglected
            if self.rotary == "cad":
                expansion[i, 4:, 0] = _upper(np.array(link.inertia_about_center_of_mass))
            if link.name in kinds:
                k, axis = kinds[link.name]
                expansion[i][:, 1 + k :: self.n_kinds] = _point_mass(np.array(axis.start), axis.direction).T
            else:
                expansion[i, :, 0] += link.mass * _point_mass(np.array(link.center_of_mass), np.zeros(3))[0]
        return expansion.reshape(-1, expansion.shape[2])

    def coefficients(self, phi: Array) -> Coefficients:
        """The t of pi = T @ t, and its derivatives by Phi."""
        n, (lc, m) = self.n_kinds, np.split(phi, 2)
        value = np.concatenate([[1.0], m, m * lc, m * lc**2])
        k = np.arange(n)
        first, second = np.zeros((1 + 3 * n, 2 * n)), np.zeros((1 + 3 * n, 2 * n, 2 * n))
        zeroth_row, first_row, second_row = 1 + k, 1 + n + k, 1 + 2 * n + k
        first[zeroth_row, n + k] = 1.0
        first[first_row, k], first[first_row, n + k] = m, lc
        first[second_row, k], first[second_row, n + k] = 2.0 * m * lc, lc**2
        second[first_row, k, n + k] = second[first_row, n + k, k] = 1.0
        second[second_row, k, k] = 2.0 * m
        second[second_row, k, n + k] = second[second_row, n + k, k] = 2.0 * lc
        return Coefficients(value, first, second)

    def standard(self, phi: Array) -> Array:
        """pi: ten standard parameters of the base's link, then of each link, shape (10 * (1 + n_links),)."""
        return self.terms @ self.coefficients(phi).value

    def jacobian(self, phi: Array) -> Array:
        """First derivatives of pi by Phi, shape (10 * (1 + n_links), 2 n_kinds)."""
        return self.terms @ self.coefficients(phi).first

    def hessian(self, phi: Array) -> Array:
        """Second derivatives of pi by Phi, shape (10 * (1 + n_links), 2 n_kinds, 2 n_kinds)."""
        return np.tensordot(self.terms, self.coefficients(phi).second, 1)

    @cached_property
    def rotary_names(self) -> tuple[str, ...]:
        """Names of what may be doubted: the moments of inertia about the centre of mass of each link of a kind."""
        links = [axis.link for kind in self.robot.link_kinds for axis in kind.links]
        return tuple(f"{link}.{name}" for link in links for name in _MOMENTS)

    @cached_property
    def rotary_terms(self) -> Array:
        """Part of pi that each of `rotary_names` adds in the robot's file, shape (10 * (1 + n_links), n)."""
        names = [link.name for link in self._links]
        expansion = np.zeros((len(self._links), 10, len(self.rotary_names)))
        for column, name in enumerate(self.rotary_names):
            link, _, moment = name.rpartition(".")
            i, row = names.index(link), PARAMETER_NAMES.index(moment)
            inertia = _upper(np.array(self._links[i].inertia_about_center_of_mass))
            expansion[i, row, column] = inertia[row - 4]
        return expansion.reshape(-1, expansion.shape[2])

    def rotary_covariance(self, sigma: float) -> Array:
        """Return the covariance of the relative errors of what `rotary_names` names, shape (n, n).

        CAD leaves out cables, screws and boards, which links of a kind have alike and a trunk has otherwise than a leg:
        sigma is the standard deviation of what a kind of links shares; half as large is that of what all links share,
        and of what each moment has alone.
        """
        kinds = [k for k, kind in enumerate(self.robot.link_kinds) for _ in range(len(_MOMENTS) * len(kind.links))]
        return sigma**2 * (0.25 + np.equal.outer(kinds, kinds) + 0.25 * np.eye(len(kinds)))

    @cached_property
    def _links(self) -> tuple[Link, ...]:
        return _links_of(self.robot)


class Coefficients(NamedTuple):
    """t(Phi), shape (n,), and its first and second derivatives, shapes (n, p) and (n, p, p)."""

    value: Array
    first: Array
    second: Array


def _links_of(robot: Robot) -> tuple[Link, ...]:
    base = () if robot.base_link is None else (robot.base_link,)
    return (*base, *(joint.link for joint in robot.joints))


def _mass_on(axis: LinkAxis, link: Link) -> tuple[float, float]:
    """A link's mass [kg], and how far along its axis it is [m]."""
    if link.mass is None or link.center_of_mass is None:
        raise RobotError(f"link {link.name!r} has no mass; give mass_kg and center_of_mass_mm in the robot's file")
    return link.mass, axis.along(link.center_of_mass)


def _point_mass(start: Array, direction: Array) -> Array:
    """Standard parameters of a mass of 1 at start + lc * direction, by powers of lc, shape (3, 10)."""
    powers = np.zeros((3, 10))
    powers[0, 0] = 1.0
    powers[0, 1:4], powers[1, 1:4] = start, direction
    powers[0, 4:] = _turning(start, start)
    powers[1, 4:] = _turning(start, direction) + _turning(direction, start)
    powers[2, 4:] = _turning(direction, direction)
    return powers


def _turning(a: Array, b: Array) -> Array:
    """Upper triangle of (a · b) E - a bᵀ, symmetric."""
    return _upper(a @ b * np.eye(3) - (np.outer(a, b) + np.outer(b, a)) / 2.0)


def _upper(matrix: Array) -> Array:
    return matrix[np.triu_indices(3)]


@dataclass(frozen=True, eq=False)
class Theory:
    """z = (W_xy @ t) / (W_z @ t), with t the few terms that the parameters enter by.

    Attributes:
        columns: W, rows x numerator, y numerator and vertical force of each sample, shape (n, 3, n_terms).
    """

    columns: Array

    @staticmethod
    def of(stance: Stance, reduced: ReducedParameters) -> Theory:
        """Return it in terms of reduced parameters."""
        return Theory(stance.columns @ reduced.terms)

    def __call__(self, t: Array) -> Point:
        """The point and its first derivatives where the terms have these values, shape (n_terms,)."""
        wrench = self.columns @ t
        force = wrench[:, 2]
        point = wrench[:, :2] / force[:, None]
        slopes = (self.columns[:, :2] - point[:, :, None] * self.columns[:, 2:]) / force[:, None, None]
        return Point(point, slopes, force, self.columns[:, 2])


@dataclass(frozen=True, eq=False)
class Point:
    """Theoretical zero-moment points and their derivatives by the terms.

    Attributes:
        point: x and y [m], shape (n, 2).
        slopes: D of them, by the quotient rule (W_xy - z W_z)/F, shape (n, 2, n_terms); the second derivatives are
            -(D W_zᵀ + W_z Dᵀ)/F.
        force: the vertical one, F [N], shape (n,).
        force_slopes: W_z of it, shape (n, n_terms).
    """

    point: Array
    slopes: Array
    force: Array
    force_slopes: Array


def theoretical_point(stance: Stance, standard_parameters: Array) -> Array:
    """Zero-moment points of a stance by standard parameters [m], shape (n, 2).

    Args:
        stance: whose motion.
        standard_parameters: of the base's link, then of each link, shape (10 * (1 + n_links),).
    """
    wrench = stance.columns @ standard_parameters
    return np.asarray(wrench[:, :2] / wrench[:, 2:], dtype=np.float64)


def mean_distance(stance: Stance, standard_parameters: Array) -> float:
    """Mean distance between theoretical and measured zero-moment point [m]."""
    off = theoretical_point(stance, standard_parameters) - stance.measured
    return float(np.linalg.norm(off, axis=1).mean())
