"""Common parts of the benchmarks: their error, and their peer Pinocchio."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from jointbench.model import Robot


class BenchmarkFailed(Exception):
    """Raised when something cannot be measured: a peer or program is missing, a process fails, results differ."""


def pinocchio() -> Any:
    """Return the module Pinocchio, the peer of the dynamics' benchmarks.

    Raises:
        BenchmarkFailed: it does not load here.
    """
    try:
        return importlib.import_module("pinocchio")
    except ImportError as error:
        raise BenchmarkFailed(
            f"Pinocchio, the peer, does not load: {error}; `./run test` fetches what it lacks"
        ) from error


def pinocchio_model(robot: Robot) -> Any:
    """Return Pinocchio's model of a robot's links, its joints revolute about z.

    Raises:
        BenchmarkFailed: Pinocchio does not load here.
    """
    library = pinocchio()
    model = library.Model()
    for i, joint in enumerate(robot.joints):
        model.addJoint(joint.parent + 1, library.JointModelRZ(), library.SE3(*joint.placement), joint.name)
        link = joint.link
        body = library.Inertia(link.mass, np.array(link.center_of_mass), np.array(link.inertia_about_center_of_mass))
        model.appendBodyToJoint(i + 1, body, library.SE3.Identity())
    model.gravity.linear = np.array(robot.gravity)
    return model
