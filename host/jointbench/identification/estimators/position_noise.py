"""What noise of measured positions does to a regressor, found by adding more of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import hadamard

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.moved_run import measured, measured_positions, with_positions
from jointbench.identification.estimators.paired_rows import PairedRows
from jointbench.identification.estimators.problem import Problem
from jointbench.identification.observations import observe
from jointbench.identification.settings import FitSettings
from jointbench.recording.run import Run
from jointbench.signals import valid_spans

_ORDER = 4
_GAIN = 70.0
"""Sum of the squared weights of a fourth difference, 1 4 6 4 1: its variance in white noise of variance 1."""

_LEAST_DRAWS = 8
"""Of the noise, each of which has exactly its share of power at every frequency."""


def position_noise(run: Run, settings: FitSettings) -> Array:
    """Deviation of white noise in a run's positions [rad or m], shape (n_joints,), from their fourth differences.

    Those of motion at frequency f are (2 pi f h)⁴ times as large as the motion, 1e-6 at 5 Hz and a thousand samples a
    second, while those of noise are 8 times as large as the noise.

    Raises:
        FitError: the run has no five samples in a row.
    """
    position = measured_positions(run, settings)
    spans = valid_spans(measured(run, settings), min_length=_ORDER + 1)
    differences = [np.diff(position[span], _ORDER, axis=0) for span in spans]
    if not differences:
        raise FitError(f"run {run.path} has no {_ORDER + 1} samples in a row, from which noise of positions is told")
    whole = np.vstack(differences)
    return np.sqrt(np.mean(whole**2, axis=0) / _GAIN)


def regressor_errors(problem: Problem, deviations: Sequence[Array], seed: int) -> Array:
    """Sum over the rows used of the products of the regressor's errors, of each part and joint.

    The errors are those of the regressor of the run with as much noise again, less its own: to first order they are of
    the same kind as those that it has, filters, averages and poses included.

    Args:
        problem: with the runs.
        deviations: of white noise of positions, of each run, shape (n_joints,) each.
        seed: of the noise.

    Returns:
        Σ_k e_kj e_kjᵀ, shape (n_parts * n_joints, p, p).
    """
    rng = np.random.default_rng(seed)
    joints, p = problem.robot.n_joints, problem.base.rank
    products = np.zeros((len(problem.runs) * joints, p, p))
    for number, (run, observed, part) in enumerate(zip(problem.runs, problem.observations, problem.parts, strict=True)):
        position = measured_positions(run, observed.settings)
        of_run, draws = products[number * joints : (number + 1) * joints], 0
        for draw in noise_draws(rng, *position.shape):
            draws += 1
            noisy = with_positions(run, position + deviations[number] * draw)
            rows = PairedRows(part, observe(noisy, problem.robot, problem.base, observed.settings))
            for pair in rows.pairs():
                for joint in range(joints):
                    used = pair.used[:, joint]
                    errors = pair.other[used, joint] - pair.measured[used, joint]
                    of_run[joint] += errors.T @ errors
        of_run /= draws
    return products


def noise_draws(rng: np.random.Generator, n: int, joints: int) -> Iterator[Array]:
    """Noises of deviation 1 for all joints, shape (n, joints) each.

    The same for each joint but for signs that make products of any two joints' noises cancel over the draws, as they do
    on average.
    """
    signs = hadamard(1 << (joints - 1).bit_length())[:, :joints]
    for _ in range(-(-_LEAST_DRAWS // len(signs))):
        base = flat_noise(rng, n, joints)
        yield from (base * sign for sign in signs)


def flat_noise(rng: np.random.Generator, n: int, columns: int) -> Array:
    """Noise of deviation 1 with random phases and the same power at all frequencies, shape (n, columns).

    White noise has that on average only: of what a filter lets through of it the squares vary from draw to draw.
    """
    spectrum = np.sqrt(n) * np.exp(2j * np.pi * rng.random((n // 2 + 1, columns)))
    spectrum[0] = np.sqrt(n) * rng.choice([-1.0, 1.0], columns)
    if n % 2 == 0:
        spectrum[-1] = np.sqrt(n) * rng.choice([-1.0, 1.0], columns)
    return np.fft.irfft(spectrum, n, axis=0)
