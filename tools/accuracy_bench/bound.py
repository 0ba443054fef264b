"""The least that noise on the currents lets any unbiased estimate of the parameters err."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant import OVERSAMPLES
from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters, model_columns
from jointbench.excitation import Excitation
from jointbench.identification import FitSettings
from jointbench.signals import LowPass, moving_mask
from tools.accuracy_bench.arm import Arm


def cramer_rao(
    arm: Arm, excitation: Excitation, base: BaseParameters, repeats: int, moments: NDArray[np.bool_]
) -> Array:
    """Cramér–Rao bound of each base parameter, as a standard deviation.

    sigma_k = sqrt([F⁻¹]_kk),  F = Σ over playings, moments t and joints j of x_j(t) x_j(t)ᵀ / s_j².

    x_j(t) is the regressor of the true motion, and s_j² the variance of a tick's mean torque: that of an ADC sample,
    noise and rounding (a step squared over 12) together, divided by their number. So it counts what the converter
    gives, white, before any average and filter; what those lose, an estimate loses against the bound. Motion counts as
    known: encoders that only count make a true bound larger, so this one is a lower bound to it. Within a tick the
    regressor counts as that of its middle.

    Args:
        arm: whose boards it is for.
        excitation: as it was played.
        base: the parameters.
        repeats: playings.
        moments: ticks of one playing that count, per joint, shape (n, n_joints); from them the parameters can be told.

    Returns:
        Standard deviations, shape (rank,).

    Source: Kay, Fundamentals of Statistical Signal Processing: Estimation Theory, 1993, theorem 4.1 and sec. 3.9.
    """
    ticks = TICK * np.arange(len(moments))
    motion = excitation.evaluate(np.mod(ticks - 0.5 * TICK, excitation.duration))
    columns = base.project(model_columns(arm.robot, *motion)[0]).reshape(*moments.shape, base.rank)
    rows = (columns / torque_noise(arm)[:, None])[moments]
    scale = np.linalg.norm(rows, axis=0)  # columns differ by thousands
    information = repeats * ((rows / scale).T @ (rows / scale))
    return np.sqrt(np.diag(np.linalg.inv(information))) / scale


def torque_noise(arm: Arm) -> Array:
    """Standard deviation of a tick's mean torque by motor current, before the boards' filters [N·m], (n_joints,)."""
    step = np.array([2.0 * joint.current_range / 4096 for joint in arm.truth.joints])  # of 12 bits
    current = np.sqrt((arm.truth.sensors.current_noise**2 + step**2 / 12.0) / OVERSAMPLES)
    return current * np.abs([drive.torque_per_current for drive in arm.robot.drives])


def fitted_moments(excitation: Excitation, settings: FitSettings) -> NDArray[np.bool_]:
    """Ticks of one playing that a fit takes its rows from: away from its ends and from each joint's rest.

    Args:
        excitation: as it was played.
        settings: as the fit used them, nothing left open.

    Returns:
        Mask, shape (n, n_joints).
    """
    assert settings.cutoff_Hz is not None
    assert settings.velocity_threshold is not None
    assert settings.rest_guard is not None
    velocity = excitation.evaluate(TICK * np.arange(round(excitation.duration / TICK)))[1]
    used = moving_mask(velocity, np.array(settings.velocity_threshold), round(settings.rest_guard / TICK))
    ends = LowPass(settings.cutoff_Hz, TICK, settings.filter_order).settling
    used[:ends] = used[-ends:] = False
    return used
