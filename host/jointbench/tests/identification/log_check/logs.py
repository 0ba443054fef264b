"""Logs of three robots that are right, and what makes each of them wrong."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.model import Robot, inverse_dynamics, load_robot
from jointbench.recording import Run, Samples, import_csv, propose_mapping

SHARED = Path(__file__).parents[6] / "shared" / "data"
PERIOD_S = 1e-3


def data_folder(name: str) -> Path:
    """Folder of a public recording; skips where it is absent, but fails in CI."""
    folder = SHARED / name
    if not folder.is_dir():
        reason = f"the public recording is not in ../shared/data/{name}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


def kinova_log(file: str, where: Path) -> Run:
    """A run of the Kinova recording, imported by the mapping that is proposed for it."""
    folder = data_folder("kinova_gen3")
    mapping = where / f"{file}.toml"
    mapping.write_text(propose_mapping(folder / "gen3.urdf", [folder / f"{file}.csv"], where).text, encoding="utf-8")
    return import_csv(mapping, where / file)


def tx40_log(where: Path) -> Run:
    """The TX40 recording, imported by the mapping that comes with the package."""
    return import_csv("tx40", where / "tx40", data=data_folder("staubli_tx40"))


def simulated_log(where: Path, name: str = "cobot6", seed: int = 3, off_by: float = 1.33) -> Run:
    """Ten seconds of a library robot inside its limits; its links are off the file's by a factor, as real ones are."""
    robot, rng = load_robot(name), np.random.default_rng(seed)
    time = PERIOD_S * np.arange(10_000)
    low, high = robot.position_limits.T
    reach = np.minimum(0.25 * (high - low), 1.0)
    most = 0.8 * robot.velocity_limits / reach
    angular = np.minimum(2.0 * np.pi * (0.1 + 0.05 * np.arange(robot.n_joints)), most)
    q = (low + high) / 2.0 + reach * np.sin(np.outer(time, angular) + rng.uniform(0.0, 2.0 * np.pi, robot.n_joints))
    dq = np.gradient(q, PERIOD_S, axis=0)
    ddq = np.gradient(dq, PERIOD_S, axis=0)
    assert robot.standard_parameters is not None
    factors = np.exp(np.log(off_by) * rng.uniform(-1.0, 1.0, robot.n_links))
    links = robot.standard_parameters * np.repeat(factors, 10)
    friction = robot.torque_limits * (0.05 * np.tanh(dq / (0.02 * most * reach)) + 0.03 * dq)
    torque = inverse_dynamics(robot, q, dq, ddq, links) + friction
    torque += 0.02 * robot.torque_limits * rng.standard_normal(q.shape)
    counted = np.round(q / 1e-5) * 1e-5
    return log_of(where, robot, counted, torque, velocity=dq + 1e-3 * rng.standard_normal(q.shape))


def log_of(where: Path, robot: Robot, position: Array, torque: Array, velocity: Array | None = None) -> Run:
    """A run of these signals."""
    n = len(position)
    samples = Samples(
        time=PERIOD_S * np.arange(n, dtype=np.float64), joint_names=robot.joint_names, motor_position=position,
        link_position=None, motor_current=None, motor_torque=torque, joint_torque=None, play_tick=np.full(n, -1),
        valid=np.ones(position.shape, dtype=np.bool_), board_filters=None, sample_period=PERIOD_S,
        joint_velocity=velocity,
    )  # fmt: skip
    return Run(
        path=where, robot=robot, samples=samples, ledger=None, excitation=None, repeats=0, provenance={}, sha256="",
        warnings=(),
    )  # fmt: skip


def position_of(run: Run) -> Array:
    return np.array(run.samples.motor_position)


def torque_of(run: Run) -> Array:
    """Of the motors, at the joints."""
    assert run.samples.motor_torque is not None
    return np.array(run.samples.motor_torque)


def altered(
    run: Run, *, position: Array | None = None, torque: Array | None = None, velocity: Array | None = None
) -> Run:
    """The run with some signals changed; logged velocities and sensors would tell more, and are left out."""
    samples = replace(
        run.samples,
        motor_position=position_of(run) if position is None else position,
        motor_torque=torque_of(run) if torque is None else torque,
        joint_velocity=velocity,
        joint_torque=None,
    )
    return replace(run, samples=samples)


def exchanged(values: Array, i: int, j: int) -> Array:
    changed = values.copy()
    changed[:, [i, j]] = values[:, [j, i]]
    return changed


def turned(values: Array, j: int) -> Array:
    changed = values.copy()
    changed[:, j] *= -1.0
    return changed
