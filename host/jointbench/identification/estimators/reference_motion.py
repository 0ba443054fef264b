"""The motion that a robot was to make while it was recorded: as planned, or as measured where no plan is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.estimators.moved_run import measured, measured_positions, with_positions
from jointbench.identification.settings import FitSettings
from jointbench.recording.run import Run
from jointbench.signals import LowPass, smooth_motion, valid_spans


class Reference(NamedTuple):
    """A stretch of a reference.

    Attributes:
        samples: of the run that it is for, shape (m,); each repetition of a plan has the same.
        places: which of the stretch each of them is, shape (m,).
        q, dq: position and velocity [rad, rad/s; or m], shape (n, n_joints).
    """

    samples: NDArray[np.intp]
    places: NDArray[np.intp]
    q: Array
    dq: Array


def is_planned(run: Run) -> bool:
    """Whether it is known what was played."""
    return run.excitation is not None and bool((run.samples.play_tick >= 0).any())


def planned_reference(run: Run) -> Reference:
    """One playing of the run's excitation, for all of its repetitions.

    Raises:
        FitError: nothing was played.
    """
    if run.excitation is None or not is_planned(run):
        raise FitError(
            f"run {run.path} does not tell which motion was planned, as only those do that were played by jointbench; "
            f'take instruments = "simulated", which can follow the measured motion'
        )
    period = run.samples.sample_period
    once = round(run.excitation.duration / period)
    q, dq, _ = run.excitation.evaluate(period * np.arange(once))
    samples = np.flatnonzero(run.samples.play_tick >= 0)
    return Reference(samples, run.samples.play_tick[samples] % once, q, dq)


def planned_run(run: Run) -> Run:
    """The run with its planned positions.

    Raises:
        FitError: nothing was played.
    """
    reference = planned_reference(run)
    position = np.full(run.samples.motor_position.shape, np.nan)
    position[reference.samples] = reference.q[reference.places]
    return with_positions(run, position)


def measured_references(run: Run, settings: FitSettings) -> Iterator[Reference]:
    """The measured motion, low-passed as for the fit, of each gapless stretch that is fitted."""
    samples = run.samples
    assert settings.cutoff_Hz is not None, "settings of an observation are decided"
    low_pass = LowPass(settings.cutoff_Hz, samples.sample_period, settings.filter_order)
    valid = measured(run, settings)
    if settings.interval is not None:
        valid = valid & (samples.time >= settings.interval[0]) & (samples.time < settings.interval[1])
    position = measured_positions(run, settings)
    for part in valid_spans(valid, min_length=2 * low_pass.settling + low_pass.stride + 2):
        motion = smooth_motion(position[part], low_pass)
        places = np.arange(part.stop - part.start)
        yield Reference(places + part.start, places, motion.q, motion.dq)
