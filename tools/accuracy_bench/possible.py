"""Whether standard parameters are those of bodies and drives: judged by the definition, not by who made them."""

from __future__ import annotations

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import drive_parameter_names
from jointbench.robot import Robot

_SIGNED = ("rotor_inertia", "viscous", "coulomb")


def impossible(robot: Robot, standard: Array, drives: Array) -> tuple[str, ...]:
    """What in a set of parameters no robot has; empty where all is possible.

    A body has a positive mass, and about its centre of mass positive principal inertias of which none exceeds the sum
    of the others.

    Args:
        robot: whose parameters they are.
        standard: ten of each link about its own frame, shape (10 * n_links,).
        drives: in the order of `drive_parameter_names`.
    """
    faults: list[str] = []
    for joint, (mass, *rest) in zip(robot.joints, standard.reshape(-1, 10), strict=True):
        if not mass > 0.0:
            faults.append(f"{joint.name}: mass {mass:.3g} kg")
            continue
        center = np.array(rest[:3]) / mass
        xx, xy, xz, yy, yz, zz = rest[3:]
        about_frame = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        inertia = about_frame - mass * (center @ center * np.eye(3) - np.outer(center, center))
        principal = np.linalg.eigvalsh(inertia)
        if not (principal[0] > 0.0 and principal[0] + principal[1] > principal[2]):
            faults.append(f"{joint.name}: principal inertias {principal} kg·m²")
    names = drive_parameter_names(robot)
    faults += [
        f"{name}: {value:.3g}"
        for name, value in zip(names, drives, strict=True)
        if name.rpartition(".")[2] in _SIGNED and not value >= 0.0
    ]
    return tuple(faults)
