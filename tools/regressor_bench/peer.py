"""Pinocchio's regressor, sample by sample, as its users call it from Python."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.robot import Robot
from tools.regressor_bench.errors import PeerMissing

# Pinocchio orders the inertia Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
_ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


class Peer:
    """The loop over the samples of one robot.

    Raises:
        PeerMissing: Pinocchio does not load here.
    """

    def __init__(self, robot: Robot) -> None:
        try:
            self._library: Any = importlib.import_module("pinocchio")
        except ImportError as error:
            raise PeerMissing(
                f"Pinocchio, the peer, does not load: {error}; `./run test` fetches what it lacks"
            ) from error
        self.version: str = self._library.__version__
        self._model = self._library.Model()
        for joint in robot.joints:
            placement = self._library.SE3(*joint.placement)
            self._model.addJoint(joint.parent + 1, self._library.JointModelRZ(), placement, joint.name)
        self._model.gravity.linear = np.array(robot.gravity)
        self._data = self._model.createData()

    def fill(self, q: Array, dq: Array, ddq: Array, out: Array) -> None:
        """Fill W, parameters in Pinocchio's order, shape (n_samples, n_joints, 10 * n_joints)."""
        compute, model, data = self._library.computeJointTorqueRegressor, self._model, self._data
        for k in range(len(q)):
            out[k] = compute(model, data, q[k], dq[k], ddq[k])

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """W as ours is: rows of all samples, parameters in our order."""
        n = q.shape[1]
        out = np.empty((len(q), n, 10 * n))
        self.fill(q, dq, ddq, out)
        return out.reshape(len(q), n, n, 10)[..., _ORDER].reshape(len(q) * n, 10 * n)
