"""A body that is attached to a link: its frame, what is known of it, and its estimate with error bars and verdicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array, Matrix3, Vector3
from jointbench.errors import FitError
from jointbench.identification.judgement import (
    IDENTIFIED_RELATIVE_SIGMA,
    POORLY_EXCITED_RELATIVE_SIGMA,
    Verdict,
    judge_parameter,
)
from jointbench.identification.physical import BaseEstimate, PhysicalParameters, physical_parameters
from jointbench.identification.physical.pseudo_inertia import pseudo_inertia, standard_parameters
from jointbench.model import PARAMETER_NAMES, BaseParameters, Drive, Frame, Link, Robot
from jointbench.model.joint import as_matrix

WIDTH = len(PARAMETER_NAMES)

QUANTITIES = ("mass", "center_x", "center_y", "center_z", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
"""What a person knows of a body: mass, centre of mass, and inertia about it in the axes of the frame."""

_STEEL = 7850.0
"""Density [kg/m³] of the smallest body that a payload is likely to be: a cube of steel has its least size."""

_EXACT = 1e-6
"""Relative σ of what is known beforehand: far below what any recording tells."""


@dataclass(frozen=True, eq=False)
class PayloadFrame:
    """The frame in which a payload is described, and the link that carries it.

    Attributes:
        name: of the frame.
        joint: index of the joint that moves the link.
        link: its name.
        transform: T of standard parameters about the link's frame = T @ those about this one, shape (10, 10).
    """

    name: str
    joint: int
    link: str
    transform: Array

    @classmethod
    def of(cls, robot: Robot, on: str | None = None) -> PayloadFrame:
        """Return the frame of this name, or that of the last joint's link.

        Raises:
            FileError: the robot has no such frame.
            FitError: it belongs to the base, or its link has no parameters.
        """
        frame = robot.frame(robot.joints[-1].link.name if on is None else on)
        if frame.joint < 0:
            raise FitError(f"frame {frame.name!r} of {robot.name!r} is the base's; name one of a link that moves")
        link = robot.joints[frame.joint].link
        if not link.modelled:
            raise FitError(
                f"link {link.name!r} of {robot.name!r} is neglected in the robot's file, so that no torque is computed "
                f"for a body on it; name another frame, or give the link its inertia"
            )
        return cls(frame.name, frame.joint, link.name, _to_link(frame))

    def added(self, robot: Robot, parameters: ArrayLike) -> Array:
        """Return what a body with these parameters adds to those of the robot's links.

        Args:
            robot: the robot.
            parameters: standard parameters about this frame, shape (10,), or several of them, shape (10, n).

        Returns:
            Standard parameters of all links, zero but for the one that carries it, shape (10 * n_links, …).
        """
        own = np.asarray(parameters, dtype=np.float64)
        added = np.zeros((WIDTH * robot.n_links, *own.shape[1:]))
        added[WIDTH * self.joint : WIDTH * (self.joint + 1)] = self.transform @ own
        return added


def _to_link(frame: Frame) -> Array:
    """T of a frame that is fixed to a link: P about the link's frame is A P Aᵀ with A = [[R, o], [0, 1]]."""
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = frame.rotation, frame.origin
    return standard_parameters(place @ pseudo_inertia(np.eye(WIDTH)) @ place.T).T


class KnownPayload(NamedTuple):
    """Prior knowledge of a payload.

    Attributes:
        parameters: standard parameters about its frame, 0 where not known, shape (10,).
        known: which of them are, shape (10,).
    """

    parameters: Array
    known: NDArray[np.bool_]

    @classmethod
    def of(
        cls, mass: float | None = None, center_of_mass: Vector3 | None = None, inertia: Matrix3 | None = None
    ) -> KnownPayload:
        """Take what was weighed or drawn.

        Args:
            mass: [kg]; None: not known.
            center_of_mass: in the payload's frame [m]; needs the mass.
            inertia: about the centre of mass, in the axes of the frame [kg·m²]; needs the centre.

        Raises:
            FitError: the mass is not positive, something else is given without what it needs, or no body is like this.
        """
        parameters, known = np.zeros(WIDTH), np.zeros(WIDTH, dtype=np.bool_)
        if mass is not None:
            if not (np.isfinite(mass) and mass > 0.0):
                raise FitError(f"a payload of {mass:g} kg is not possible; give the mass it was weighed with, in kg")
            parameters[0], known[0] = mass, True
        if center_of_mass is not None:
            if mass is None:
                raise FitError("the payload's centre of mass is given without its mass; weigh it and give the mass too")
            parameters[1:4], known[1:4] = mass * np.asarray(center_of_mass), True
        if inertia is not None:
            if mass is None or center_of_mass is None:
                raise FitError("the payload's inertia is given without its mass and centre of mass; give these too")
            body = Link("payload", mass, center_of_mass, inertia)
            if body.physical_fault is not None:
                raise FitError(f"the payload's inertia is not possible: {body.physical_fault}")
            whole = body.standard_parameters
            assert whole is not None
            parameters, known = whole, np.ones(WIDTH, dtype=np.bool_)
        return cls(parameters, known)


@dataclass(frozen=True, eq=False)
class PayloadBody:
    """Mass, centre of mass and inertia of a payload, with error bars and verdicts.

    Attributes:
        frame: in which it is described.
        estimate: standard parameters about the frame as the recordings tell them, physically consistent or not; 0 where
            they do not [kg, kg·m, kg·m²], shape (10,).
        covariance: of the estimate; 0 where known beforehand, an infinite variance where not told, shape (10, 10).
        known: which were known beforehand, shape (10,).
        physical: the physically consistent parameters nearest to the estimate, and how far they are from it; None where
            all was known.
    """

    frame: PayloadFrame
    estimate: Array
    covariance: Array
    known: NDArray[np.bool_]
    physical: PhysicalParameters | None

    @classmethod
    def of(cls, robot: Robot, frame: PayloadFrame, known: KnownPayload, free: Array, covariance: Array) -> PayloadBody:
        """Put together what was known and what was estimated.

        Args:
            robot: that carries it.
            frame: in which it is described.
            known: beforehand.
            free: estimates of the other parameters in order, shape (n_free,).
            covariance: of these, infinite variances where they are not told, shape (n_free, n_free).

        Raises:
            NumericalError: the search for physically consistent parameters ends without an answer.
        """
        values, whole = known.parameters.copy(), np.zeros((WIDTH, WIDTH))
        values[~known.known] = free
        whole[np.ix_(~known.known, ~known.known)] = covariance
        physical = None if known.known.all() else _physical(robot, frame, known, values, whole)
        return cls(frame, values, whole, known.known, physical)

    @cached_property
    def parameters(self) -> Array:
        """Physically consistent standard parameters about the frame, shape (10,).

        Those of the estimate where a body can have them, else the nearest; what the recordings do not tell is filled by
        a body of the size of a steel cube.
        """
        if self.physical is None:
            return self.estimate
        nearest = self.physical.standard_parameters.copy()
        if self.known[0]:
            nearest *= self.estimate[0] / nearest[0]  # rounding of the search; a scaled body is a body
        return np.where(self.known, self.estimate, nearest)

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.parameters[0])

    @property
    def center_of_mass(self) -> Array:
        """Centre of mass in the frame [m], shape (3,)."""
        return self.parameters[1:4] / self.mass

    @property
    def inertia(self) -> Array:
        """Inertia about the centre of mass in the axes of the frame [kg·m²], shape (3, 3)."""
        c = self.center_of_mass
        xx, xy, xz, yy, yz, zz = self.parameters[4:]
        about_frame = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return about_frame - self.mass * (c @ c * np.eye(3) - np.outer(c, c))

    @property
    def values(self) -> Array:
        """Values of `QUANTITIES` [kg, m, kg·m²], shape (10,)."""
        return np.concatenate([[self.mass], self.center_of_mass, self.inertia[np.triu_indices(3)]])

    @cached_property
    def sigma(self) -> Array:
        """Standard deviation of `values`, to first order; 0 where known, infinite where not told, shape (10,)."""
        slopes, variance = _slopes(self.mass, self.center_of_mass), np.diag(self.covariance)
        told = np.isfinite(variance)
        spread = self.covariance[np.ix_(told, told)]
        sigma = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes[:, told], spread, slopes[:, told]), 0.0))
        return np.where(_DEPENDS[:, ~told].any(axis=1), np.inf, sigma)

    @property
    def least_size(self) -> float:
        """Edge of a cube of steel with this mass [m]: a payload is hardly smaller."""
        return float(np.cbrt(self.mass / _STEEL))

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Verdict on each of `QUANTITIES` that was not known beforehand.

        A coordinate of the centre may well be zero: its σ counts beside the distance of the centre from the frame, or
        the body's least size where that is more. An entry of the inertia counts beside the largest.
        """
        distance = max(float(np.linalg.norm(self.center_of_mass)), self.least_size)
        largest = float(np.abs(self.inertia).max())
        verdicts: list[Verdict] = []
        for k, name in enumerate(QUANTITIES):
            if self.sigma[k] == 0.0:
                continue
            value, sigma = float(self.values[k]), float(self.sigma[k])
            if k == 0:
                verdicts.append(self._mass_verdict(sigma))
            elif self.mass_is_refused:
                verdicts.append(Verdict(name, "refused", "it goes by the mass, which is refused"))
            elif k < 4:
                verdicts.append(_judge_beside(name, 1e3 * value, 1e3 * sigma, 1e3 * distance, "mm", "the distance"))
            else:
                verdicts.append(_judge_beside(name, 1e6 * value, 1e6 * sigma, 1e6 * largest, "kg·mm²", "the largest"))
        return tuple(verdicts)

    @cached_property
    def mass_is_refused(self) -> bool:
        """True where the mass is close to zero or negative, so that there is no payload to describe."""
        sigma = float(self.sigma[0])
        return bool(np.isfinite(sigma)) and sigma > 0.0 and self._mass_verdict(sigma).is_refused

    def _mass_verdict(self, sigma: float) -> Verdict:
        """Judge the mass; a negative one, or one that may be nothing, in words."""
        plain = float(self.estimate[0])
        if plain < -2.0 * sigma:
            reason = f"{plain:.4g} ± {sigma:.2g} kg is negative; were the two recordings exchanged?"
            return Verdict("mass", "refused", reason)
        verdict = judge_parameter("mass", plain, sigma)
        if verdict.word == "refused":
            most = max(plain, 0.0) + 2.0 * sigma
            return replace(verdict, reason=f"{verdict.reason}: nothing above {most:.2g} kg was attached")
        return verdict


_UNSEEN = "these motions do not show it; move the link about more axes, or faster"


def _judge_beside(name: str, value: float, sigma: float, scale: float, unit: str, of: str) -> Verdict:
    """Judge a component of a vector or tensor by its σ beside the size of the whole."""
    if not np.isfinite(sigma):
        return Verdict(name, "not observable", _UNSEEN)
    figures = f"{value:.4g} ± {sigma:.2g} {unit}, σ is {sigma / scale:.1%} of {of}, {scale:.3g} {unit}"
    if sigma <= IDENTIFIED_RELATIVE_SIGMA * scale:
        return Verdict(name, "identified", figures)
    if sigma <= POORLY_EXCITED_RELATIVE_SIGMA * scale:
        return Verdict(name, "poorly excited", f"{figures}, above {IDENTIFIED_RELATIVE_SIGMA:.0%}")
    return Verdict(name, "refused", f"{figures}, above {POORLY_EXCITED_RELATIVE_SIGMA:.0%}")


def _slopes(mass: float, center: Array) -> Array:
    """Derivatives of `QUANTITIES` by the standard parameters, shape (10, 10)."""
    slopes = np.eye(WIDTH)
    slopes[1:4, 0], slopes[1:4, 1:4] = -center / mass, np.eye(3) / mass
    rows, columns = np.triu_indices(3)
    for k, (i, j) in enumerate(zip(rows, columns, strict=True), start=4):
        # I_c = I - (s·s E - s sᵀ) / m, with s = m c.
        slopes[k, 0] = (center @ center if i == j else 0.0) - center[i] * center[j]
        slopes[k, 1:4] = -2.0 * center if i == j else 0.0
        slopes[k, 1 + i] += center[j]
        slopes[k, 1 + j] += center[i]
    return slopes


_DEPENDS = _slopes(1.0, np.array([1.0, 2.0, 3.0])) != 0.0
"""Which of `QUANTITIES` depend on which standard parameters: none of these numbers makes a slope zero by chance."""


def _physical(
    robot: Robot, frame: PayloadFrame, known: KnownPayload, values: Array, covariance: Array
) -> PhysicalParameters:
    """Search the body nearest to an estimate: alone it is a robot of one link, of which all ten are base parameters."""
    variance = np.diag(covariance)
    mass = max(float(values[0]), np.sqrt(variance[0]) if np.isfinite(variance[0]) else 1.0)
    size = float(np.cbrt(mass / _STEEL))
    told = np.isfinite(variance[1:4]).all() and np.isfinite(variance[0])
    center = tuple((values[1:4] / mass).tolist()) if told and values[0] > 0.0 else (0.0, 0.0, 0.0)
    cube = Link("payload", mass, center, as_matrix(np.eye(3) * mass * size**2 / 6.0), assumed=True)
    joint = replace(robot.joints[frame.joint], parent=-1, link=cube, mimic=None, passive=True)
    body = replace(
        robot, joints=(joint,), drives=(Drive.none(joint.name),), home=(0.0,), couplings=(), frames=(), capsules=(),
        feet=(), link_kinds=(), compensations=(), base_link=None, part_faults=(), assumptions=(),
    )  # fmt: skip
    names = tuple(f"{joint.name}.{name}" for name in PARAMETER_NAMES)
    base = BaseParameters(body, WIDTH, np.inf, names, np.arange(WIDTH), names, np.eye(WIDTH))
    # What was known counts as told exactly, on the scale of the body.
    scales = np.array([mass, *(mass * (size + abs(float(c))) for c in center), *[mass * size**2] * 6])
    exact = np.where(known.known, (_EXACT * scales) ** 2, 0.0)
    return physical_parameters(BaseEstimate.of_covariance(base, values, covariance + np.diag(exact)))
