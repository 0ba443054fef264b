"""A recording as the paper of system E prepares it: what its own way is judged on."""

from __future__ import annotations

import numpy as np

from jointbench import FitSettings, Run
from jointbench.identification.drives import DriveSignals, GearTorque
from jointbench.identification.observations.recorded_signals import recorded_signals
from jointbench.signals import LowPass, cubic_smooth, moving, rest_threshold

SAMPLE_PERIOD = 0.01
PASSES = 20
CUTOFF_HZ = 5.0
"""Of the Butterworth filter on differenced positions: none is printed. The house's own of the same recordings."""


def printed_signals(run: Run) -> DriveSignals:
    """Periods averaged, 10 ms samples, torques through twenty passes of the five-point cubic smoother, positions
    differenced and low-passed.

    Positions of the links go through the boards' filter of the torques first, so that both are late alike; the paper
    does not say whether its torques were late.

    Source: Zhang & Ding, Information and Control 52(3):292, 2023.
    """
    motor, joint = (
        recorded_signals(run, run.robot, FitSettings(position="link", torque=side)) for side in ("motor", "joint")
    )
    step = round(SAMPLE_PERIOD / motor.sample_period)
    late = np.stack([board.apply(motor.position[:, j]) for j, board in enumerate(motor.board_filters)], axis=1)
    q = late[::step]
    low_pass = LowPass(CUTOFF_HZ, SAMPLE_PERIOD)
    dq = low_pass.apply(np.gradient(q, SAMPLE_PERIOD, axis=0))
    ddq = np.gradient(dq, SAMPLE_PERIOD, axis=0)
    used = moving(dq, rest_threshold(dq), round(0.5 / CUTOFF_HZ / SAMPLE_PERIOD))
    used[: low_pass.settling] = used[-low_pass.settling :] = False
    return DriveSignals(
        q, dq, ddq, cubic_smooth(motor.torque[::step], PASSES), used & (motor.valid & joint.valid)[::step, None],
        SAMPLE_PERIOD, GearTorque.sampled(cubic_smooth(joint.torque[::step], PASSES), SAMPLE_PERIOD),
    )  # fmt: skip
