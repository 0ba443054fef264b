"""Motion at an instant between two ticks of the plant, for boards whose clocks do not run with it."""

import numpy as np

from hil_tests.virtual_bench.plant import OVERSAMPLES, Motion
from jointbench.arrays import Array


def motion_between(before: Motion, after: Motion, part: float) -> Motion:
    """What sensors see of the tick's length of time that ends between two ticks.

    Positions run linearly, which at an acceleration a is wrong by up to a h²/8: 1 µrad at 10 rad/s². The converters'
    instants keep their distances and lie between those of the two ticks; temperature and voltage are the later ones.

    Args:
        before, after: motion of two ticks in a row.
        part: of the way from the first tick's end to the second's, above 0 and at most 1.
    """
    if part == 1.0:
        return after
    return Motion(
        motor_position=before.motor_position + part * (after.motor_position - before.motor_position),
        link_position=before.link_position + part * (after.link_position - before.link_position),
        current=_window(before.current, after.current, part),
        torque=_window(before.torque, after.torque, part),
        temperature=after.temperature,
        bus_voltage=after.bus_voltage,
        foot_force=before.foot_force + part * (after.foot_force - before.foot_force),
    )


def _window(before: Array, after: Array, part: float) -> Array:
    """OVERSAMPLES values at equal distances, the last `part` of the way through those of `after`."""
    both = np.concatenate((before, after))
    first = int(part * OVERSAMPLES)
    rest = part * OVERSAMPLES - first
    left = both[first : first + OVERSAMPLES]
    return left + rest * (both[first + 1 : first + 1 + OVERSAMPLES] - left)
