"""Corner forces without the noise of their sensors, as the motion beside them tells it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.zero_moment_point.measured_point import corner_numerators
from jointbench.robot import Foot
from jointbench.signals import Motion

_TOLD = 1e-3
"""Combinations of parameters that move the forces by less than this share of what the strongest does tell noise."""


def told_parameters(foot: Foot, columns: Array, forces: Array, known: Array) -> Array:
    """Inertial parameters that give the forces under a foot at rest best: `known` where these do not tell.

    They are good for what this motion shows, and may be nobody's where it shows little.

    Args:
        foot: the support foot.
        columns: of numerators and vertical force, filtered like the forces, shape (n, 3, p).
        forces: at the corners [N], shape (n, 4).
        known: beforehand, shape (p,).
    """
    told = columns.reshape(-1, len(known))
    size = np.sqrt(np.mean(told**2, axis=0))
    size[size == 0.0] = 1.0
    missing = (forces @ corner_numerators(foot)).ravel() - told @ known
    return known + np.linalg.lstsq(told / size, missing, rcond=_TOLD)[0] / size


def smooth_forces(
    foot: Foot, columns: Array, parameters: Array, forces: Array, rows: NDArray[np.intp], sample_period: float
) -> Motion:
    """Forces at some rows, and their derivatives.

    Numerators and vertical force are those of the parameters, and so nearly without noise. What corners read beside
    these three, one against another, stays as it is.

    Args:
        foot: the support foot.
        columns: of numerators and vertical force at all samples, filtered like the forces, shape (n, 3, p).
        parameters: of `told_parameters`, shape (p,).
        forces: at the corners [N], shape (len(rows), 4).
        rows: samples they are of.
        sample_period: of the columns [s].

    Returns:
        Forces [N], their first [N/s] and second derivatives [N/s²], shape (len(rows), 4) each.
    """
    by_corner = corner_numerators(foot)
    to_corners = np.linalg.pinv(by_corner)
    smooth = columns @ parameters
    rate = np.gradient(smooth, sample_period, axis=0)
    curvature = np.gradient(rate, sample_period, axis=0)
    noise = forces @ by_corner - smooth[rows]
    return Motion(forces - noise @ to_corners, rate[rows] @ to_corners, curvature[rows] @ to_corners)
