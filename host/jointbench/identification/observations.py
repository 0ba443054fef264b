"""From recorded signals to the rows of a least-squares problem, filtered alike on both sides."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jointbench.dynamics import BaseParameters, model_columns
from jointbench.errors import FitError
from jointbench.identification.recorded_signals import RecordedSignals, recorded_signals
from jointbench.identification.settings import FitSettings
from jointbench.recording.run import Run
from jointbench.robot import Array, Robot
from jointbench.signals import LowPass, Motion, bandwidth, moving, rest_threshold, smooth_motion, spans

_MOTION_HARMONICS = 10.0
_LEAST_CUTOFF_HZ = 20.0
_CHUNK = 4096
"""Samples per call of the regressor: bounds the memory for columns that are not kept."""


@dataclass(frozen=True)
class Observations:
    """Torque rows and their regressor on an even grid of times, gaps included.

    torque[k, j] ≈ regressor[k, j] @ base parameters, where complete[k].

    Attributes:
        time: [s], shape (n,).
        regressor: filtered as the torque was, on the board and on the host, shape (n, n_joints, rank).
        torque: filtered [N·m or N], zero of passive joints, shape (n, n_joints).
        motion: filtered position and derivatives, shape (n, n_joints) each.
        complete: rows away from gaps and ends, shape (n,).
        moving: rows of modelled joints away from rest, shape (n, n_joints); False where not complete.
        noise: standard deviation of the torque's mean between periods before filtering, or nan, shape (n_joints,).
        settings: with everything that was left open decided.
    """

    time: Array
    regressor: Array
    torque: Array
    motion: Motion
    complete: NDArray[np.bool_]
    moving: NDArray[np.bool_]
    noise: Array
    settings: FitSettings


def observe(run: Run, robot: Robot, base: BaseParameters, settings: FitSettings) -> Observations:
    """Turn a run into observations of the robot's base parameters.

    The same zero-phase low-pass goes over torque and over each column of the regressor ("parallel filtering"), and
    the columns also go through what the board did to the current; so no filter biases the parameters. Then two samples
    per period of the cut-off are kept.

    Args:
        run: the recording.
        robot: its robot.
        base: base parameters with drives.
        settings: what is None in it is decided from the recording.

    Raises:
        FitError: the run cannot give what the settings ask for.
        SignalError: the cut-off does not suit the sample rate.
    """
    signals = recorded_signals(run, robot, settings)
    cutoff = _default_cutoff(signals) if settings.cutoff_Hz is None else settings.cutoff_Hz
    low_pass = LowPass(cutoff, signals.sample_period, settings.filter_order)
    parts = list(spans(signals.valid, least=2 * low_pass.settling + low_pass.stride + 2))
    if not parts:
        longest = max(part.stop - part.start for part in spans(signals.valid))
        raise FitError(
            f"run {run.path}: its longest stretch without a gap has {longest} samples, and a low-pass at "
            f"{cutoff:.3g} Hz needs more than {2 * low_pass.settling + low_pass.stride + 1}; "
            f"record longer, or raise cutoff_Hz"
        )
    motions = [smooth_motion(signals.position[part], low_pass) for part in parts]
    settings = dataclasses.replace(
        settings,
        cutoff_Hz=cutoff,
        velocity_threshold=_thresholds(robot, settings, motions),
        rest_guard=0.5 / cutoff if settings.rest_guard is None else settings.rest_guard,
    )
    grid = np.arange(0, len(signals.time), low_pass.stride)
    n, joints = len(grid), robot.n_joints
    out = Observations(
        time=signals.time[grid],
        regressor=np.zeros((n, joints, base.rank)),
        torque=np.zeros((n, joints)),
        motion=Motion(*np.zeros((3, n, joints))),
        complete=np.zeros(n, dtype=np.bool_),
        moving=np.zeros((n, joints), dtype=np.bool_),
        noise=signals.noise,
        settings=settings,
    )
    for part, motion in zip(parts, motions, strict=True):
        inner = (grid >= part.start + low_pass.settling) & (grid < part.stop - low_pass.settling)
        _fill(out, inner, grid[inner] - part.start, signals, part, motion, low_pass, robot, base)
    return out


def _fill(
    out: Observations, rows: NDArray[np.bool_], picked: NDArray[np.intp], signals: RecordedSignals, part: slice,
    motion: Motion, low_pass: LowPass, robot: Robot, base: BaseParameters,
) -> None:
    """Fill the rows of one gapless stretch; `picked` are their samples within it."""
    assert out.settings.velocity_threshold is not None
    assert out.settings.rest_guard is not None
    guard = round(out.settings.rest_guard / signals.sample_period)
    out.complete[rows] = True
    out.moving[rows] = moving(motion.dq, np.array(out.settings.velocity_threshold), guard)[picked] & robot.modelled
    out.torque[rows] = low_pass.apply(np.where(robot.modelled, signals.torque[part], 0.0))[picked]
    for name in ("q", "dq", "ddq"):
        getattr(out.motion, name)[rows] = getattr(motion, name)[picked]
    columns = _base_columns(robot, base, motion)
    for joint in range(robot.n_joints):
        present = np.flatnonzero(columns[:, joint].any(axis=0))
        values = columns[:, joint, present]
        if signals.board_filters:
            values = signals.board_filters[joint].apply(values)
        out.regressor[np.flatnonzero(rows)[:, None], joint, present] = low_pass.apply(values)[picked]


def _base_columns(robot: Robot, base: BaseParameters, motion: Motion) -> Array:
    """Regressor of the base parameters, shape (n, n_joints, rank)."""
    n = len(motion.q)
    columns = np.empty((n, robot.n_joints, base.rank))
    for start in range(0, n, _CHUNK):
        part = slice(start, start + _CHUNK)
        full, _ = model_columns(robot, motion.q[part], motion.dq[part], motion.ddq[part])
        columns[part] = base.project(full).reshape(-1, robot.n_joints, base.rank)
    return columns


def _default_cutoff(signals: RecordedSignals) -> float:
    longest = max(spans(signals.valid), key=lambda part: part.stop - part.start)
    highest = 0.2 / signals.sample_period
    if longest.stop - longest.start < 3:
        return min(_LEAST_CUTOFF_HZ, highest)
    wanted = _MOTION_HARMONICS * bandwidth(signals.position[longest], signals.sample_period)
    return min(max(wanted, _LEAST_CUTOFF_HZ), highest)


def _thresholds(robot: Robot, settings: FitSettings, motions: list[Motion]) -> tuple[float, ...]:
    given = settings.velocity_threshold
    if given is None:
        return tuple(float(value) for value in rest_threshold(np.vstack([motion.dq for motion in motions])))
    if len(given) != robot.n_joints:
        raise FitError(
            f"velocity_threshold has {len(given)} values; robot {robot.name!r} needs one for each of its "
            f"{robot.n_joints} joints"
        )
    return given
