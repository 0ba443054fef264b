"""Velocities and accelerations from measured positions."""

from dataclasses import dataclass

import numpy as np
import scipy  # each of its parts is imported where it is first used: all take a second

from jointbench.arrays import Array
from jointbench.signals.low_pass import LowPass

_MOTION_SHARE = 0.99
"""Share of the velocity's power that counts as the motion. The last percent may be noise and vibration: an encoder's
steps alone hold more than a thousandth of it in slow or coarsely measured motion."""

_MEDIAN_OF = 5
"""Samples of the median that tells what is steady beside a doubled sample and the double step behind it."""

_JUMP = 0.25
"""Share of a joint's largest steady speed by which a jump differs from the median; an encoder's steps
stay below in all but the coarsest recordings."""

_ROUNDING = 1e-9
"""Share of the largest step below which the steady speed is rounding: an encoder so coarse tells no steady motion."""


@dataclass(frozen=True)
class Motion:
    """Joint positions and their derivatives, shape (n, n_joints) each [rad, rad/s, rad/s²; or m for sliding joints]."""

    q: Array
    dq: Array
    ddq: Array


def smooth_motion(position: Array, low_pass: LowPass) -> Motion:
    """Positions smoothed without delay, and their derivatives by central differences.

    dq[k] = (q[k+1] - q[k-1]) / 2h and ddq[k] = (q[k+1] - 2 q[k] + q[k-1]) / h², both of the filtered q: one chain
    for all three, so that they belong to each other. At frequency f the differences lack (2 pi f h)²/6 and /12.

    Args:
        position: [rad or m], shape (n, n_joints), sampled evenly and without gaps.
        low_pass: its `sample_period` is h.

    Returns:
        The motion, same length; edges as in `LowPass.apply`.

    Raises:
        SignalError: too few samples for the filter.

    Source: Gautier, Numerical calculation of the base inertial parameters, and later works: "bandpass" derivatives.
    """
    q = low_pass.apply(position)
    dq = np.gradient(q, low_pass.sample_period, axis=0)
    ddq = np.empty_like(q)
    ddq[1:-1] = (q[2:] - 2.0 * q[1:-1] + q[:-2]) / low_pass.sample_period**2
    ddq[0], ddq[-1] = ddq[1], ddq[-2]
    return Motion(q, dq, ddq)


def bandwidth(position: Array, sample_period: float) -> float:
    """Frequency [Hz] below which 99 % of the velocity's power lies, over all joints together.

    Each joint counts alike (its spectrum is scaled to its own power); joints that do not move count nothing. What one
    sample does and the next takes back is no motion: steps of lost or doubled samples are left out.

    Args:
        position: [rad or m], shape (n, n_joints), without gaps, n >= 3; or pieces of a long log, whose power is added,
            shape (n_pieces, n, n_joints).
        sample_period: [s].

    Returns:
        The frequency; the resolution 1/(n h) where nothing moves.
    """
    velocity = np.diff(position, axis=-2)
    steady = scipy.ndimage.median_filter(velocity, _MEDIAN_OF, mode="mirror", axes=(velocity.ndim - 2,))
    fastest = np.abs(steady).max(axis=-2, keepdims=True)
    jumps = (np.abs(velocity - steady) > _JUMP * fastest) & (
        fastest > _ROUNDING * np.abs(velocity).max(axis=-2, keepdims=True)
    )
    velocity = np.where(jumps, steady, velocity) * np.hanning(velocity.shape[-2])[:, None]
    power = np.abs(np.fft.rfft(velocity, axis=-2)) ** 2
    frequencies = np.fft.rfftfreq(velocity.shape[-2], sample_period)
    power = power.reshape(-1, *power.shape[-2:]).sum(axis=0)
    total = power.sum(axis=0)
    moving = total > 0.0
    if not np.any(moving):
        return float(frequencies[1])
    cumulated = np.cumsum((power[:, moving] / total[moving]).mean(axis=1))
    return float(frequencies[max(1, int(np.searchsorted(cumulated, _MOTION_SHARE)))])
