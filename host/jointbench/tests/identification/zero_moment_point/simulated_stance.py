"""Simulated stances of a biped, planned ones and those of drawn bodies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation import plan_single_support
from jointbench.identification.physical.pseudo_inertia import pseudo_inertia, standard_parameters
from jointbench.identification.zero_moment_point import ReducedParameters
from jointbench.identification.zero_moment_point.full_estimate import mirror_images
from jointbench.identification.zero_moment_point.measured_point import SensorSheet, nuisance_names
from jointbench.identification.zero_moment_point.stance import Stance, stance_of
from jointbench.model import (
    Foot,
    FreeBaseMotion,
    Robot,
    floating_inverse_dynamics,
    floating_standard_parameters,
    forward_kinematics,
    load_robot,
)
from jointbench.recording import Run, Samples
from jointbench.signals import LowPass


@dataclass(frozen=True, eq=False)
class Taylor:
    """A value with its exact first and second derivatives by p variables.

    Attributes:
        value: shape ().
        gradient: shape (p,).
        hessian: shape (p, p).
    """

    value: float
    gradient: Array
    hessian: Array

    @staticmethod
    def variables(point: Array) -> list[Taylor]:
        n = len(point)
        return [Taylor(float(each), np.eye(n)[i], np.zeros((n, n))) for i, each in enumerate(point)]

    def __add__(self, other: Taylor | float) -> Taylor:
        if not isinstance(other, Taylor):
            return Taylor(self.value + other, self.gradient, self.hessian)
        return Taylor(self.value + other.value, self.gradient + other.gradient, self.hessian + other.hessian)

    def __mul__(self, other: Taylor | float) -> Taylor:
        if not isinstance(other, Taylor):
            return Taylor(self.value * other, self.gradient * other, self.hessian * other)
        crossed = np.outer(self.gradient, other.gradient)
        return Taylor(
            self.value * other.value,
            self.value * other.gradient + other.value * self.gradient,
            self.value * other.hessian + other.value * self.hessian + crossed + crossed.T,
        )

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Taylor | float) -> Taylor:
        return self + -1.0 * other

    def __truediv__(self, other: Taylor) -> Taylor:
        inverse = 1.0 / other.value
        curved = 2.0 * inverse**3 * np.outer(other.gradient, other.gradient) - inverse**2 * other.hessian
        return self * Taylor(inverse, -(inverse**2) * other.gradient, curved)


def drawn_bodies(robot: Robot, seed: int, spread: float = 0.08) -> Array:
    """pi of bodies stretched and moved at random: P' = (E + D) P (E + D)ᵀ is the pseudo-inertia of a body too."""
    rng = np.random.default_rng(seed)
    parameters = nominal(robot).reshape(-1, 10).copy()
    for k, body in enumerate(parameters):
        turn = np.eye(4) + spread * rng.standard_normal((4, 4))
        turn[:3, 3] *= 0.05  # metres beside numbers
        parameters[k] = standard_parameters(turn @ pseudo_inertia(body) @ turn.T)
    for image in mirror_images(robot):
        parameters[image.link] = image.turn @ parameters[image.source]
    return parameters.ravel()


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


TRUTH = np.array([0.275, 0.22, 0.09, 0.032, 9.5, 3.8, 3.2, 1.4])
"""Off the robot's file so that its zero-moment point is 35 mm off, as the paper's is by CAD."""

TOTAL_MASS = 28.1
ROTARY_SHARE = 0.1
"""By which all rotary inertias are larger than CAD's."""


@lru_cache(maxsize=8)
def planned(seed: int, duration: float = 48.0) -> Sway:
    """Of a robot of which only the file is known."""
    excitation = plan_single_support(biped(), duration=duration, seed=seed)
    time = np.arange(round(duration / PERIOD_S)) * PERIOD_S
    return Sway(time.astype(np.float64), *excitation.evaluate(time))


def parameters(reduced: ReducedParameters) -> Array:
    """All that the true robot's motion follows from."""
    doubts = ROTARY_SHARE * reduced.rotary_terms.sum(axis=1) if reduced.rotary == "cad" else 0.0
    return reduced.standard(TRUTH) + doubts


def stood(
    seed: int, *, rotary: bool = True, nuisance: Array | None = None, noise: float = NOISE_N, noise_seed: int = 0
) -> Stance:
    """The true robot on a planned motion; without `rotary` its links are points."""
    reduced = ReducedParameters(biped(), "cad" if rotary else "none")
    return simulated_stance(
        parameters=parameters(reduced), motion=planned(seed), nuisance=nuisance, noise=noise, noise_seed=noise_seed
    )
