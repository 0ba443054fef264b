"""How residuals are spread over frequencies: flat where they are noise, in peaks where the model lacks something."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from jointbench.arrays import Array
from jointbench.identification import Validation
from jointbench.results.joint_panels import shown_rows

_SEGMENTS = 4
"""Of a record without overlap: more would say less of slow motion, fewer would leave the line ragged."""
_SHORTEST, _LONGEST = 64, 1024
"""Rows of a segment."""


@dataclass(frozen=True, eq=False)
class Spectra:
    """Root of each joint's power density; nan where no row counts.

    Attributes:
        frequency: [Hz], without zero, up to half the rate of the rows, shape (n,).
        torque: of the measured torque's changes, all complete rows [N·m/√Hz or N/√Hz], shape (n, n_joints).
        residual: of measured less predicted torque where the joint moves, of that shape and unit.
    """

    frequency: Array
    torque: Array
    residual: Array


def residual_spectra(validation: Validation) -> Spectra:
    """Return the spectra of a validation by Welch's mean over half-overlapping segments.

    As for the whiteness, rows that do not count are taken for zero; the density is divided by the share of the others.

    Source: Welch, IEEE Trans. Audio and Electroacoustics 15(2), 1967.
    """
    part = shown_rows(validation)
    complete, moving = validation.complete[part], validation.moving[part]
    measured, predicted = validation.measured[part], validation.predicted[part]
    rate = 1.0 / float(np.median(np.diff(validation.time[part])))
    middle = measured[complete].mean(axis=0)
    frequency, torque = _density(measured - middle, np.broadcast_to(complete[:, None], moving.shape), rate)
    _, residual = _density(measured - predicted, moving, rate)
    return Spectra(frequency, torque, residual)


def _density(values: Array, counted: NDArray[np.bool_], rate: float) -> tuple[Array, Array]:
    """Frequencies and root of power density of the rows that count, both without frequency zero."""
    rows = len(values)
    segment = min(rows, max(_SHORTEST, min(_LONGEST, rows // _SEGMENTS)))
    frequency, power = signal.welch(np.where(counted, values, 0.0), rate, nperseg=segment, detrend=False, axis=0)
    share = counted.mean(axis=0)
    power = np.divide(power, share, out=np.full_like(power, np.nan), where=share > 0.0)
    return frequency[1:], np.sqrt(power[1:])
