"""A run of harmonic joints, as their boards would send it."""

import dataclasses

import numpy as np

from jointbench.identification import FitSettings
from jointbench.identification.drives import GearTorque
from jointbench.identification.drives.prediction import exact_motor_torque
from jointbench.recording import Run
from jointbench.tests.identification.drives.simulated_joints import (
    CURRENT_NOISE_NM,
    SENSOR_NOISE_NM,
    SENSOR_OFFSET,
    TRUE,
    arm,
    link_torque,
)
from jointbench.tests.identification.synthetic import FILTER, FOURIER, PERIOD_S, excitation, run_of

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
