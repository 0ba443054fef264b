"""Harmonic joints with known parameters, moved along a known motion: what their sensors would say."""

import dataclasses

import numpy as np

from jointbench.arrays import Array
from jointbench.excitation import Excitation, RestToRestFourier
from jointbench.identification import FitSettings
from jointbench.identification.drives import DriveSignals, GearTorque
from jointbench.identification.drives.prediction import exact_motor_torque
from jointbench.model import Robot, inverse_dynamics, load_robot
from jointbench.recording import Run
from jointbench.signals import moving_mask, rest_threshold
from jointbench.tests.identification.synthetic import FILTER, FOURIER, PERIOD_S, excitation, run_of

LINK_COULOMB, LINK_VISCOUS, SENSOR_OFFSET = 0.4, 0.8, 0.05
CURRENT_NOISE_NM = 0.125
"""Of a sample at the joint side: 10 mA x 0.124 N·m/A x 101."""
SENSOR_NOISE_NM = 0.02
"""0.08 N·m per ADC sample, 16 of them averaged."""

# Friction and rotor inertia as published for joints 1 to 3; stiffness of a size that this motion can show.
TRUE = np.array([
    [0.402, 1.578, 2.937, 0.515, 1 / 800, 0.03, 0.0],
    [0.304, 1.139, 7.870, 0.477, 1 / 800, -0.04, 0.0],
    [0.164, 0.822, 3.047, 0.638, 1 / 600, 0.02, 0.0],
    [0.266, 0.925, 2.721, 0.534, 1 / 400, 0.01, 0.0],
    [0.203, 1.916, 3.690, 0.123, 1 / 7000, -0.02, 0.0],
    [0.282, 0.795, 2.689, 0.614, 1 / 7000, 0.01, 0.0],
]).T  # fmt: skip


def arm(n_joints: int) -> Robot:
    """The first joints of cobot6."""
    robot = load_robot("cobot6")
    return dataclasses.replace(
        robot, joints=robot.joints[:n_joints], drives=robot.drives[:n_joints], home=robot.home[:n_joints]
    )


def motion(robot: Robot, seed: int, n: int = 4000, period: float = 10.0) -> tuple[Array, Array, Array, float]:
    """Link positions and derivatives of a Fourier motion, lively at 10 s a period, and the sample period."""
    basis = RestToRestFourier(5, period)
    weights = 5.0 / period * np.random.default_rng(seed).standard_normal((robot.n_joints, basis.size))
    plan = Excitation(robot.name, basis, np.array(robot.home), weights, float("nan"), (), seed)
    step = period / n
    return (*plan.evaluate(step * np.arange(n)), step)


def link_torque(robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """What the gears must push the links with."""
    assert robot.standard_parameters is not None
    rigid = inverse_dynamics(robot, q, dq, ddq, robot.standard_parameters)
    return rigid + LINK_COULOMB * np.sign(dq) + LINK_VISCOUS * dq


def signals(robot: Robot, seed: int, noise_seed: int | None = None, n: int = 4000) -> DriveSignals:
    """Signals of one period; torques as the sensors give them, noise in every sample unless the seed is None."""
    q, dq, ddq, step = motion(robot, seed, n)
    gear = GearTorque.sampled(link_torque(robot, q, dq, ddq), step)
    true = TRUE[:, : robot.n_joints]
    motor = exact_motor_torque(true, dq, ddq, gear)
    used = moving_mask(dq, rest_threshold(dq), guard=2)  # the differences of the Coulomb steps reach one sample
    used[:2] = used[-2:] = False
    sensed = gear.value + SENSOR_OFFSET
    if noise_seed is not None:
        rng = np.random.default_rng(noise_seed)
        motor = motor + CURRENT_NOISE_NM * rng.standard_normal(motor.shape)
        sensed = sensed + SENSOR_NOISE_NM * rng.standard_normal(motor.shape)
    return DriveSignals(q, dq, ddq, motor, used, step, GearTorque(sensed, gear.rate, gear.acceleration))


ARM = arm(3)
STIFF = TRUE[:, :3] * np.array([1, 1, 1, 1, 0, 1, 1])[:, None]
"""Without flexibility: a rigid gear passes the steps of Coulomb friction on, and no twist has their derivatives."""
LINK = FitSettings(position="link")
LINK_COUNTS = 524288


def recording(seed: int, motion_seed: int = 3, repeats: int = 2) -> Run:
    """A run of harmonic joints as their boards would send it: counted links, noisy torques, all torques filtered."""
    plan = excitation(ARM, motion_seed, FOURIER)
    ticks = round(plan.duration / PERIOD_S)
    q, dq, ddq = plan.evaluate(PERIOD_S * np.arange(ticks))
    gear = GearTorque.sampled(link_torque(ARM, q, dq, ddq), PERIOD_S)
    motor = exact_motor_torque(STIFF, dq, ddq, gear)
    q, gear_torque, motor = (np.tile(values, (repeats, 1)) for values in (q, gear.value, motor))
    rng = np.random.default_rng(seed)
    gear_torque = SENSOR_OFFSET + gear_torque + SENSOR_NOISE_NM * rng.standard_normal(q.shape)
    motor = motor + CURRENT_NOISE_NM * rng.standard_normal(q.shape)
    step = 2.0 * np.pi / LINK_COUNTS
    run = run_of(ARM, q, FILTER.apply(motor), plan=plan, repeats=repeats)
    samples = dataclasses.replace(
        run.samples, link_position=step * np.round(q / step), joint_torque=FILTER.apply(gear_torque)
    )
    return dataclasses.replace(run, samples=samples)
