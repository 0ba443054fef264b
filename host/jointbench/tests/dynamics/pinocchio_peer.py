"""Pinocchio's word on any robot: axes in any direction, and joints that follow others by the chain rule.

Pinocchio moves every joint by itself; torques of what follows come to what it follows by the rates of its position.
"""

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.robot import Robot

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")

# Pinocchio orders the inertia Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
_ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


class Peer:
    """One robot as Pinocchio's, its links with their inertia where they have one."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._model: Any = pinocchio.Model()
        kinds = {"revolute": pinocchio.JointModelRevoluteUnaligned, "prismatic": pinocchio.JointModelPrismaticUnaligned}
        for i, joint in enumerate(robot.joints):
            moving = kinds[joint.kind](np.array(joint.axis))
            self._model.addJoint(joint.parent + 1, moving, pinocchio.SE3(*joint.placement), joint.name)
            link = joint.link
            if link.mass is not None:
                body = pinocchio.Inertia(
                    link.mass, np.array(link.center_of_mass), np.array(link.inertia_about_center_of_mass)
                )
                self._model.appendBodyToJoint(i + 1, body, pinocchio.SE3.Identity())
        self._model.gravity.linear = np.array(robot.gravity)
        self._data: Any = self._model.createData()
        index, factor, self._offset = robot.coordinates
        self._rates = factor[:, None] * np.eye(robot.n_joints)[index]

    def torques(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Inverse dynamics, shape (n_samples, n_joints)."""
        return np.array(
            [pinocchio.rnea(self._model, self._data, *each) @ self._rates for each in self._whole(q, dq, ddq)]
        )

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """W in our order of rows and parameters."""
        links = self._robot.n_links
        rows: list[Array] = []
        for each in self._whole(q, dq, ddq):
            theirs = pinocchio.computeJointTorqueRegressor(self._model, self._data, *each)
            ours = theirs.reshape(links, links, 10)[:, :, _ORDER].reshape(links, -1)
            rows.append(self._rates.T @ ours)
        return np.concatenate(rows)

    def _whole(self, q: Array, dq: Array, ddq: Array) -> Iterator[tuple[Array, Array, Array]]:
        return zip(q @ self._rates.T + self._offset, dq @ self._rates.T, ddq @ self._rates.T, strict=True)
