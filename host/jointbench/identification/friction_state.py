"""What friction remembers from one sample to the next."""

from typing import NamedTuple

from jointbench.arrays import Array


class FrictionState(NamedTuple):
    """What friction remembers.

    Attributes:
        position: of the joints at the last sample [rad or m], shape (n_joints,).
        stops: stop operators there, each over its threshold, in [-1, 1], shape (n_stops,).
    """

    position: Array
    stops: Array


class Prediction(NamedTuple):
    """Joint torque of a motion [N·m or N], shape (n, n_joints), and what friction remembers after it."""

    torque: Array
    state: FrictionState
