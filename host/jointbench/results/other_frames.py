"""The links of a model in the frames that another file of the same robot has for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.dynamics import forward_kinematics
from jointbench.errors import ExportError, ShapeError
from jointbench.results.full_model import FullModel
from jointbench.robot import Joint, Link, Robot
from jointbench.robot.joint import as_matrix

_DIGITS = 1e-6
"""How far lengths [m] and directions may be from the model's: URDFs are written with six digits and more."""

_POSES = 4
"""Random positions at which the links are compared."""

_SAME = 1e-12
"""Where a frame is another one only by rounding."""


def links_in_frames_of(theirs: Robot, model: FullModel, file: str, zeros: ArrayLike = 0.0) -> dict[str, Link]:
    """The links by the names that the file has for them, and in its frames.

    Those may lie otherwise on the links than the model's, as where one follows Denavit and Hartenberg; but every link
    must go where the model's goes, at all positions. Then the torques are the same. Only of a last joint this does not
    tell where its zero is: nothing behind it would go elsewhere.

    Args:
        theirs: the robot as the file has it; its joints are matched by name, or in order where the names are others.
        model: what is known of it.
        file: its name, for errors.
        zeros: positions of the file's joints where the model's are zero [rad or m], in the model's order,
            shape (n_joints,), or one for all.

    Raises:
        ExportError: a link goes elsewhere, or no body can have a link's inertia.
        ShapeError: there are not as many zeros as joints.
    """
    ours = model.robot
    if ours.n_links != theirs.n_links or ours.n_joints != theirs.n_joints:
        raise ExportError(
            f"{file} has {theirs.n_links} moving joints, and the model of {ours.name!r} has {ours.n_links}; "
            f"give the URDF of the robot that was identified"
        )
    shift = np.asarray(zeros, dtype=np.float64)
    if shift.shape not in ((), (ours.n_joints,)):
        raise ShapeError(f"zeros has shape {shift.shape}; robot {ours.name!r} needs ({ours.n_joints},)")
    order, coordinates = _order(theirs.joints, ours.joints), _order(theirs.independent_joints, ours.independent_joints)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (_POSES, ours.n_joints))
    rotations, origins = forward_kinematics(ours, q)
    others, places = forward_kinematics(theirs, (q + shift)[:, coordinates])
    found: dict[str, Link] = {}
    for joint, i, k in zip(theirs.joints, range(theirs.n_links), order, strict=True):
        back = rotations[:, k].transpose(0, 2, 1)
        turns, arms = back @ others[:, i], np.einsum("kab,kb->ka", back, places[:, i] - origins[:, k])
        if max(float(np.ptp(turns, axis=0).max()), float(np.ptp(arms, axis=0).max())) > _DIGITS:
            raise ExportError(
                f"{file}: joint {joint.name!r} does not move as {ours.joints[k].name!r} of {ours.name!r} does; "
                f"give the URDF of the robot that was identified, with the same base frame, and its "
                f"zeros where they are others"
            )
        found[joint.link.name] = _seen_from(model.links[k], turns[0], arms[0])
    return found


def _order(theirs: tuple[Joint, ...], ours: tuple[Joint, ...]) -> list[int]:
    """Which of ours each of theirs is: by their names, or where these are others, in order."""
    names = [joint.name for joint in ours]
    same = {joint.name for joint in theirs} == set(names)
    return [names.index(joint.name) if same else i for i, joint in enumerate(theirs)]


def _seen_from(link: Link, turn: Array, arm: Array) -> Link:
    """A link in a frame with these axes (columns) and origin in its own."""
    if np.allclose(turn, np.eye(3), rtol=0.0, atol=_SAME) and np.allclose(arm, 0.0, rtol=0.0, atol=_SAME):
        return link  # not a digit of it changes
    if link.mass is None or link.center_of_mass is None or link.inertia_about_center_of_mass is None:
        return link
    x, y, z = (turn.T @ (np.array(link.center_of_mass) - arm)).tolist()
    inertia = turn.T @ np.array(link.inertia_about_center_of_mass) @ turn
    return replace(link, center_of_mass=(x, y, z), inertia_about_center_of_mass=as_matrix((inertia + inertia.T) / 2.0))
