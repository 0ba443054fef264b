"""Friction from steady strokes in both directions: what does not turn with the direction cancels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.friction.data import FrictionData

_REST = 0.01
"""A joint slower than this share of its largest speed counts as standing between two strokes."""

_STEADY = 0.05
"""Share by which the speed may differ from a stroke's median for a sample to count, and the speeds of a pair."""

_LEAST_SHARE, _LEAST_SAMPLES = 0.5, 20
"""A stroke counts when at least this share of its samples, and so many of them, are steady."""


@dataclass(frozen=True, eq=False)
class Stroke:
    """The steady part of one move: mean velocity, and positions and torques of its samples, shape (n,)."""

    velocity: float
    position: Array
    torque: Array


def steady_strokes(position: Array, velocity: Array, torque: Array) -> list[Stroke]:
    """The steady parts of one joint's moves, in the order of time.

    Args:
        position: [rad or m], shape (n,), evenly spaced in time.
        velocity: [rad/s or m/s].
        torque: [N·m or N].
    """
    largest = float(np.abs(velocity).max(initial=0.0))
    direction = np.where(np.abs(velocity) > _REST * largest, np.sign(velocity), 0.0)
    cuts = np.flatnonzero(np.diff(direction)) + 1
    strokes: list[Stroke] = []
    for rows in np.split(np.arange(len(velocity)), cuts):
        if not len(rows) or direction[rows[0]] == 0.0:
            continue
        median = float(np.median(velocity[rows]))
        steady = rows[np.abs(velocity[rows] - median) <= _STEADY * abs(median)]
        if len(steady) >= max(_LEAST_SAMPLES, _LEAST_SHARE * len(rows)):
            strokes.append(Stroke(float(velocity[steady].mean()), position[steady], torque[steady]))
    return strokes


def combine_directions(strokes: list[Stroke]) -> FrictionData:
    """One row per pair of successive strokes at the same speed: half the difference of their torques.

    torque(v) = (mean torque forward - mean torque backward) / 2, both over the positions that both strokes cover.
    Gravity, cable forces and sensor offsets are the same function of position in both, and cancel. For a coupled joint
    with two motors this is, in joint torques, (T1+ ∓ T2+ - T1- ± T2-) / 2 of its motors.

    Args:
        strokes: as `steady_strokes` gives them.

    Returns:
        One row per pair, all speeds positive; friction is taken to be the same in both directions.

    Source: Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024.
    """
    speeds: list[float] = []
    torques: list[float] = []
    k = 0
    while k + 1 < len(strokes):
        first, second = strokes[k], strokes[k + 1]
        difference = _half_difference(first, second) if _are_pair(first, second) else None
        if difference is None:
            k += 1
            continue
        speeds.append(0.5 * (abs(first.velocity) + abs(second.velocity)))
        torques.append(difference)
        k += 2
    return FrictionData(np.array(speeds), np.array(torques))


def _are_pair(first: Stroke, second: Stroke) -> bool:
    apart = abs(first.velocity + second.velocity)
    return first.velocity * second.velocity < 0.0 and apart <= _STEADY * abs(first.velocity)


def _half_difference(first: Stroke, second: Stroke) -> float | None:
    """(forward - backward) / 2 over the positions both cover, None where they have next to none in common."""
    low = max(first.position.min(), second.position.min())
    high = min(first.position.max(), second.position.max())
    means: list[float] = []
    for stroke in (first, second):
        common = (stroke.position >= low) & (stroke.position <= high)
        if int(common.sum()) < _LEAST_SAMPLES:
            return None
        means.append(float(stroke.torque[common].mean()))
    return 0.5 * (means[0] - means[1]) * float(np.sign(first.velocity))
