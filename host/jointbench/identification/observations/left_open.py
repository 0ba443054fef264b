"""What the settings of a fit leave open, decided from the recording."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.observations.parallel_filter import ParallelFilter
from jointbench.identification.observations.recorded_signals import RecordedSignals
from jointbench.identification.observations.stretches import Stretch
from jointbench.identification.settings import FitSettings
from jointbench.memory_mapping import read_rows
from jointbench.signals import bandwidth, rest_threshold, valid_spans

_MOTION_HARMONICS = 10.0
_LEAST_CUTOFF_HZ = 20.0

_BAND_SAMPLES, _BAND_PIECES = 1 << 17, 8
"""Samples of the longest stretch without a gap up to which all of it tells the motion's band; of a longer one as many,
in so many pieces spread evenly over it."""


def default_cutoff(signals: RecordedSignals) -> float:
    """Ten times the frequency below which 99 % of the motion lies [Hz], but 20 Hz and a fifth of the sample rate."""
    longest = max(valid_spans(signals.valid), key=lambda part: part.stop - part.start)
    samples = longest.stop - longest.start
    highest = 0.2 / signals.spacing
    if samples < 3:
        return min(_LEAST_CUTOFF_HZ, highest)
    count, length = (1, samples) if samples <= _BAND_SAMPLES else (_BAND_PIECES, _BAND_SAMPLES // _BAND_PIECES)
    starts = np.linspace(longest.start, longest.stop - length, count).astype(np.intp)
    position = np.stack([read_rows(signals.position, slice(int(start), int(start) + length)) for start in starts])
    wanted = _MOTION_HARMONICS * bandwidth(position, signals.sample_period)
    return min(max(wanted, _LEAST_CUTOFF_HZ), highest)


def velocity_threshold(
    settings: FitSettings, filtered: ParallelFilter, stretches: Sequence[Stretch]
) -> tuple[float, ...]:
    """Speed below which each joint is near rest [rad/s or m/s]: as set, or 3 % of its largest in all of the log.

    Raises:
        FitError: there is not one for each joint.
    """
    robot, given = filtered.base.robot, settings.velocity_threshold
    if given is None:
        fastest = np.zeros(robot.n_joints)
        for stretch in stretches:
            fastest = np.maximum(fastest, filtered.speed(stretch))
        return _floats(rest_threshold(fastest[None]))
    if len(given) != robot.n_joints:
        raise FitError(
            f"velocity_threshold has {len(given)} values; robot {robot.name!r} needs one for each of its "
            f"{robot.n_joints} joints"
        )
    return given


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
