"""Whether the weight on a foot is that of the robot, all the time."""

from __future__ import annotations

import numpy as np

from jointbench.errors import StuckFootSensor, WrongTotalMass
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.robot import CORNERS

_SIGMAS = 3.0

_MOVED = 5.0
"""Standard deviations of a zero that it moves by in the middle of a recording, for it to have moved by itself."""

_LEAST_TIME = 5.0
"""Before and after such a step [s]: over that the accelerations of a mass spread otherwise are next to nothing."""

_AROUND = 12
"""Rows before and after it that tell which corner it was: where the motion is next to a cubic."""


def check_steady_sensors(stance: Stance) -> None:
    """Refuse a stance in the middle of which the weight steps: a corner's reading moved without the force on it.

    Raises:
        StuckFootSensor: names the corner, the step, and when it came.
    """
    excess, n = stance.vertical_force - stance.weight, stance.n_samples
    least = round(_LEAST_TIME / stance.sample_period)
    if n < 2 * least:
        return
    before = np.arange(least, n - least + 1)
    columns = np.column_stack([excess, stance.force_nuisance_columns])
    sums = np.cumsum(columns, axis=0)[before - 1]
    steps = (columns.sum(axis=0) - sums) / (n - before)[:, None] - sums / before[:, None]
    at = int(np.argmax(np.abs(steps[:, 0]) * np.sqrt(before * (n - before))))
    # Gains explain a step as far as the corners' shares of the weight changed with it.
    gains = float(np.linalg.norm(steps[at, 1:] * stance.data_sheet))
    zero = float(stance.data_sheet[stance.nuisance_names.index(f"{stance.foot}.{CORNERS[0].replace(' ', '_')}.zero")])
    if abs(steps[at, 0]) <= _SIGMAS * gains + _MOVED * zero:
        return
    row = int(before[at])
    around = slice(max(row - _AROUND, 0), row + _AROUND)
    powers = np.vander(np.arange(len(excess[around])), 4, increasing=True)
    follows = np.linalg.lstsq(np.column_stack([powers, excess[around]]), stance.forces[around], rcond=None)[0][-1]
    corner = int(np.argmax(follows))
    raise StuckFootSensor(
        f"{stance.foot}: its sensor {CORNERS[corner]} moved by itself at about {stance.time[row]:.2f} s: from then on "
        f"the corners carry {steps[at, 0]:+.1f} N more than before, and a steady zero is known to {zero:.1f} N; "
        f"repair or replace it, and record again"
    )


def check_total_mass(stance: Stance, total_mass: float) -> None:
    """Refuse a mass whose weight is not that on the foot, by more than sensors and cables may be wrong.

    Raises:
        WrongTotalMass: by more than three standard deviations.
    """
    excess = float(np.mean(stance.vertical_force - stance.weight))
    sigma = float(np.linalg.norm(stance.force_nuisance_columns.mean(axis=0) * stance.data_sheet))
    if abs(excess) > _SIGMAS * sigma:
        gravity = float(np.linalg.norm(stance.robot.gravity))
        raise WrongTotalMass(
            f"total_mass = {total_mass:.3f} kg is wrong: {stance.foot} carries {total_mass + excess / gravity:.3f} ± "
            f"{sigma / gravity:.3f} kg, and may differ by {_SIGMAS:g} σ = {_SIGMAS * sigma / gravity:.3f} kg; weigh "
            f"the robot with its cables held, and let the sensors find their zeros with the foot in the air"
        )
