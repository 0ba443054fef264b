"""Friction from a stair of speeds that was played: each position is passed twice at the same speed, either way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.identification.friction.data import FrictionData
from jointbench.recording.run import Run

if TYPE_CHECKING:
    from jointbench.excitation import SpeedStairs

_UNSETTLED = 0.25
"""Share of a hold that is left out at either end: the same positions are left in both directions."""

_LEAST_LOAD = 0.25
"""Share of the largest friction that the load must reach for its part in friction to be told: what a small load seems
to add would be carried far beyond it."""


def played_stairs(run: Run) -> SpeedStairs | None:
    """The stair of speeds that a run played, None where it played something else."""
    from jointbench.excitation import SpeedStairs  # the optimiser beside it is slow to import

    basis = run.excitation.basis if run.excitation is not None else None
    return basis if isinstance(basis, SpeedStairs) and bool((run.samples.play_tick >= 0).any()) else None


def stairs_friction(run: Run, stairs: SpeedStairs, torque: Array, valid: NDArray[np.bool_]) -> dict[str, FrictionData]:
    """Friction of the joints that went up and down the stair: a row for each speed and playing.

    torque(v) = (mean torque one way - mean torque back) / 2; half their sum is the load, which does not turn with the
    direction: gravity above all. A joint that hardly carries any has no load among its data.

    Args:
        run: that played it.
        stairs: as `played_stairs` gives it.
        torque: joint torque [N·m or N], shape (n_samples, n_joints).
        valid: samples to use, shape (n_samples,).

    Source: Lu et al., Chinese Journal of Mechanical Engineering 37:74, 2024.
    """
    assert run.excitation is not None  # it played the stair
    samples, period = run.samples, run.samples.sample_period
    place, rows = _places(samples.play_tick), list[tuple[Array, Array, Array]]()
    length, margin = round(stairs.hold / period), round(_UNSETTLED * stairs.hold / period)
    part = np.arange(margin, length - margin)
    for playing in range(max(run.repeats, 1)):
        begin = playing * round(stairs.duration / period)
        for there, back, _ in stairs.holds:
            ticks = [begin + round(start / period) + part for start in (there, back)]
            if ticks[0][-1] >= len(place) or ticks[1][-1] >= len(place):
                continue  # cut off
            up, down = (place[each] for each in ticks)
            both = np.concatenate([up, down])
            if (both >= 0).all() and valid[both].all():
                speeds = (_slope(samples.motor_position[up], period), _slope(samples.motor_position[down], period))
                torques = (torque[up].mean(axis=0), torque[down].mean(axis=0))
                halves = 0.5 * (torques[0] - torques[1]), 0.5 * (torques[0] + torques[1])
                rows.append((0.5 * (speeds[0] - speeds[1]), *halves))
    if not rows:
        return {}
    speed, friction, load = (np.array(column) for column in zip(*rows, strict=True))
    turns = np.sign(run.excitation.weights[:, 0])
    loaded = np.abs(load).max(axis=0) >= _LEAST_LOAD * np.abs(friction).max(axis=0)
    return {
        name: FrictionData(speed[:, j] * turns[j], friction[:, j] * turns[j], load[:, j] if loaded[j] else None)
        for j, name in enumerate(samples.joint_names)
        if turns[j]
    }


def _places(play_tick: NDArray[np.int64]) -> NDArray[np.int64]:
    """In which row each tick of the motion is, -1 where it is in none, shape (n_ticks,)."""
    place = np.full(int(play_tick.max()) + 1, -1, dtype=np.int64)
    playing = np.flatnonzero(play_tick >= 0)
    place[play_tick[playing]] = playing
    return place


def _slope(position: Array, period: float) -> Array:
    """Velocity of each column by the straight line through it, shape (n_joints,)."""
    time = period * (np.arange(len(position)) - 0.5 * (len(position) - 1))
    return time @ position / (time @ time)
