"""Times in turns: the peer, our kernels, and filling an array of the regressor's size.

Every turn is taken twice in a row, and the second counts: one batch after the other is what all of them are for, and
whoever came before would otherwise leave one the caches warm and the other cold.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import inverse_dynamics, normal_equations, regressor
from jointbench.robot import Robot
from tools.regressor_bench.peer import Peer

PEER, REGRESSOR, FILL, TORQUES, NORMAL = "Pinocchio's loop", "regressor", "fill", "inverse dynamics", "normal equations"
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
        """How many times as long one takes as the other in the same round, in the middle of the rounds."""
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
        FILL: lambda: out.fill(1.0),
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
