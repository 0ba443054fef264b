"""A biped on one foot by the equations of motion: what its corner sensors read, as a run and as a stance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import (
    FreeBaseMotion,
    floating_inverse_dynamics,
    floating_standard_parameters,
    forward_kinematics,
)
from jointbench.identification.zero_moment_point.measured_point import SensorSheet, nuisance_names
from jointbench.identification.zero_moment_point.stance import Stance, stance_of
from jointbench.recording import Run, Samples
from jointbench.robot import Foot, Robot, load_robot
from jointbench.signals import LowPass

TICK_S, EVERY = 0.001, 8
PERIOD_S = TICK_S * EVERY
"""Of what boards send: each eighth tick."""

NOISE_N = 0.5
"""Of a corner's sample."""

SHEET = SensorSheet()
LOW_PASS = LowPass(3.0, PERIOD_S)


@dataclass(frozen=True, eq=False)
class Sway:
    """A random smooth motion around home that stays far from falling.

    Attributes:
        time: [s], shape (n,), every PERIOD_S.
        q, dq, ddq: shape (n, n_joints).
    """

    time: Array
    q: Array
    dq: Array
    ddq: Array


@lru_cache(maxsize=1)
def biped() -> Robot:
    return load_robot("gorobot2")


def nominal(robot: Robot) -> Array:
    parameters = floating_standard_parameters(robot)
    assert parameters is not None
    return parameters


def sway(robot: Robot, seed: int, duration: float = 30.0) -> Sway:
    """Sines of 0.05 to 0.6 Hz at each joint; ankles and hips of the leg that stands move little."""
    rng = np.random.default_rng(seed)
    time = PERIOD_S * np.arange(round(duration / PERIOD_S), dtype=np.float64)
    omega = 2.0 * np.pi * rng.uniform(0.05, 0.6, (8, robot.n_joints))
    size = np.where(np.arange(robot.n_joints) < 5, 0.012, 0.08) * rng.uniform(0.3, 1.0, omega.shape) / np.sqrt(8)
    angle = omega * time[:, None, None] + rng.uniform(0.0, 2.0 * np.pi, omega.shape)
    return Sway(
        time,
        np.array(robot.home) + (size * np.sin(angle)).sum(axis=1),
        (size * omega * np.cos(angle)).sum(axis=1),
        -(size * omega**2 * np.sin(angle)).sum(axis=1),
    )


def ground_forces(robot: Robot, foot: Foot, motion: Sway, parameters: Array, pulls: Array | None = None) -> Array:
    """Forces at the corners of a stiff sole that bear a motion, equally stiff ones [N], shape (n, 4).

    f_i = F (1/4 + x X_i/ΣX² + y Y_i/ΣY²) with the pressure at x, y from the middle. `pulls`: of a cable at each foot's
    link [N], shape (n_feet, 3), which the ground need not bear.
    """
    still = np.zeros((len(motion.q), 3))
    base = FreeBaseMotion(still, still, still - np.array(robot.gravity))
    wrench = floating_inverse_dynamics(robot, base, motion.q, motion.dq, motion.ddq, parameters)[:, :6]
    if pulls is not None:
        _, origins = forward_kinematics(robot, motion.q)
        for each, pull in zip(robot.feet, pulls, strict=True):
            arm = np.zeros_like(still) if each.joint < 0 else origins[:, each.joint]
            wrench[:, :3] -= pull
            wrench[:, 3:] -= np.cross(arm, pull)
    fx, fy, fz, nx, ny, _ = wrench.T
    height = foot.origin[2]
    point = np.stack([height * fx - ny, height * fy + nx], axis=1) / fz[:, None] - foot.origin[:2]
    shares = foot.points / (foot.points**2).sum(axis=0)
    return fz[:, None] * (0.25 + point @ shares.T)


def readings(forces: Array, nuisance: Array, seed: int, noise: float = NOISE_N) -> Array:
    """What sensors with these gain and zero errors (the first eight of the nuisance) read of forces."""
    drawn = noise * np.random.default_rng(seed).standard_normal(forces.shape)
    return forces * (1.0 + nuisance[:4]) + nuisance[4:8] + drawn


def drawn_nuisance(robot: Robot, foot: Foot, seed: int) -> Array:
    """Gains within ±1.5 %, zeros and pulls as in the data sheet, no give and no delay, in `nuisance_names`' order."""
    sigmas = SHEET.sigmas(robot)
    sigmas[-2:] = 0.0
    assert len(sigmas) == len(nuisance_names(robot, foot))
    unit = np.random.default_rng(seed).standard_normal(len(sigmas))
    unit[:4] = np.random.default_rng(seed).uniform(-np.sqrt(3.0), np.sqrt(3.0), 4)
    return sigmas * unit


def simulated_stance(
    robot: Robot | None = None,
    *,
    parameters: Array | None = None,
    motion: Sway | None = None,
    motion_seed: int = 0,
    noise_seed: int = 0,
    noise: float = NOISE_N,
    nuisance: Array | None = None,
    duration: float = 30.0,
    total_mass: float | None = None,
) -> Stance:
    """A stance of a biped with these parameters; without `nuisance` its sensors are exact but for noise."""
    robot = robot or biped()
    foot = robot.foot("r_foot")
    true = nominal(robot) if parameters is None else parameters
    motion = motion or sway(robot, motion_seed, duration)
    wrong = np.zeros(len(nuisance_names(robot, foot))) if nuisance is None else nuisance
    forces = ground_forces(robot, foot, motion, true, wrong[8:-2].reshape(-1, 3))
    return stance_of(
        robot, foot.name, motion.time, motion.q, motion.dq, motion.ddq,
        readings(forces, wrong, noise_seed, noise), float(true[::10].sum()) if total_mass is None else total_mass,
        low_pass=LOW_PASS,
    )  # fmt: skip


def simulated_run(robot: Robot, motion: Sway, forces: Array, swing: Array | None = None, counts: int = 524288) -> Run:
    """A run as boards record it: a row a tick, values in each eighth of them.

    Args:
        robot: with feet r_foot, which stands, and l_foot.
        motion: what was played from the first row on.
        forces: readings under r_foot [N], shape (n, 4).
        swing: readings under l_foot [N]; None: nothing but noise.
        counts: a turn of a link encoder.
    """
    rows = EVERY * len(motion.time)
    if swing is None:
        swing = NOISE_N * np.random.default_rng(99).standard_normal(forces.shape)
    step = 2.0 * np.pi / counts

    def sent(values: Array) -> Array:
        column = np.full((rows, *values.shape[1:]), np.nan)
        column[::EVERY] = values
        return column

    position = sent(step * np.round(motion.q / step))
    samples = Samples(
        time=TICK_S * np.arange(rows, dtype=np.float64), joint_names=robot.joint_names, motor_position=position + 0.01,
        link_position=position, motor_current=None, motor_torque=None, joint_torque=None, play_tick=np.arange(rows),
        valid=np.ones(position.shape, dtype=np.bool_), board_filters=None, sample_period=TICK_S,
        foot_names=("r_foot", "l_foot"), foot_force=sent(np.stack([forces, swing], axis=1)),
    )  # fmt: skip
    return Run(
        path=Path("simulated"), robot=robot, samples=samples, ledger=None, excitation=None, repeats=1,
        provenance={}, sha256="0" * 64, warnings=(),
    )  # fmt: skip
