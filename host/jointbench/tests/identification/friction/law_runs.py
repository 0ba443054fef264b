"""Recordings of a rigid robot whose joints rub by laws that are written out here once more."""

from collections.abc import Callable, Mapping

import numpy as np
from scipy import signal

from jointbench.arrays import Array
from jointbench.model import Robot, drive_columns, inverse_dynamics, model_parameter_names
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import (
    COUNTS_PER_JOINT_TURN,
    CURRENT_NOISE_A,
    FILTER,
    PERIOD_S,
    excitation,
    run_of,
    truth,
)

_WITHIN_TICK = 4

Friction = Callable[[Array, Array], Array]
"""Torque of velocity and load, shape (n,) each."""


def stribeck(coulomb: float, rise: float, viscous: float, speed: float) -> Friction:
    def torque(v: Array, load: Array) -> Array:
        return np.sign(v) * (coulomb + rise * np.exp(-((v / speed) ** 2))) + viscous * v

    return torque


def makkar(g1: float, g4: float, g6: float, g2: float, g3: float, g5: float) -> Friction:
    def torque(v: Array, load: Array) -> Array:
        return g1 * (np.tanh(g2 * v) - np.tanh(g3 * v)) + g4 * np.tanh(g5 * v) + g6 * v

    return torque


def loaded(coulomb: float, viscous: float, share: float) -> Friction:
    def torque(v: Array, load: Array) -> Array:
        return np.sign(v) * (coulomb + share * np.abs(load)) + viscous * v

    return torque


def truth_without_friction(robot: Robot, joints: Mapping[str, Friction]) -> Array:
    """Full parameters, in which the joints with a law have no other friction."""
    values = truth(robot)
    for k, name in enumerate(model_parameter_names(robot)):
        joint, _, quantity = name.partition(".")
        if joint in joints and quantity in ("viscous", "coulomb"):
            values[k] = 0.0
    return values


def law_torque(robot: Robot, joints: Mapping[str, Friction], q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of links, drives and laws of a motion."""
    full = truth_without_friction(robot, joints)
    first = 10 * robot.n_links
    columns, names = drive_columns(robot, dq, ddq)
    loading = np.array([not name.endswith((".viscous", ".coulomb")) for name in names])
    torque = inverse_dynamics(robot, q, dq, ddq, full[:first])
    load = torque + (columns @ np.where(loading, full[first:], 0.0)).reshape(torque.shape)
    torque = torque + (columns @ full[first:]).reshape(torque.shape)
    for name, friction in joints.items():
        j = robot.joint_index(name)
        torque[:, j] += friction(dq[:, j], load[:, j])
    return torque


def law_run(
    robot: Robot, joints: Mapping[str, Friction], *, motion_seed: int, noise_seed: int, repeats: int = 2,
    noise: float = CURRENT_NOISE_A,
) -> Run:  # fmt: skip
    """A motion played `repeats` times by boards that average over a tick and filter, as `synthetic_run`."""
    plan = excitation(robot, motion_seed)
    ticks = round(plan.duration / PERIOD_S)
    position = plan.evaluate(PERIOD_S * np.arange(ticks))[0]
    instants = PERIOD_S * (np.arange(ticks)[:, None] + (np.arange(_WITHIN_TICK) + 0.5) / _WITHIN_TICK - 1.0).ravel()
    torque = law_torque(robot, joints, *plan.evaluate(instants)).reshape(ticks, _WITHIN_TICK, -1).mean(axis=1)
    rng = np.random.default_rng(noise_seed)
    position, torque = np.tile(position, (repeats, 1)), np.tile(torque, (repeats, 1))
    step = 2.0 * np.pi / COUNTS_PER_JOINT_TURN
    position = step * np.round(position / step + rng.uniform(-0.5, 0.5, robot.n_joints))
    per_current = np.array([drive.torque_per_current for drive in robot.drives])
    torque = torque + noise * per_current * rng.standard_normal(torque.shape)
    for b, a in FILTER.sections:
        torque = signal.lfilter(b, a, torque, axis=0, zi=signal.lfilter_zi(b, a)[:, None] * torque[:1])[0]
    return run_of(robot, position, torque, plan=plan, repeats=repeats)
