"""How large the measured torques are beside what the inertias of the robot's file make of the motion."""

from __future__ import annotations

from typing import cast

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.log_check.finding import Finding
from jointbench.identification.log_check.look import Look

_SCALE = (float(np.log(3.0)), float(np.log(30.0)))
"""Logarithm of the factor between torque and file from which on it is suspicious, and wrong: files are off by up to 2,
a forgotten torque constant makes 10 of it, a unit 1000."""

_TELLING = 0.3
"""Share of what friction leaves of a torque that the file's inertias must explain to tell its scale."""


def torque_scale(look: Look) -> float:
    """How many times the file's torque the measured one is, as the median of joints where its inertias matter.

    1 where they matter in none: then nothing tells.
    """
    causes, found = look.causes, list[float]()
    assert causes.rigid is not None
    for j in look.joints:
        beside = (*causes.free_at(j), *causes.resisting[:, :, j])
        columns = np.column_stack([*beside, causes.rigid[:, j], look.torque[:, j]])
        columns -= columns.mean(axis=0)
        r = cast(Array, np.linalg.qr(columns, mode="r"))
        own, shared, left = float(r[-2, -2]), float(r[-2, -1]), float(r[-1, -1])
        if shared**2 > _TELLING * (shared**2 + left**2) and own != 0.0:
            found.append(abs(shared / own))
    return float(np.median(found)) if found else 1.0


def check_scale(look: Look, name: str) -> Finding:
    """Judge the scale of the torque of this name."""
    scale = torque_scale(look)
    what = f"the {name} is {scale:.3g} times what the inertias of the robot's file make of the motion"
    advice = "check the unit of [torque], its gain (torque constant, gear ratio), and the masses in the robot's file"
    names = tuple(look.robot.joint_names[j] for j in look.joints)
    return Finding("torque scale", names, float(abs(np.log(scale))), *_SCALE, what, advice)
