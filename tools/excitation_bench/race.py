"""First optima from the same starts, and plans in limited time."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from jointbench.excitation import Excitation, ExcitationProblem, local_search, plan_excitation
from tools.excitation_bench.peer import Peer, PeerFound
from tools.excitation_bench.problem import HARMONICS, PERIOD, SAMPLES, pivoted_base

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
    """From one start to the first optimum, both ways.

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
        """How many times as long the peer took."""
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
    """How many positions, velocities and accelerations are beyond their limits on a fine grid."""
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
