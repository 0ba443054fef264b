"""Bounds of joint torques and of their derivatives by time, from bounds of the joints' motion.

They are carried through sums, products and rotations by jets: a *jet* is (|a|, |a'|, |a''|, …), or anything larger. By
the triangle inequality jets of sums add, and by Leibniz' rule |(a b)^(k)| <= Σ_j C(k, j) |a^(j)| |b^(k-j)| for the
product of numbers, of a number and a vector, of a matrix and a vector, and for the dot and cross product of vectors.
Directions are forgotten: the bounds exceed the truth because joints do not all move at their fastest, at once, and in
the same direction.

Source: Leibniz' rule; Moore, Kearfott & Cloud, Introduction to Interval Analysis, 2009, ch. 9.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.model import Joint, Robot

Jet = tuple[float, ...]
"""Bounds of a magnitude and of its first derivatives by time."""

_ZERO_JET: Jet = (0.0, 0.0, 0.0)


def jet_sum(*jets: Jet) -> Jet:
    """Jet of a sum, as long as the shortest."""
    return tuple(map(sum, zip(*jets, strict=False)))


def jet_multiple(factor: float, jet: Jet) -> Jet:
    """Jet of a multiple by a number that does not change."""
    return tuple(factor * bound for bound in jet)


def jet_product(a: Jet, b: Jet) -> Jet:
    """Jet of a product of any kind, as long as the shorter."""
    length = min(len(a), len(b))
    return tuple(sum(comb(k, j) * a[j] * b[k - j] for j in range(k + 1)) for k in range(length))


def rotated_jet(length: float, angular_velocity: Jet) -> Jet:
    """Jet of a vector of constant length that turns, one longer than that of its angular velocity.

    v' = ω × v, and so |v^(k+1)| <= Σ_j C(k, j) |ω^(j)| |v^(k-j)|. With length 1 it is the jet of the rotation itself.
    """
    jet = [length]
    for k in range(len(angular_velocity)):
        jet.append(sum(comb(k, j) * angular_velocity[j] * jet[k - j] for j in range(k + 1)))
    return tuple(jet)


def torque_bounds(robot: Robot, standard_parameters: Array, bounds: Array, home: Array | None = None) -> Array:
    """Largest magnitudes of the joint torques of `inverse_dynamics`, and of their first two derivatives by time.

    The recursion of Newton and Euler on jets, each body's in its own frame: there its inertia does not change, and
    what comes from its parent turns with its own joint alone.

    Args:
        robot: the kinematic tree.
        standard_parameters: ten per link in link order, shape (10 * n_links,).
        bounds: largest magnitude of the derivatives 0 … 4 (or more) of position - home, shape (5 or more, n_joints),
            as of `Basis.bounds`.
        home: [rad or m], shape (n_joints,); the robot's own where not given.

    Returns:
        Shape (3, n_joints): of the torque [N·m], its first [N·m/s] and second derivative [N·m/s²]; N, N/s, N/s² for
        prismatic joints.

    Source: Luh, Walker & Paul, J. Dyn. Sys. Meas. Control 102(2), 1980.
    """
    motions, at_home = _motions(robot, bounds, home)
    inertias = _inertias(standard_parameters)
    base = _Body(_ZERO_JET, _ZERO_JET, (float(np.linalg.norm(robot.gravity)), 0.0, 0.0), _ZERO_JET, _ZERO_JET)
    bodies: list[_Body] = []
    for i, joint in enumerate(robot.joints):
        bodies.append(_child_motion(bodies[joint.parent] if joint.parent >= 0 else base, joint, motions[i], at_home[i]))
    loads = [_inertial_load(body, *inertia) for body, inertia in zip(bodies, inertias, strict=True)]
    index, factor, _ = robot.coordinates
    torques = np.zeros((3, robot.n_joints))
    for i in range(len(bodies) - 1, -1, -1):
        joint, (force, moment) = robot.joints[i], loads[i]
        torques[:, index[i]] += np.abs(factor[i]) * np.array(moment if joint.kind == "revolute" else force)
        if joint.parent >= 0:
            force, moment = jet_product(bodies[i].turn, force), jet_product(bodies[i].turn, moment)
            carried_force, carried_moment = loads[joint.parent]
            loads[joint.parent] = (
                jet_sum(carried_force, force),
                jet_sum(carried_moment, moment, jet_product(bodies[i].arm, force)),
            )
    return torques


class _Body(NamedTuple):
    """Jets of a link's motion, three long, in its own frame.

    Attributes:
        angular_velocity, spin_rate: angular velocity and acceleration [rad/s, rad/s²].
        specific_force: acceleration of its origin less gravity [m/s²].
        turn: rotation of its frame in its parent's.
        arm: its origin in its parent's frame [m].
    """

    angular_velocity: Jet
    spin_rate: Jet
    specific_force: Jet
    turn: Jet
    arm: Jet


def _child_motion(parent: _Body, joint: Joint, motion: Jet, at_home: float) -> _Body:
    """Motion of a link whose joint's position - home has the jet `motion`, five long."""
    velocity, acceleration = motion[1:4], motion[2:5]
    is_revolute = joint.kind == "revolute"
    arm: Jet = (_length(joint, at_home), 0.0, 0.0)
    arm = arm if is_revolute else jet_sum(arm, motion)
    turn = rotated_jet(1.0, velocity[:2]) if is_revolute else (1.0, 0.0, 0.0)
    centripetal_acceleration = jet_product(parent.angular_velocity, jet_product(parent.angular_velocity, arm))
    specific_force = jet_product(
        turn, jet_sum(parent.specific_force, jet_product(parent.spin_rate, arm), centripetal_acceleration)
    )
    angular_velocity, spin_rate = jet_product(turn, parent.angular_velocity), jet_product(turn, parent.spin_rate)
    coriolis = jet_product(angular_velocity, velocity)
    if is_revolute:
        return _Body(
            jet_sum(angular_velocity, velocity), jet_sum(spin_rate, acceleration, coriolis), specific_force, turn, arm
        )
    return _Body(
        angular_velocity, spin_rate, jet_sum(specific_force, acceleration, jet_multiple(2.0, coriolis)), turn, arm
    )


def _inertial_load(
    body: _Body, mass: float, first: float, inertia_norm: float, inertia_spread: float
) -> tuple[Jet, Jet]:
    """Jets of the force and of the moment about its origin that move a link.

    f = m a + α × mc + ω × (ω × mc); n = mc × a + J α + ω × J ω, a the specific force. A multiple of the unit matrix
    in J adds to n by α alone.
    """
    centripetal = jet_product(body.angular_velocity, body.angular_velocity)
    force = jet_sum(jet_multiple(mass, body.specific_force), jet_multiple(first, jet_sum(body.spin_rate, centripetal)))
    return force, jet_sum(
        jet_multiple(first, body.specific_force),
        jet_multiple(inertia_norm, body.spin_rate),
        jet_multiple(inertia_spread, centripetal),
    )


def _motions(robot: Robot, bounds: Array, home: Array | None) -> tuple[list[Jet], list[float]]:
    """Jets of position - home of all joints, and their positions at home, also of those that follow others."""
    index, factor, _ = robot.coordinates
    home_position = np.asarray(robot.home if home is None else home, dtype=np.float64)
    jets = (bounds[:5, index] * np.abs(factor)).T.tolist()
    return [tuple(jet) for jet in jets], robot.all_positions(home_position[None])[0].tolist()


def _length(joint: Joint, at_home: float) -> float:
    """Length of the vector from the parent's origin to the joint's own at home [m]."""
    rotation, origin = joint.placement
    slide = 0.0 if joint.kind == "revolute" else at_home
    return float(np.linalg.norm(origin + slide * (rotation @ joint.axis)))


def _inertias(standard_parameters: Array) -> list[tuple[float, float, float, float]]:
    """Magnitudes of each link: |m|, |mc|, the norm of J and half the spread of its principal values."""
    links = np.reshape(standard_parameters, (-1, 10))
    principal = np.linalg.eigvalsh(links[:, [4, 5, 6, 5, 7, 8, 6, 8, 9]].reshape(-1, 3, 3))
    uneven = 0.5 * (principal[:, 2] - principal[:, 0])
    first = np.linalg.norm(links[:, 1:4], axis=1)
    columns = (np.abs(links[:, 0]), first, np.abs(principal).max(axis=1), uneven)
    return list(zip(*(column.tolist() for column in columns), strict=True))
