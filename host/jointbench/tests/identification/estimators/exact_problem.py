"""A problem whose every property is known: an arm's exact motion, its parameters, and noise that is drawn."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.estimators import Problem
from jointbench.identification.rows import Block, MotionRows
from jointbench.model import BaseParameters, base_parameters
from jointbench.tests.identification.synthetic import FOURIER, arm, excitation, truth

ARM = arm(3)
NOISE = np.array([0.4, 0.15, 0.05])
"""Standard deviation of each joint's torque [N·m]."""

SAMPLES = 600


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
