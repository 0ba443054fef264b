"""Recordings whose positions are noisy, and what estimators make of them."""

import dataclasses

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation import RestToRestFourier
from jointbench.identification.estimators.estimator import Problem
from jointbench.identification.observations import observe
from jointbench.identification.settings import FitSettings
from jointbench.model import BaseParameters, Robot, base_parameters
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import arm, synthetic_run, truth

ROBOT = arm(2)
BASE = base_parameters(ROBOT)
TRUTH = BASE.group(truth(ROBOT))
BASIS = RestToRestFourier(4, 4.0)
TORQUE_NOISE_A = 0.1
"""So much that what the friction of a joint that turns back leaves in the rows does not count beside it."""
POORLY_FILTERED = FitSettings(cutoff_Hz=40.0)
"""Ten times what the motion needs: two derivatives make as much of the noise as of the motion."""


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


def problem_of(*runs: Run, settings: FitSettings = POORLY_FILTERED, robot: Robot = ROBOT) -> Problem:
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
