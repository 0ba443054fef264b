"""Problems whose every property is known: exact motions and torques of arms, with noise drawn on either."""

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation import RestToRestFourier
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.observations import observe
from jointbench.identification.rows import Block, MotionRows
from jointbench.identification.settings import FitSettings
from jointbench.model import BaseParameters, Robot, base_parameters
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import FOURIER, arm, excitation, synthetic_run, truth

ARM = arm(3)
NOISE = np.array([0.4, 0.15, 0.05])
"""Standard deviation of each joint's torque [N·m]."""

SAMPLES = 600

ROBOT = arm(2)
BASE = base_parameters(ROBOT)
TRUTH = BASE.group(truth(ROBOT))
BASIS = RestToRestFourier(4, 4.0)
TORQUE_NOISE_A = 0.1
"""So much that what the friction of a joint that turns back leaves in the rows does not count beside it."""
POORLY_FILTERED = FitSettings(cutoff_Hz=40.0)
"""Ten times what the motion needs: two derivatives make as much of the noise as of the motion."""


@lru_cache
def base() -> BaseParameters:
    return base_parameters(ARM)


@lru_cache
def exact_motion(samples: int = SAMPLES, seed: int = 1) -> tuple[Array, Array, Array]:
    q, dq, ddq = excitation(ARM, seed, FOURIER).evaluate(np.linspace(0.0, 10.0, samples, endpoint=False))
    return q, dq, ddq


def true_parameters() -> Array:
    return base().group(truth(ARM))


def exact_torque(motion: tuple[Array, Array, Array]) -> Array:
    rows = MotionRows(base(), *motion, np.zeros_like(motion[0]))
    return np.concatenate([block.predict(true_parameters()) for block in rows.blocks()])


def noisy_rows(seed: int, samples: int = SAMPLES, noise: Array = NOISE) -> MotionRows:
    motion = exact_motion(samples)
    drawn = noise * np.random.default_rng(seed).standard_normal(motion[0].shape)
    return MotionRows(base(), *motion, exact_torque(motion) + drawn)


def problem_of(*parts) -> Problem:
    return Problem(ARM, base(), (), (), tuple(parts))


def information(rows: MotionRows, noise: Array = NOISE) -> Array:
    """Fisher's, of white noise."""
    return sum(
        (columns @ columns.T / noise[joint] ** 2)
        for block in rows.blocks()
        for joint, columns in enumerate(block.regressor.transpose(1, 2, 0))
    )  # pyright: ignore[reportReturnType]


def bound(rows: MotionRows) -> Array:
    """Cramér and Rao's, standard deviations."""
    return np.sqrt(np.diag(np.linalg.inv(information(rows))))


@dataclass(frozen=True)
class InBlocks:
    """Rows in memory cut into blocks at places of their own."""

    whole: Block
    cuts: tuple[int, ...]

    @property
    def n_joints(self) -> int:
        return self.whole.torque.shape[1]

    @property
    def n_parameters(self) -> int:
        return self.whole.n_parameters

    def blocks(self):
        ends = (0, *self.cuts, len(self.whole.torque))
        for start, stop in pairwise(ends):
            part = slice(start, stop)
            whole = self.whole
            yield Block.of(
                whole.start + start, whole.regressor[part], whole.torque[part], whole.used[part], whole.complete[part]
            )


def noisy_run(position_noise: float, seed: int, *, repeats: int = 2, torque_noise: float = TORQUE_NOISE_A) -> Run:
    """A played motion, white noise added to the positions that were recorded [rad]."""
    run = synthetic_run(
        ROBOT, motion_seed=1, noise_seed=seed, repeats=repeats, noise=torque_noise, counts_per_turn=None, basis=BASIS
    )
    noise = position_noise * np.random.default_rng([seed, 1]).standard_normal(run.samples.motor_position.shape)
    return with_samples(run, motor_position=run.samples.motor_position + noise)


def with_samples(run: Run, **values: object) -> Run:
    """The run with other samples."""
    return dataclasses.replace(run, samples=dataclasses.replace(run.samples, **values))


def problem_of_runs(*runs: Run, settings: FitSettings = POORLY_FILTERED, robot: Robot = ROBOT) -> Problem:
    """What an estimator is given."""
    base = BASE if robot is ROBOT else base_parameters(robot)
    observations = tuple(observe(run, robot, base, settings) for run in runs)
    return Problem(robot, base, runs, observations, observations)


def z_of_mean(estimates: Array, expected: Array) -> Array:
    """Mean error of many independent estimates over its own standard error, per parameter."""
    spread = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    return (estimates.mean(axis=0) - expected) / spread


def cramer_rao(problem: Problem, torque_sigma: Array, base: BaseParameters = BASE) -> Array:
    """Least deviations of unbiased estimates from white torque noise, were the motion known exactly; shape (rank,)."""
    information = np.zeros((base.rank, base.rank))
    for part in problem.parts:
        for block in part.blocks():
            for joint, sigma in enumerate(torque_sigma):
                rows = block.regressor[block.used[:, joint], joint] / sigma
                information += rows.T @ rows
    return np.sqrt(np.diag(np.linalg.inv(information)))
