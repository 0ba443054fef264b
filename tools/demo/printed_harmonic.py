"""System E as its paper prints it: the preparation of the signals, both models, and the two ways of predicting.

Equations 6 to 24 are pictures in our copy; what stands here for them is said in docs/papers.md.

Source: Zhang & Ding, Information and Control 52(3):292, 2023.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from jointbench import FitSettings, Run
from jointbench.arrays import Array
from jointbench.identification.drives import DriveSignals, GearTorque, LinearTorque, RmsError, RowFilter
from jointbench.identification.drives.harmonic import rms_error
from jointbench.identification.drives.prediction import fit_linear_torque
from jointbench.identification.recorded_signals import recorded_signals
from jointbench.signals import LowPass, moving_mask, rest_threshold, savitzky_golay

SAMPLE_PERIOD = 0.01
PASSES = 20
CUTOFF_HZ = 5.0
"""Of the Butterworth filter on differenced positions: none is printed. The house's own of the same recordings."""


@dataclass(frozen=True)
class PrintedRows(RowFilter):
    """Rows as the paper filters a torque: every tenth sample, twenty passes of the five-point cubic smoother.

    Attributes:
        step: samples of the recording from row to row.
    """

    step: int = 1

    def joint_rows(self, values: Array, joint: int) -> Array:
        """A joint's values at the rows, shape (n, ...) to (n_rows, ...)."""
        late = self.board_filters[joint].apply(values) if self.board_filters else values
        return savitzky_golay(late[:: self.step], PASSES)


def printed_signals(run: Run) -> DriveSignals:
    """Periods averaged, 10 ms samples, torques smoothed, positions differenced and low-passed: all rows, at rest too.

    Positions of the links go through the boards' filter of the torques first, so that both are late alike; the paper
    does not say whether its torques were late.
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
    used = np.repeat((motor.valid & joint.valid)[::step, None], q.shape[1], axis=1)
    used[: low_pass.settling] = used[-low_pass.settling :] = False
    away = moving_mask(dq, rest_threshold(dq), round(0.5 / CUTOFF_HZ / SAMPLE_PERIOD))
    return DriveSignals(
        q, dq, ddq, savitzky_golay(motor.torque[::step], PASSES), used, SAMPLE_PERIOD,
        GearTorque.sampled(savitzky_golay(joint.torque[::step], PASSES), SAMPLE_PERIOD), moving=used & away,
    )  # fmt: skip


def on_printed_rows(signals: DriveSignals, printed: DriveSignals) -> DriveSignals:
    """The motion as we prepare it, and the torque at the paper's rows, smoothed as the paper's: its metric for ours.

    Args:
        signals: of a run without gaps.
        printed: of the same run.
    """
    assert signals.filter is not None
    step = round(SAMPLE_PERIOD / signals.sample_period)
    rows = PrintedRows(signals.filter.low_pass, signals.filter.board_filters, signals.filter.stretches, step)
    return dataclasses.replace(
        signals, motor_torque=printed.motor_torque, used=printed.used, moving=printed.moving, filter=rows
    )


@dataclass(frozen=True, eq=False)
class PrintedModel:
    """Both models of the paper, fitted.

    Attributes:
        links: torque at the sensors, eq. 14.
        simplified: torque of the motors, eq. 12.
        a: a1 … a5 of each joint, shape (5, n_joints).
    """

    links: LinearTorque
    simplified: LinearTorque
    a: Array

    def rms(self, signals: DriveSignals, *, measured: bool) -> tuple[RmsError, RmsError]:
        """RMS errors of the simplified and of the improved model, eq. 21 to 24.

        Args:
            signals: of any motion.
            measured: whether the measured motor torque stands in the load friction, as on the excitation (eq. 20); on
                new motion it is not known, and the simplified model's stands for it (eq. 24).
        """
        motion = (signals.q, signals.dq, signals.ddq)
        simplified = self.simplified.predict(*motion)
        gear = GearTorque.sampled(self.links.predict(*motion), signals.sample_period)
        stand_in = signals.motor_torque if measured else simplified
        difference = np.einsum("njc,cj->nj", columns(signals, gear, stand_in, self.a), self.a)
        errors = (simplified - signals.motor_torque, gear.value + difference - signals.motor_torque)
        first, second = (rms_error(error, signals.used, signals) for error in errors)
        return first, second


def fit_printed(run: Run, signals: DriveSignals) -> PrintedModel:
    """Identify as printed, by weighted least squares over all rows.

    1. tau_r = W [links, friction behind the sensor]; and the simplified model's tau_q = W [links, friction].
    2. tau_m - tau_r = a1 tau_m + a2 sgn q̇ + a3 q̇ + a4 q̈ + a5 (a3 dtau_r/dt + a4 d²tau_r/dt²), joint by joint. The
       last column holds a3 and a4, so it is built from those of the fit without it; our copy lacks the paper's way.
    """
    robot, gear = run.robot, signals.gear_torque
    assert gear is not None
    links = fit_linear_torque(robot, "link", signals, gear.value, signals.used)
    simplified = fit_linear_torque(robot, "motor", signals, signals.motor_torque, signals.used)
    a = np.zeros((5, robot.n_joints))
    missing = signals.motor_torque - gear.value
    for last in (4, 5):
        table = columns(signals, gear, signals.motor_torque, a)
        for j in range(robot.n_joints):
            rows = signals.used[:, j]
            a[:last, j] = np.linalg.lstsq(table[rows, j, :last], missing[rows, j])[0]
    return PrintedModel(links, simplified, a)


def columns(signals: DriveSignals, gear: GearTorque, motor_torque: Array, a: Array) -> Array:
    """The five columns of tau_m - tau_r, shape (n, n_joints, 5).

    Args:
        signals: of the motion.
        gear: tau_r and its derivatives.
        motor_torque: what stands for tau_m, signed, shape (n, n_joints).
        a: a3 and a4 of the last column, shape (5, n_joints).
    """
    twist = a[2] * gear.rate + a[3] * gear.acceleration
    return np.stack([motor_torque, np.sign(signals.dq), signals.dq, signals.ddq, twist], axis=2)
