"""How each link moves, in its own frame: the outward half of every rigid-body recursion."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jointbench.dynamics.vectors import cross, rotate, rotate_about_z
from jointbench.robot import Array, Joint, Robot


@dataclass(frozen=True)
class LinkMotion:
    """The motion of one link over all samples, vectors (3, n_samples) in the link's frame.

    Attributes:
        rotation: of the link's frame in its parent's at q = 0, (3, 3).
        cosine, sine: of the joint's rotation beyond that, (n_samples,).
        origin: of the link's frame, in the parent's frame, (3, n_samples).
        velocity: angular, omega.
        acceleration: angular, its derivative.
        origin_acceleration: linear, of the frame's origin, minus gravity: what an accelerometer there feels.
    """

    rotation: Array
    cosine: Array
    sine: Array
    origin: Array
    velocity: Array
    acceleration: Array
    origin_acceleration: Array

    def into_link(self, vectors: Array) -> Array:
        """Express vectors of the parent's frame in the link's frame."""
        return rotate_about_z(self.cosine, -self.sine, rotate(self.rotation.T, vectors))

    def into_parent(self, vectors: Array) -> Array:
        """Express vectors of the link's frame in the parent's frame."""
        return rotate(self.rotation, rotate_about_z(self.cosine, self.sine, vectors))


def link_motions(robot: Robot, q: Array, dq: Array, ddq: Array) -> Iterator[LinkMotion]:
    """Yield the motion of each link in link order; the arrays are (n_samples, n_joints), already checked.

    Source: Luh, Walker & Paul, J. Dyn. Sys. Meas. Control 102(2), 1980; gravity as a base that accelerates upwards.
    """
    samples = q.shape[0]
    rest = np.zeros((3, samples))
    lifted = np.repeat(-np.array(robot.gravity)[:, None], samples, axis=1)
    motions: list[LinkMotion] = []
    for i, joint in enumerate(robot.joints):
        if joint.parent < 0:
            carrier = (rest, rest, lifted)
        else:
            parent = motions[joint.parent]
            carrier = (parent.velocity, parent.acceleration, parent.origin_acceleration)
        motion = _moved(joint, carrier, q[:, i], dq[:, i], ddq[:, i])
        motions.append(motion)
        yield motion


def _moved(joint: Joint, carrier: tuple[Array, Array, Array], q: Array, dq: Array, ddq: Array) -> LinkMotion:
    """Carry a parent's motion (omega, its derivative, felt acceleration) across one joint."""
    velocity, acceleration, felt = carrier
    rotation, fixed = joint.placement
    revolute = joint.kind == "revolute"
    cosine, sine = (np.cos(q), np.sin(q)) if revolute else (np.ones_like(q), np.zeros_like(q))
    origin = np.repeat(fixed[:, None], len(q), axis=1) if revolute else fixed[:, None] + rotation[:, 2:] * q

    felt_there = felt + cross(acceleration, origin) + cross(velocity, cross(velocity, origin))
    stacked = rotate(rotation.T, np.stack([velocity, acceleration, felt_there], axis=1))
    velocity, acceleration, felt = rotate_about_z(cosine, -sine, stacked).transpose(1, 0, 2)
    if revolute:
        acceleration = acceleration + np.stack([velocity[1] * dq, -velocity[0] * dq, ddq])
        velocity = velocity + np.stack([np.zeros_like(dq), np.zeros_like(dq), dq])
    else:
        felt = felt + np.stack([2.0 * velocity[1] * dq, -2.0 * velocity[0] * dq, ddq])
    return LinkMotion(rotation, cosine, sine, origin, velocity, acceleration, felt)
