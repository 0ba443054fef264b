"""A run with the positions of another motion, to be observed exactly as the run itself was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.settings import FitSettings
from jointbench.recording.run import Run


def measured_positions(run: Run, settings: FitSettings) -> Array:
    """Positions of the encoders that a fit goes by [rad or m], shape (n_samples, n_joints)."""
    link = run.samples.link_position
    return link if settings.position == "link" and link is not None else run.samples.motor_position


def measured(run: Run, settings: FitSettings) -> NDArray[np.bool_]:
    """Samples at which the positions of all joints are known, shape (n_samples,)."""
    known = np.isfinite(measured_positions(run, settings))
    return np.asarray((run.samples.valid & known).all(axis=1))


def with_positions(run: Run, position: Array) -> Run:
    """The run with these positions in the place of those of its encoders; torques and gaps stay.

    Args:
        run: the recording.
        position: of the joints at its samples, seen by motor and link encoders alike; NaN where it is not known
            [rad or m], shape (n_samples, n_joints).
    """
    samples = run.samples
    known = np.asarray(np.isfinite(position).all(axis=1))[:, None]
    moved = replace(
        samples,
        motor_position=position,
        link_position=None if samples.link_position is None else position,
        valid=samples.valid & known,
    )
    return replace(run, samples=moved)


def with_samples(run: Run, chosen: NDArray[np.bool_]) -> Run:
    """The run as if the samples that are not chosen, shape (n_samples,), were missing."""
    return replace(run, samples=replace(run.samples, valid=run.samples.valid & chosen[:, None]))
