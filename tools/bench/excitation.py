"""`./run bench excitation`: planning a motion, beside SLSQP with differences over Pinocchio.

The problem: a UR10 in the frames of its URDF, five harmonics in 10 s, at rest at home q = 0 where the motion begins and
ends, |q| <= π, the URDF's velocity limits, |ddq| <= 5 rad/s²; least condition number of the base regressor of the links
(150 samples, 900 x 36, columns not scaled).

Which of dependent columns make up the base regressor is a choice, and the least condition number depends on it much:
with the library's own choice, made for its readers, the same search comes to below 10. Here it is that of a QR
decomposition with column pivoting over 200 random samples, as is usual; first optima from random starts then lie
between 15 and 19, the peer's as ours.

The peer is SciPy's SLSQP with finite differences over Pinocchio's regressor, as MATLAB's fmincon would be used.
66 variables: per joint a constant, and five sine and cosine coefficients each. 18 equalities: position, velocity and
acceleration of every joint at the beginning. 18 inequalities: the largest of each over the samples.

Sources: ur_description of ROS-Industrial's universal_robot, ur10.urdf (placements, axes, velocity limits).
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.optimize import minimize

from jointbench.arrays import IDENTITY, Array, Matrix3, Vector3
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.excitation import (
    Excitation,
    ExcitationProblem,
    Objective,
    RestToRestFourier,
    local_search,
    plan_excitation,
    usable_limits,
)
from jointbench.model import BaseParameters, Drive, Joint, Link, Robot, base_parameters, regressor
from tools.bench.peers import pinocchio

HARMONICS, PERIOD, SAMPLES = 5, 10.0, 150
ACCELERATION = 5.0

_Y: Vector3 = (0.0, 1.0, 0.0)
_Z: Vector3 = (0.0, 0.0, 1.0)
_QUARTER_ABOUT_Y: Matrix3 = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0))
_JOINTS: tuple[tuple[str, Matrix3, Vector3, Vector3, float], ...] = (
    ("shoulder_pan", IDENTITY, (0.0, 0.0, 0.1273), _Z, 2.16),
    ("shoulder_lift", _QUARTER_ABOUT_Y, (0.0, 0.220941, 0.0), _Y, 2.16),
    ("elbow", IDENTITY, (0.0, -0.1719, 0.612), _Y, 3.15),
    ("wrist_1", _QUARTER_ABOUT_Y, (0.0, 0.0, 0.5723), _Y, 3.2),
    ("wrist_2", IDENTITY, (0.0, 0.1149, 0.0), _Z, 3.2),
    ("wrist_3", IDENTITY, (0.0, 0.0, 0.1157), _Y, 3.2),
)
_PIVOTING_SAMPLES = 200


def ur10() -> Robot:
    """The arm, kinematics alone; torque is of no matter here."""
    joints = tuple(
        Joint(
            name, "revolute", i - 1, rotation, origin, (-math.pi, math.pi), velocity, ACCELERATION, 100.0,
            Link(f"{name}_link"), axis,
        )
        for i, (name, rotation, origin, axis, velocity) in enumerate(_JOINTS)
    )  # fmt: skip
    drives = tuple(Drive(joint.name, joint.name, "direct", 100.0, 0.1, 10.0) for joint in joints)
    return Robot("UR10", joints, drives, (), (0.0, 0.0, -9.81), (0.0,) * 6, "ur_description", "UR10 arm")


def pivoted_base(robot: Robot) -> BaseParameters:
    """The links' base parameters, led by the columns that pivoting chooses; their names are those of the leaders."""
    base = base_parameters(robot, drives=False)
    q, dq, ddq = np.random.default_rng(0).standard_normal((3, _PIVOTING_SAMPLES, robot.n_joints))
    order = qr(regressor(robot, q, dq, ddq), mode="r", pivoting=True)[1]
    return replace(base, columns=np.sort(order[: base.rank]))


def problem_of(robot: Robot) -> ExcitationProblem:
    """Return the planner's problem; all of each limit may be used."""
    return ExcitationProblem(
        RestToRestFourier(HARMONICS, PERIOD),
        np.array(robot.home),
        usable_limits(robot, motion_share=1.0),
        Objective.of(robot, pivoted_base(robot)),
        SAMPLES,
    )


# Pinocchio orders the inertia Ixx, Ixy, Iyy, Ixz, Iyz, Izz: where each of our ten is in its.
_ORDER = np.array([0, 1, 2, 3, 4, 5, 7, 6, 8, 9])
_ITERATIONS = 500


@dataclass(frozen=True, eq=False)
class PeerFound:
    """Result of the peer.

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
        BenchmarkFailed: Pinocchio does not load here.
    """

    def __init__(self, problem: ExcitationProblem) -> None:
        library: Any = pinocchio()
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
        """Search from feasible weights to the first local optimum."""
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


WORKERS = 2
FINER = 10
ITERATIONS = 150
RESERVE = 0.25
"""Seconds of a time limit that are left for what comes after the search: last proofs, margins, other processes."""
_ROUNDS = 5
_MANY = 100_000
_GRID_STEP = 1e-3


@dataclass(frozen=True)
class FirstOptimum:
    """Searches from one start to the first optimum, both ways.

    Attributes:
        seed: of the start.
        start, ours: condition number there, and at our optimum, whose limits are certain between samples too.
        seconds: that ours took, this process alone; the middle of rounds before and after the peer's.
        peer: what the peer came to.
    """

    seed: int
    start: float
    ours: float
    seconds: float
    peer: PeerFound

    @property
    def times_sooner(self) -> float:
        """The peer's time divided by ours."""
        return self.peer.seconds / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values."""
        return {**asdict(self), "times_sooner": self.times_sooner}


@dataclass(frozen=True)
class Planned:
    """A plan in limited time.

    Attributes:
        seed, time_limit: it was asked for with, the latter in [s], of which RESERVE is not for the search.
        seconds: that the call took.
        value: condition number, as NumPy has it from the plan's own motion.
        violations: how often a joint is beyond a limit, on a grid ten times as fine as the one that margins are of.
        searches: that ended.
        progress: (seconds, best so far) whenever it became better.
    """

    seed: int
    time_limit: float
    seconds: float
    value: float
    violations: int
    searches: int
    progress: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def reached(self, value: float) -> float:
        """Seconds until a value was reached; not a number where it was not."""
        return next((seconds for seconds, best in self.progress if best <= value), float("nan"))


def first_optimum(problem: ExcitationProblem, peer: Peer, seed: int) -> FirstOptimum:
    """Both from the random motion that a plan with this seed begins with."""
    first = problem.random(np.random.default_rng((seed, 0)))
    seconds: list[float] = []

    def ours() -> float:
        began = time.perf_counter()
        found = local_search(problem, first, ITERATIONS)
        seconds.append(time.perf_counter() - began)
        return found.value

    before = [ours() for _ in range(_ROUNDS)]
    theirs = peer.run(problem, first)
    after = [ours() for _ in range(_ROUNDS)]
    return FirstOptimum(seed, problem.value(first), max(before + after), float(np.median(seconds)), theirs)


def warm_up(problem: ExcitationProblem) -> None:
    """Start the processes that search, and have them load the kernels."""
    _plan(problem, 0, None, 2 * WORKERS, _Log())


def planned(problem: ExcitationProblem, seed: int, time_limit: float) -> Planned:
    """One plan on two processes."""
    log = _Log()
    excitation = _plan(problem, seed, time_limit - RESERVE, _MANY, log)
    seconds = log.seconds
    return Planned(
        seed, time_limit, seconds, condition(problem, excitation), violations(problem, excitation), len(log.starts),
        log.progress,
    )  # fmt: skip


def condition(problem: ExcitationProblem, excitation: Excitation) -> float:
    """Condition number of the base regressor, from the motion itself."""
    motion = excitation.evaluate(problem.basis.sample_times(problem.samples))
    return float(np.linalg.cond(problem.objective.information.columns(motion)))


def violations(problem: ExcitationProblem, excitation: Excitation) -> int:
    """Count positions, velocities and accelerations beyond their limits on a fine grid."""
    robot = problem.objective.information.robot
    q, dq, ddq = excitation.evaluate(np.arange(0.0, excitation.duration, _GRID_STEP / FINER))
    low, high = robot.position_limits.T
    broken = (q < low) | (q > high), np.abs(dq) > robot.velocity_limits, np.abs(ddq) > robot.acceleration_limits
    return int(sum(each.sum() for each in broken))


class _Log:
    """What a plan tells on its way."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.starts: set[int] = set()
        self.progress: list[tuple[float, float]] = []

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def __call__(self, start: int, iterations: int, best: float) -> None:
        self.starts.add(start)
        if not self.progress or best < self.progress[-1][1]:
            self.progress.append((self.seconds, best))


def _plan(problem: ExcitationProblem, seed: int, time_limit: float | None, starts: int, log: _Log) -> Excitation:
    robot = problem.objective.information.robot
    return plan_excitation(
        robot, HARMONICS, PERIOD, SAMPLES, seed=seed, time_limit=time_limit, starts=starts, iterations=ITERATIONS,
        progress=log, base=pivoted_base(robot), motion_share=1.0, workers=WORKERS,
    )  # fmt: skip


SEEDS = 3
TIMES_SOONER = 50.0
LEAST_WITHIN = {5.0: 14.5, 20.0: 14.2}


def bench(options: argparse.Namespace, console: Console) -> Result:
    """First optima beside the peer's, and plans in 5 and 20 seconds.

    Raises:
        BenchmarkFailed: there is no Pinocchio.
    """
    problem = problem_of(ur10())
    peer = Peer(problem)
    seeds = range(options.seed, options.seed + SEEDS)
    console.say("starting the processes, and loading or compiling the kernels")
    warm_up(problem)
    firsts: list[FirstOptimum] = []
    for seed in seeds:
        console.say(f"seed {seed}: to the first optimum, ours and SLSQP's with differences over Pinocchio")
        firsts.append(first_optimum(problem, peer, seed))
    console.say(first_table(firsts))
    plans: list[Planned] = []
    for time_limit in LEAST_WITHIN:
        for seed in seeds:
            console.say(f"seed {seed}: a plan in {time_limit:g} s on {WORKERS} processes")
            plans.append(planned(problem, seed, time_limit))
    console.say(plan_table(plans, firsts))
    checks = make_checks(firsts, plans)
    fields: dict[str, Any] = {
        "first_optimum": [each.to_dict() for each in firsts],
        "plans": [asdict(each) for each in plans],
        "workers": WORKERS,
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "versions": {"pinocchio": peer.version}
        | {name: metadata.version(name) for name in ("numpy", "scipy", "numba")},
    }
    return Result("bench excitation", options.seed, checks, fields)


def make_checks(firsts: Sequence[FirstOptimum], plans: Sequence[Planned]) -> tuple[Check, ...]:
    """Checks against the limits."""
    sooner = [
        Check(f"seed {each.seed}: first optimum, times as soon as SLSQP", each.times_sooner, ">=", TIMES_SOONER)
        for each in firsts
    ]
    within: list[Check] = []
    for each in plans:
        name = f"seed {each.seed}, {each.time_limit:g} s"
        within += [
            Check(f"{name}: condition number", each.value, "<=", LEAST_WITHIN[each.time_limit]),
            Check(f"{name}: taken", each.seconds, "<=", each.time_limit, "s"),
            Check(f"{name}: violations on the finer grid", each.violations, "==", 0),
        ]
    return (*sooner, *within)


def first_table(firsts: Sequence[FirstOptimum]) -> str:
    """A line per start."""
    rows = [
        [
            f"{each.seed}", f"{each.start:.1f}", f"{each.ours:.2f}", f"{each.seconds:.3f}", f"{each.peer.value:.2f}",
            f"{each.peer.seconds:.1f}", f"{each.peer.evaluations}", f"{each.times_sooner:.0f}",
        ]
        for each in firsts
    ]  # fmt: skip
    heads = ("first optimum", "start", "ours", "seconds", "SLSQP", "seconds", "evaluations", "times as soon")
    return table(heads, rows)


def plan_table(plans: Sequence[Planned], firsts: Sequence[FirstOptimum]) -> str:
    """A line per plan; how soon it was as good as where the peer's own search from the same start ended."""
    of_peer = {each.seed: each.peer.value for each in firsts}
    rows = [
        [
            f"{each.time_limit:g} s, seed {each.seed}", f"{each.value:.2f}", f"{each.violations}", f"{each.searches}",
            f"{each.seconds:.2f}", f"{each.reached(of_peer[each.seed]):.2f}",
        ]
        for each in plans
    ]  # fmt: skip
    return table(("plan", "condition", "violations", "searches", "seconds", "as good as SLSQP's after"), rows)
