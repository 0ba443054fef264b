"""Robots whose parameters are known, and noisy estimates of them."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.physical import BaseEstimate
from jointbench.identification.physical.pseudo_inertia import reference_bodies, standard_parameters
from jointbench.model import Robot, base_parameters, model_columns


@dataclass(frozen=True, eq=False)
class Case:
    """An estimate, the true parameters it is of, and the data: rows and torques divided by σ."""

    estimate: BaseEstimate
    truth: Array
    rows: Array
    torque: Array


def possible_truth(robot: Robot, rng: np.random.Generator, spread: float = 0.2) -> Array:
    """Links that are the robot's own bodies, each deformed at random, and positive friction and rotor inertia."""
    bodies = reference_bodies(robot)
    links = np.zeros((robot.n_links, 10))
    for link, matrix in zip(bodies.links, bodies.matrices, strict=True):
        root = np.linalg.cholesky(matrix) @ (np.eye(4) + spread * rng.normal(size=(4, 4)))
        links[link] = standard_parameters(root @ root.T)
    n_drives = base_parameters(robot).n_full - links.size
    return np.concatenate([links.ravel(), rng.uniform(0.1, 2.0, n_drives)])


def noisy_case(robot: Robot, noise: float, seed: int) -> Case:
    """Torques of random motion, with noise of a share of their root mean square, and the least-squares estimate."""
    rng = np.random.default_rng(seed)
    base, rows = _base_and_rows(robot)
    truth = possible_truth(robot, rng)
    torque = rows @ base.group(truth)
    sigma = noise * float(np.sqrt(np.mean(torque**2)))
    torque = torque + sigma * rng.standard_normal(len(torque))
    covariance = sigma**2 * np.linalg.inv(rows.T @ rows)
    values = np.linalg.lstsq(rows, torque)[0]
    return Case(BaseEstimate.of_covariance(base, values, covariance), truth, rows / sigma, torque / sigma)


@lru_cache(maxsize=8)
def _base_and_rows(robot: Robot):
    rng = np.random.default_rng(99)
    q = rng.uniform(-2.0, 2.0, (250, robot.n_joints))
    dq, ddq = rng.standard_normal((2, 250, robot.n_joints))
    base = base_parameters(robot)
    rows = base.project(model_columns(robot, q, dq, ddq)[0])
    moved = np.abs(rows).max(axis=1) > 0.0  # rows of passive joints are zero
    return base, rows[moved]
