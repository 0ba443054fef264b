"""The peer: SciPy's SLSQP with finite differences over Pinocchio's regressor, as MATLAB's fmincon would be used.

66 variables: per joint a constant, and five sine and cosine coefficients each. 18 equalities: position, velocity and
acceleration of every joint at the beginning. 18 inequalities: the largest of each over the samples.
"""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from jointbench.arrays import Array
from jointbench.excitation import ExcitationProblem
from tools.excitation_bench.problem import ACCELERATION, HARMONICS, PERIOD
from tools.regressor_bench.errors import PeerMissing

# Pinocchio orders the inertia Ixx, Ixy, Iyy, Ixz, Iyz, Izz: where each of our ten is in its.
_ORDER = np.array([0, 1, 2, 3, 4, 5, 7, 6, 8, 9])
_ITERATIONS = 500


@dataclass(frozen=True, eq=False)
class PeerFound:
    """What the peer came to.

    Attributes:
        value: condition number.
        seconds: that it took.
        broken: share of a limit by which the worst is exceeded, at the samples; at most 0 where all are kept.
        evaluations: of the regressor and its condition number.
    """

    value: float
    seconds: float
    broken: float
    evaluations: int


class Peer:
    """One problem as its users would write it.

    Raises:
        PeerMissing: Pinocchio does not load here.
    """

    def __init__(self, problem: ExcitationProblem) -> None:
        try:
            library: Any = importlib.import_module("pinocchio")
        except ImportError as error:
            raise PeerMissing(
                f"Pinocchio, the peer, does not load: {error}; `./run test` fetches what it lacks"
            ) from error
        self.version: str = library.__version__
        information = problem.objective.information
        robot, columns = information.robot, information.base.columns
        self._model = library.Model()
        for joint in robot.joints:
            kind = library.JointModelRY() if joint.axis[1] else library.JointModelRZ()
            self._model.addJoint(joint.parent + 1, kind, library.SE3(*joint.placement), joint.name)
        self._model.gravity.linear = np.array(robot.gravity)
        self._data = self._model.createData()
        self._compute = library.computeJointTorqueRegressor
        self._columns = columns // 10 * 10 + _ORDER[columns % 10]
        self._n = robot.n_joints
        self._full = np.empty((problem.samples, self._n, 10 * self._n))
        self._sampled = _series(problem.basis.sample_times(problem.samples))
        self._begin = _series(np.zeros(1))
        self._limits = np.array([np.full(self._n, np.pi), robot.velocity_limits, np.full(self._n, ACCELERATION)])
        self.evaluations = 0

    def condition(self, x: Array) -> float:
        """Condition number of the base regressor."""
        self.evaluations += 1
        q, dq, ddq = self._motion(self._sampled, x)
        compute, model, data = self._compute, self._model, self._data
        for k in range(len(q)):
            self._full[k] = compute(model, data, q[k], dq[k], ddq[k])
        return float(np.linalg.cond(self._full.reshape(-1, self._full.shape[2])[:, self._columns]))

    def run(self, problem: ExcitationProblem, weights: Array) -> PeerFound:
        """From feasible weights to the first local optimum."""
        first = self.variables(problem, weights)
        self.evaluations = 0
        began = time.perf_counter()
        result = minimize(
            lambda x: np.log(self.condition(x)),
            first,
            method="SLSQP",
            constraints=(
                {"type": "eq", "fun": lambda x: self._motion(self._begin, x).ravel()},
                {"type": "ineq", "fun": self._left},
            ),
            options={"maxiter": _ITERATIONS},
        )
        seconds = time.perf_counter() - began
        return PeerFound(float(np.exp(result.fun)), seconds, -float(self._left(result.x).min()), self.evaluations)

    def variables(self, problem: ExcitationProblem, weights: Array) -> Array:
        """The variables of a motion: q0, sine and cosine coefficients of each joint."""
        times = problem.basis.sample_times(problem.samples)
        position = problem.home + problem.basis.evaluate(times, 0)[0] @ weights.T
        # The motion is such a series, so least squares find its coefficients exactly.
        return np.linalg.lstsq(self._sampled[0], position, rcond=None)[0].T.ravel()

    def _motion(self, series: Array, x: Array) -> Array:
        return series @ x.reshape(self._n, -1).T

    def _left(self, x: Array) -> Array:
        return (1.0 - np.abs(self._motion(self._sampled, x)).max(axis=1) / self._limits).ravel()


def _series(times: Array) -> Array:
    """Position, velocity and acceleration of each term: 1, sin(ωlt)/(ωl), -cos(ωlt)/(ωl); (3, n_times, 11)."""
    frequencies = 2.0 * np.pi / PERIOD * np.arange(1, HARMONICS + 1)
    angle = np.outer(times, frequencies)
    sin, cos, one = np.sin(angle), np.cos(angle), np.ones((len(times), 1))
    series = np.empty((3, len(times), 1 + 2 * HARMONICS))
    series[0] = np.hstack([one, sin / frequencies, -cos / frequencies])
    series[1] = np.hstack([0.0 * one, cos, sin])
    series[2] = np.hstack([0.0 * one, -sin * frequencies, cos * frequencies])
    return series
