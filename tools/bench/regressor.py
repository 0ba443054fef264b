"""`./run bench regressor`: the dynamics' kernels, beside Pinocchio.

Every turn is taken twice in a row, and the second counts: one batch after the other is what all of them are for, and
whoever came before would otherwise leave one the caches warm and the other cold.

Sources: UR10, "Parameters for calculations of kinematics and dynamics", Universal Robots (Denavit-Hartenberg rows, here
shifted to the modified form); Panda, Franka Control Interface documentation, "Robot and interface specifications".
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.model import Drive, Joint, Link, Robot, inverse_dynamics, modified_dh, normal_equations, regressor
from tools.bench.peers import BenchmarkFailed, pinocchio

_Q = math.pi / 2
_UR10 = (
    (0.0, 0.0, 0.1273),
    (_Q, 0.0, 0.0),
    (0.0, -0.612, 0.0),
    (0.0, -0.5723, 0.163941),
    (_Q, 0.0, 0.1157),
    (-_Q, 0.0, 0.0922),
)
_PANDA = (
    (0.0, 0.0, 0.333),
    (-_Q, 0.0, 0.0),
    (_Q, 0.0, 0.316),
    (_Q, 0.0825, 0.0),
    (-_Q, -0.0825, 0.384),
    (_Q, 0.0, 0.0),
    (_Q, 0.088, 0.0),
)


def robots() -> tuple[Robot, Robot]:
    """UR10 and Panda."""
    return _arm("UR10", _UR10), _arm("Panda", _PANDA)


def _arm(name: str, rows: tuple[tuple[float, float, float], ...]) -> Robot:
    """A chain of revolute joints, (alpha [rad], a [m], d [m]) each; its limits are of no matter here."""
    joints: list[Joint] = []
    for i, (alpha, a, d) in enumerate(rows):
        rotation, origin = modified_dh(alpha, a, d, 0.0)
        link = Link(f"link{i + 1}")
        joint = Joint(f"j{i + 1}", "revolute", i - 1, rotation, origin, (-math.pi, math.pi), 2.0, 5.0, 100.0, link)
        joints.append(joint)
    drives = tuple(Drive(joint.name, joint.name, "direct", 100.0, 0.1, 10.0) for joint in joints)
    home = (0.0,) * len(joints)
    return Robot(name, tuple(joints), drives, (), (0.0, 0.0, -9.81), home, "its maker's documentation", f"{name} arm")


# Pinocchio orders the inertia Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
_ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


class Peer:
    """The loop over the samples of one robot.

    Raises:
        BenchmarkFailed: Pinocchio does not load here.
    """

    def __init__(self, robot: Robot) -> None:
        self._library: Any = pinocchio()
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


PEER, REGRESSOR, TORQUES, NORMAL = "Pinocchio's loop", "regressor", "inverse dynamics", "normal equations"
_SECONDS = 4.0
_ROUNDS = (5, 101)


@dataclass(frozen=True, eq=False)
class Times:
    """Seconds of each method in each of several rounds, in which all took their turn.

    Attributes:
        robot: its name.
        n_samples: in a batch.
        seconds: by method, shape (n_rounds,) each.
    """

    robot: str
    n_samples: int
    seconds: dict[str, Array]

    def rate(self, method: str) -> float:
        """Samples a second, in the middle of the rounds."""
        return self.n_samples / float(np.median(self.seconds[method]))

    def ratio(self, method: str, other: str) -> float:
        """Median over the rounds of the ratio of both times in a round."""
        return float(np.median(self.seconds[method] / self.seconds[other]))

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values."""
        rates = {method: self.rate(method) for method in self.seconds}
        return {"robot": self.robot, "samples": self.n_samples, "samples_per_s": rates, "seconds": self.seconds}


def race(robot: Robot, n_samples: int, seed: int, rounds: int | None = None) -> Times:
    """Times of all methods on one random batch; one array takes all results, as in a loop over batches.

    Args:
        robot: the robot.
        n_samples: in the batch.
        seed: of the motion.
        rounds: how many; by default as many as go into some seconds, an odd number.
    """
    n, peer = robot.n_joints, Peer(robot)
    q, dq, ddq, tau = np.random.default_rng(seed).normal(size=(4, n_samples, n))
    out = np.zeros((n_samples * n, 10 * n))
    by_sample = out.reshape(n_samples, n, 10 * n)
    torques, parameters = np.zeros_like(q), np.ones(10 * n)
    turns: dict[str, Callable[[], Any]] = {
        PEER: lambda: peer.fill(q, dq, ddq, by_sample),
        REGRESSOR: lambda: regressor(robot, q, dq, ddq, out=out),
        TORQUES: lambda: inverse_dynamics(robot, q, dq, ddq, parameters, out=torques),
        NORMAL: lambda: normal_equations(robot, q, dq, ddq, tau),
    }
    first = sum(_seconds(turn) for turn in turns.values())  # a round that warms up, and tells how long one takes
    least, most = _ROUNDS
    rounds = rounds or int(np.clip(_SECONDS / (2.0 * first), least, most)) // 2 * 2 + 1
    table = np.array([[_second_of_two(turn) for turn in turns.values()] for _ in range(rounds)])
    return Times(robot.name, n_samples, dict(zip(turns, table.T, strict=True)))


def disagreement(robot: Robot, seed: int, n_samples: int = 1000) -> float:
    """Largest difference to the peer's regressor, relative to its largest element."""
    q, dq, ddq = np.random.default_rng(seed).normal(size=(3, n_samples, robot.n_joints))
    theirs = Peer(robot).regressor(q, dq, ddq)
    return float(np.abs(regressor(robot, q, dq, ddq) - theirs).max() / np.abs(theirs).max())


def _second_of_two(turn: Callable[[], Any]) -> float:
    turn()
    return _seconds(turn)


def _seconds(turn: Callable[[], Any]) -> float:
    began = time.perf_counter()
    turn()
    return time.perf_counter() - began


_PROGRAM = """
import json, time
began = time.perf_counter()
import numpy as np
from jointbench.model import inverse_dynamics, regressor
from jointbench.model import load_robot
robot = load_robot("cobot6")
still = np.zeros((8, robot.n_joints))
imported = time.perf_counter()
regressor(robot, still, still, still)
inverse_dynamics(robot, still, still, still, np.ones(10 * robot.n_links))
called = time.perf_counter()
from jointbench.model.kernels import fill_regressor, fill_torques
kernels = [fill_regressor.stats, fill_torques.stats]
compiled = sum(sum(stats.cache_misses.values()) for stats in kernels)
loaded = sum(sum(stats.cache_hits.values()) for stats in kernels)
print(json.dumps({"imports_s": imported - began, "calls_s": called - imported, "compiled": compiled, "loaded": loaded}))
"""


@dataclass(frozen=True)
class Start:
    """One process.

    Attributes:
        imports_s: importing jointbench and loading a robot.
        calls_s: first calls of two kernels, the compiler's own import included.
        compiled: kernels that were compiled.
        loaded: kernels that came from disk.
    """

    imports_s: float
    calls_s: float
    compiled: int
    loaded: int


def two_starts() -> tuple[Start, Start]:
    """The first process on an empty cache folder, and another one after it.

    Raises:
        BenchmarkFailed: one ended with an error.
    """
    with tempfile.TemporaryDirectory(prefix="jointbench-") as folder:
        return _start(folder), _start(folder)


def _start(folder: str) -> Start:
    command = [sys.executable, "-c", _PROGRAM]
    environment = os.environ | {"NUMBA_CACHE_DIR": folder}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise BenchmarkFailed(f"a fresh process ended with {ended.returncode}: {ended.stderr.strip()[-400:]}")
    return Start(**json.loads(ended.stdout))


SIZES = (1_000, 10_000, 100_000)
TIMES_PEER = 1.0
DISAGREEMENT = 1e-10


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Both arms, all sizes, and two fresh processes.

    Raises:
        BenchmarkFailed: there is no Pinocchio.
        BenchmarkFailed: a fresh process ended with an error.
    """
    console.say("two processes on an empty cache")
    starts = two_starts()
    arms = robots()
    apart = {arm.name: disagreement(arm, options.seed) for arm in arms}
    times: list[Times] = []
    for arm in arms:
        for size in SIZES:
            console.say(f"{arm.name}, batches of {size} samples")
            times.append(race(arm, size, options.seed))
    console.say(times_table(times))
    console.say(starts_table(starts))
    checks = make_checks(times, apart, starts)
    fields: dict[str, Any] = {
        "times": [each.to_dict() for each in times],
        "starts": [asdict(start) for start in starts],
        "load": os.getloadavg(),
        "versions": {"pinocchio": Peer(arms[0]).version}
        | {name: metadata.version(name) for name in ("numpy", "numba")},
    }
    return Result("bench regressor", options.seed, checks, fields)


def make_checks(times: Sequence[Times], apart: Mapping[str, float], starts: tuple[Start, Start]) -> tuple[Check, ...]:
    """Checks against the limits."""
    checks: list[Check] = []
    for each in times:
        name = f"{each.robot}, {each.n_samples}"
        ratio = each.ratio(PEER, REGRESSOR)
        checks.append(Check(f"{name}: regressor, times as fast as Pinocchio", ratio, ">=", TIMES_PEER))
    checks += [Check(f"{name}: from Pinocchio", each, "<=", DISAGREEMENT) for name, each in apart.items()]
    first, second = starts
    return (
        *checks,
        Check("kernels the first process compiled", first.compiled, ">=", 2),
        Check("kernels the second process compiled", second.compiled, "==", 0),
        Check("kernels it had from disk", second.loaded, ">=", 2),
    )


def times_table(times: Sequence[Times]) -> str:
    """A line per batch: million samples a second, and the ratio that counts."""
    methods = list(times[0].seconds)
    rows = [
        [
            f"{each.robot}, {each.n_samples}",
            *(f"{each.rate(method) / 1e6:.2f}" for method in methods),
            f"{each.ratio(PEER, REGRESSOR):.1f}",
        ]
        for each in times
    ]
    return table(("M samples/s", *methods, "times peer"), rows)


def starts_table(starts: tuple[Start, Start]) -> str:
    """A line per process."""
    rows = [
        [name, f"{each.imports_s:.2f}", f"{each.calls_s:.2f}", f"{each.compiled}", f"{each.loaded}"]
        for name, each in zip(("first", "second"), starts, strict=True)
    ]
    return table(("process", "imports [s]", "first calls [s]", "compiled", "from disk"), rows)
