"""Recordings of a robot that is exactly rigid with Coulomb and viscous friction, as its boards would send them."""

import dataclasses
import hashlib
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import signal

from jointbench.arrays import Array
from jointbench.excitation import Basis, Excitation, RestToRestFourier
from jointbench.model import (
    Robot,
    compensation_columns,
    drive_columns,
    inverse_dynamics,
    load_robot,
    model_parameter_names,
)
from jointbench.recording import Run, Samples
from jointbench.signals import BoardFilter, butterworth_sections, dequantise_biquad

PERIOD_S = 0.001
COUNTS_PER_JOINT_TURN = 4096 * 101
CURRENT_NOISE_A = 0.010
"""Of a decimated sample: 40 mA per ADC sample, 16 of them averaged."""

_WITHIN_TICK = 4
"""Instants per tick at which torque is evaluated; each stands for four of the ADC's samples."""

_TRIANGLE = np.array([10, 26, 42, 58, 54, 38, 22, 6]) / 256
"""What four by four of the decimator's weights add up to: 1 to 16 in the tick before, 15 to 0 in this one."""


def butterworth_filter(order: int, cutoff_Hz: float, cic_order: int = 1) -> BoardFilter:
    """A board's filter as it is designed for boards; the ADC's window fills the tick."""
    sections = butterworth_sections(order, cutoff_Hz, 1.0 / PERIOD_S)
    pairs = tuple(map(dequantise_biquad, sections))
    return BoardFilter(sections=pairs, cic_order=cic_order, window=PERIOD_S, sample_period=PERIOD_S)


FILTER = butterworth_filter(2, 100.0)


def arm(n_joints: int = 3) -> Robot:
    """The first joints of cobot6, which may go where the lively motions take them: three are enough for most."""
    robot = load_robot("cobot6")
    free = [
        dataclasses.replace(joint, position_limits=(-4.0 * np.pi, 4.0 * np.pi), velocity_limit=10.0)
        for joint in robot.joints
    ]
    robot = dataclasses.replace(robot, joints=tuple(free))
    return dataclasses.replace(
        robot,
        joints=robot.joints[:n_joints],
        drives=robot.drives[:n_joints],
        home=robot.home[:n_joints],
        capsules=tuple(capsule for capsule in robot.capsules if capsule.joint < n_joints),
    )


def truth(robot: Robot) -> Array:
    """Full parameters of links and drives, in the order of `model_parameter_names`."""
    drive = {"rotor_inertia": 1.3, "viscous": 9.0, "coulomb": 6.0, "offset": 0.4}
    values: list[float] = []
    for name in model_parameter_names(dataclasses.replace(robot, compensations=()))[10 * robot.n_links :]:
        joint, kind = name.split(".")
        values.append(drive[kind] / (1.0 + 0.4 * robot.joint_index(joint)))
    assert robot.standard_parameters is not None
    return np.concatenate([robot.standard_parameters, values])


FOURIER = RestToRestFourier(5, 10.0)


def excitation(robot: Robot, seed: int, basis: Basis = FOURIER) -> Excitation:
    """A lively motion around home; limits do not matter here."""
    weights = 0.45 * np.random.default_rng(seed).standard_normal((robot.n_joints, basis.size))
    return Excitation(robot.name, basis, np.array(robot.home), weights, float("nan"), (), seed)


def synthetic_run(
    robot: Robot,
    *,
    motion_seed: int,
    noise_seed: int,
    repeats: int = 2,
    noise: float = CURRENT_NOISE_A,
    counts_per_turn: float | None = COUNTS_PER_JOINT_TURN,
    full_parameters: Array | None = None,
    board_filter: BoardFilter = FILTER,
    basis: Basis = FOURIER,
    plan: Excitation | None = None,
) -> Run:
    """A motion, or `plan`, played `repeats` times; None for `counts_per_turn` is an encoder without quantisation."""
    values = tuple(truth(robot) if full_parameters is None else full_parameters)
    if plan is None:
        plan = excitation(robot, motion_seed, basis)
        position, within_ticks = _one_playing(robot, motion_seed, values, basis)
    else:
        position, within_ticks = _playing(robot, plan, values)
    torque = within_ticks.mean(axis=1)
    if board_filter.cic_order == 2:
        torque = np.einsum("j,tjn->tn", _TRIANGLE, np.hstack([np.roll(within_ticks, 1, axis=0), within_ticks]))
    rng = np.random.default_rng(noise_seed)
    position, torque = np.tile(position, (repeats, 1)), np.tile(torque, (repeats, 1))
    if counts_per_turn is not None:
        step = 2.0 * np.pi / counts_per_turn
        # An encoder's zero lies anywhere between two counts.
        position = step * np.round(position / step + rng.uniform(-0.5, 0.5, robot.n_joints))
    per_current = np.array([drive.torque_per_current for drive in robot.drives])
    torque = torque + noise * per_current * rng.standard_normal(torque.shape)
    for b, a in board_filter.sections:
        start = signal.lfilter_zi(b, a)[:, None] * torque[:1]
        torque = signal.lfilter(b, a, torque, axis=0, zi=start)[0]
    return run_of(robot, position, torque, plan=plan, repeats=repeats, board_filter=board_filter)


def run_of(
    robot: Robot,
    position: Array,
    torque: Array,
    *,
    plan: Excitation | None,
    repeats: int,
    board_filter: BoardFilter = FILTER,
) -> Run:
    n = len(position)
    samples = Samples(
        time=PERIOD_S * np.arange(n, dtype=np.float64), joint_names=robot.joint_names,
        motor_position=position, link_position=None, motor_current=None, motor_torque=torque, joint_torque=None,
        play_tick=np.arange(n) if plan else np.full(n, -1), valid=np.ones(position.shape, dtype=np.bool_),
        board_filters=(board_filter,) * robot.n_joints, sample_period=PERIOD_S,
    )  # fmt: skip
    return Run(
        path=Path("synthetic"), robot=robot, samples=samples, ledger=None, excitation=plan, repeats=repeats,
        provenance={"seed": 0}, sha256=hashlib.sha256(position.tobytes() + torque.tobytes()).hexdigest(), warnings=(),
    )  # fmt: skip


def as_log(run: Run) -> Run:
    """The same as somebody's log, of which neither plan nor boards' filters are known."""
    play_tick = np.full(run.samples.n_samples, -1)
    samples = dataclasses.replace(run.samples, board_filters=None, play_tick=play_tick)
    return dataclasses.replace(run, samples=samples, excitation=None, repeats=0)


@lru_cache(maxsize=8)
def _one_playing(
    robot: Robot, motion_seed: int, full_parameters: tuple[float, ...], basis: Basis
) -> tuple[Array, Array]:
    return _playing(robot, excitation(robot, motion_seed, basis), full_parameters)


def _playing(robot: Robot, plan: Excitation, full_parameters: tuple[float, ...]) -> tuple[Array, Array]:
    """Position at the ticks of a motion played once, and the torque at instants within the tick before each."""
    ticks = round(plan.duration / PERIOD_S)
    q = plan.evaluate(PERIOD_S * np.arange(ticks))[0]
    fractions = (np.arange(_WITHIN_TICK) + 0.5) / _WITHIN_TICK - 1.0
    instants = PERIOD_S * (np.arange(ticks)[:, None] + fractions).ravel()
    motion = plan.evaluate(instants)
    parameters = np.array(full_parameters)
    torque = inverse_dynamics(robot, *motion, parameters[: 10 * robot.n_links])
    columns = np.hstack([drive_columns(robot, *motion[1:])[0], compensation_columns(robot, *motion)[0]])
    torque = torque + (columns @ parameters[10 * robot.n_links :]).reshape(torque.shape)
    return q, torque.reshape(ticks, _WITHIN_TICK, -1)
