"""Position and joint torque of a run, the two signals that a fit compares, in one unbroken order."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import CHUNK_ROWS, Array, chunks, read_rows, release_pages, scratch_array
from jointbench.errors import FileError, FitError, ShapeError
from jointbench.identification.settings import FitSettings
from jointbench.model import Robot
from jointbench.model.wrenches import Wrench, external_torques
from jointbench.recording import Run, Samples, as_run
from jointbench.recording.log_table import MOST
from jointbench.signals import (
    BoardFilter,
    FourierFit,
    LowPass,
    Motion,
    average_periods,
    fit_fourier_series,
    interpolate_samples,
    smooth_motion,
    valid_spans,
)

if TYPE_CHECKING:
    from jointbench.excitation import Excitation
    from jointbench.identification.logged_velocity import LoggedVelocity


_BEYOND = 3
"""Samples on each side of a place that interpolation looks at."""


def spacing(values: Array, needed: NDArray[np.bool_]) -> int:
    """Rows from one sample to the next: 1 where each row has one.

    Args:
        values: NaN where there is none, shape (n, n_joints).
        needed: joints whose values a sample needs, shape (n_joints,).
    """
    for part in chunks(len(values)):
        rows = np.flatnonzero(_known(read_rows(values, part), needed))
        if len(rows) > 1:
            return int(np.diff(rows).min())
    return 1


def filled(values: Array, every: int, needed: NDArray[np.bool_]) -> Array:
    """Values in all rows between samples that each `every`-th row has, but across none that is missing.

    Args:
        values: NaN where there is none, shape (n, n_joints).
        every: rows from one sample to the next.
        needed: joints whose values a sample needs, shape (n_joints,).
    """
    whole = scratch_array(values.shape, np.float64)
    for part in chunks(len(values)):
        whole[part] = np.nan
        release_pages(whole)
    known = np.concatenate([_known(read_rows(values, part), needed) for part in chunks(len(values))])
    phase = int(np.argmax(known)) % every
    for span in valid_spans(known[phase::every], 2 * _BEYOND):
        for start in range(span.start, span.stop - 1, max(CHUNK_ROWS // every, 1)):
            stop = min(start + max(CHUNK_ROWS // every, 1), span.stop - 1)  # the cell behind the last sample has no end
            first = min(max(start - _BEYOND, span.start), span.stop - 2 * _BEYOND)
            last = max(min(stop + _BEYOND + 1, span.stop), span.start + 2 * _BEYOND)
            rows = slice(phase + first * every, phase + (last - 1) * every + 1)
            own = np.arange(start * every, stop * every + 1)
            whole[phase + own] = interpolate_samples(read_rows(values, rows)[::every], own / every - first)
            release_pages(whole)
    return whole


def _known(values: Array, needed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray((np.isfinite(values) | ~needed).all(axis=1))


_MOST_HARMONICS = 10
"""Times the plan's: beyond, positions hold vibration rather than motion."""


_STILL = 0.002
"""Share of its range within which a joint stands still: 0.7 degrees of a turn. Less motion tells a fit nothing."""


def is_still(robot: Robot, travel: Array) -> NDArray[np.bool_]:
    """Return which joints stand still: they move by no more than 0.2 % of their range.

    Args:
        robot: the robot.
        travel: from the lowest to the highest position of each joint [rad or m], shape (n_joints,).

    Returns:
        Mask, shape (n_joints,).
    """
    low, high = robot.position_limits.T
    return np.asarray(travel <= _STILL * (high - low))


class Gaps(NamedTuple):
    """Gaps between valid samples: how many were bridged, and how many split the recording."""

    bridged: int
    split: int


@dataclass(frozen=True)
class RecordedSignals:
    """Positions and torques of a run at its own sample rate, periods averaged where asked.

    Those of a long log lie in its file: take them chunk by chunk, by `read_rows`.

    Attributes:
        time: [s], shape (n,).
        position: [rad or m], shape (n, n_joints).
        torque: at the joints [N·m or N], shape (n, n_joints).
        valid: samples of which all joints' positions and all modelled joints' torques are known, shape (n,).
        noise: what differs from period to period in the torque, as standard deviation of the mean over the
            periods, shape (n_joints,); nan where there is only one period.
        board_filters: what the torque went through on the board, one per joint; empty where that is not known.
        sample_period: [s].
        spacing: from one sample that boards sent to the next [s]; in between, positions and torques are interpolated.
        outliers: samples that the average over the periods left out, by each joint's position, then each one's torque,
            shape (2 n_joints,).
        series: the Fourier series through the positions, or None where it was not asked for.
        gaps: of the recording, where they have been looked for.
        velocity: as logged, where that is taken in place of differences of the positions.
    """

    time: Array
    position: Array
    torque: Array
    valid: NDArray[np.bool_]
    noise: Array
    board_filters: tuple[BoardFilter, ...]
    sample_period: float
    spacing: float
    outliers: NDArray[np.intp]
    series: FourierFit | None = None
    gaps: Gaps | None = None
    velocity: LoggedVelocity | None = None

    def smooth_motion(self, span: slice, low_pass: LowPass) -> Motion:
        """Motion of a span without gaps behind a low-pass; acceleration is the slope of the velocity that is taken."""
        motion = smooth_motion(read_rows(self.position, span), low_pass)
        if self.velocity is None:
            return motion
        dq = np.where(self.velocity.joints, low_pass.apply(read_rows(self.velocity.values, span)), motion.dq)
        ddq = np.where(self.velocity.joints, np.gradient(dq, self.sample_period, axis=0), motion.ddq)
        return Motion(motion.q, dq, ddq)


def recorded_signals(run: Run, robot: Robot, settings: FitSettings) -> RecordedSignals:
    """Take position and torque from a run.

    Args:
        run: the recording; of a played excitation only the samples while it played are used.
        robot: tells how motor currents become joint torques.
        settings: `position`, `zeros`, `torque`, `interval`, `average_periods`, `reject_outliers` and `motion` matter
            here.

    Raises:
        FitError: the run does not have the signal asked for, other joints than the robot, nothing in the interval, a
            value beyond all that is measured, or no Fourier series where one is asked for.
        SignalError: the Fourier series has too few samples.
    """
    samples = run.samples
    if samples.joint_names != robot.joint_names:
        raise FitError(
            f"run {run.path} has joints {', '.join(samples.joint_names)}, but robot {robot.name!r} has "
            f"{', '.join(robot.joint_names)}; give the robot that was recorded"
        )
    position = _position(run, settings)
    torque, filters = _torque(run, robot, settings)
    _check_measured(run, "position", position)
    _check_measured(run, "torque", torque)
    if settings.zeros is not None:
        position = _shifted(position, settings.zeros)
    position, torque, every = _filled(position, torque, robot.modelled)
    valid, played = _valid(samples, settings, position, torque, robot.modelled)
    if not valid.any():
        raise FitError(
            f"run {run.path} has no complete sample"
            + (f" from {settings.interval[0]:g} to {settings.interval[1]:g} s" if settings.interval else "")
            + f"; it covers {samples.time[0]:g} to {samples.time[-1]:g} s"
        )
    h = samples.sample_period
    n = robot.n_joints
    if run.excitation is None or not played or not settings.average_periods:
        _check_no_series(run, settings)
        unknown, none = np.full(n, np.nan), np.zeros(2 * n, dtype=np.intp)
        return RecordedSignals(samples.time, position, torque, valid, unknown, filters, h, every * h, none)
    folded_tick, folded = _folded(run.excitation, samples)
    average = average_periods((position, torque), valid, folded_tick, folded, reject_outliers=settings.reject_outliers)
    # Of samples sent each few ticks the noise lies in as small a part of the band: as that of more noise at each tick.
    noise = average.standard_deviation[n:] * np.sqrt(np.mean(every / average.count[average.valid]))
    time = h * np.arange(folded, dtype=np.float64)
    position, torque, valid = average.mean[:, :n], average.mean[:, n:], average.valid
    if settings.motion == "filtered":
        return RecordedSignals(time, position, torque, valid, noise, filters, h, every * h, average.n_outliers)
    series, valid = _series(run, run.excitation, time, position, valid)
    return RecordedSignals(time, position, torque, valid, noise, filters, h, every * h, average.n_outliers, series)


def bridge_gaps(signals: RecordedSignals, longest: float) -> RecordedSignals:
    """Interpolate positions and torques linearly across short gaps.

    Args:
        signals: of a recording.
        longest: gap that is bridged [s], from one valid sample to the next; longer ones stay.

    Returns:
        The signals whose `valid` holds the bridged samples, too; the same ones where there is no gap.
    """
    edges = np.diff(signals.valid.astype(np.int8))
    starts, stops = np.flatnonzero(edges == -1), np.flatnonzero(edges == 1)  # last before, last within a gap
    stops = stops[np.searchsorted(stops, starts[0]) :] if len(starts) else stops
    pairs = list(zip(starts.tolist(), stops.tolist(), strict=False))
    short = [(start, stop + 1) for start, stop in pairs if (stop + 1 - start) * signals.sample_period <= longest]
    if not short:
        return dataclasses.replace(signals, gaps=Gaps(0, len(pairs)))
    valid = signals.valid.copy()
    position, torque = (_copied(values) for values in (signals.position, signals.torque))
    for start, stop in short:
        share = np.linspace(0.0, 1.0, stop - start + 1)[1:-1, None]
        for values in (position, torque):
            values[start + 1 : stop] = (1.0 - share) * values[start] + share * values[stop]
        valid[start + 1 : stop] = True
    gaps = Gaps(len(short), len(pairs) - len(short))
    return dataclasses.replace(signals, position=position, torque=torque, valid=valid, gaps=gaps)


def _copied(values: Array) -> Array:
    copy = scratch_array(values.shape, np.float64)
    for part in chunks(len(values)):
        copy[part] = read_rows(values, part)
        release_pages(copy)
    return copy


def _shifted(position: Array, zeros: tuple[float, ...]) -> Array:
    """Positions from other zeros, shape as they have."""
    if len(zeros) != position.shape[1]:
        raise FitError(f"zeros has {len(zeros)} values; give one for each of the {position.shape[1]} joints")
    shifted = _copied(position)
    for part in chunks(len(shifted)):
        shifted[part] += np.array(zeros)
        release_pages(shifted)
    return shifted


def _check_measured(run: Run, name: str, values: Array) -> None:
    """Refuse numbers whose squares are none."""
    for part in chunks(len(values)):
        cells = read_rows(values, part)
        beyond = np.argwhere(np.isfinite(cells) & (np.abs(cells) > MOST))
        if len(beyond):
            row, joint = beyond[0].tolist()
            raise FitError(
                f"run {run.path}: the {name} of joint {run.samples.joint_names[joint]!r} is {cells[row, joint]:g} at "
                f"{read_rows(run.samples.time, part)[row]:g} s, beyond all that is measured (at most {MOST:g}); mend "
                f"the log, or leave that time out of it"
            )


def _valid(
    samples: Samples, settings: FitSettings, position: Array, torque: Array, modelled: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], bool]:
    """Samples to use: complete ones in the interval, of a played motion those while it played; and whether it did."""
    valid = np.empty(samples.n_samples, dtype=np.bool_)
    playing = np.empty_like(valid)
    for part in chunks(samples.n_samples):
        valid[part] = read_rows(samples.valid, part).all(axis=1)
        valid[part] &= np.isfinite(read_rows(position, part)).all(axis=1)
        valid[part] &= (np.isfinite(read_rows(torque, part)) | ~modelled).all(axis=1)
        playing[part] = read_rows(samples.play_tick, part) >= 0
        if settings.interval is not None:
            start, stop = settings.interval
            time = read_rows(samples.time, part)
            valid[part] &= (time >= start) & (time < stop)
    played = bool(playing.any())
    return valid & playing if played else valid, played


def _filled(position: Array, torque: Array, modelled: NDArray[np.bool_]) -> tuple[Array, Array, int]:
    """Position and torque at each tick, and the ticks from one sample that boards sent to the next.

    `Samples.valid` does not tell the ticks in between.
    """
    every = spacing(position, np.ones_like(modelled)), spacing(torque, modelled)
    if every[0] > 1:
        position = filled(position, every[0], np.ones_like(modelled))
    if every[1] > 1:
        torque = filled(torque, every[1], modelled)
    return position, torque, max(every)


def _folded(excitation: Excitation, samples: Samples) -> tuple[NDArray[np.intp], int]:
    """Sample of the motion, played once, that each sample is of, and how many that has."""
    tick, folded = scratch_array((samples.n_samples,), np.intp), 0
    for part in chunks(samples.n_samples):
        tick[part], folded = excitation.fold(read_rows(samples.play_tick, part), samples.sample_period)
        release_pages(tick)
    return tick, folded


def _check_no_series(run: Run, settings: FitSettings) -> None:
    if settings.motion == "fourier":
        raise FitError(
            f'run {run.path} gives no averaged periods of a known motion; motion = "fourier" needs average_periods and '
            f'a run that was played by jointbench, or take motion = "filtered"'
        )


def _series(
    run: Run, excitation: Excitation, time: Array, position: Array, valid: NDArray[np.bool_]
) -> tuple[FourierFit, NDArray[np.bool_]]:
    """The Fourier series through the positions, and the valid samples of it: those of ramps are not."""
    from jointbench.excitation import RampedFourier, RestToRestFourier  # the optimiser beside them is slow to import

    basis = excitation.basis
    if not isinstance(basis, (RampedFourier, RestToRestFourier)):
        raise FitError(
            f'run {run.path} played a {excitation.family} motion, which is no Fourier series; take motion = "filtered"'
        )
    part = basis.repetition
    least = round(part.period / basis.fastest_cycle)
    within = valid & (time >= part.start) & (time < part.start + part.period)
    series = fit_fourier_series(
        time - part.start, position, within, part.period, min_harmonics=least, max_harmonics=_MOST_HARMONICS * least
    )
    return series, within


def _position(run: Run, settings: FitSettings) -> Array:
    if settings.position == "motor":
        return run.samples.motor_position
    return _present(run, run.samples.link_position, "link_position", 'position = "motor"')


def _torque(run: Run, robot: Robot, settings: FitSettings) -> tuple[Array, tuple[BoardFilter, ...]]:
    """Joint torque, and what filtered it on its way."""
    samples = run.samples
    if settings.torque == "joint":
        return _present(run, samples.joint_torque, "joint_torque", 'torque = "motor"'), samples.board_filters or ()
    torque = _present(run, samples.motor_torque, "motor_torque", 'torque = "joint"')
    filters = samples.board_filters or ()
    for coupling in robot.couplings if filters else ():
        first, *others = (filters[robot.joint_index(name)] for name in coupling.joints)
        if any(other != first for other in others):
            raise FitError(
                f"the boards of the coupled joints {', '.join(coupling.joints)} filtered their currents differently, "
                f"so their joint torques cannot be told apart; record with one filter on all of them"
            )
    return torque, filters


def _present(run: Run, values: Array | None, name: str, instead: str) -> Array:
    if values is None:
        raise FitError(f"run {run.path} has no {name}; record that channel, or fit with {instead}")
    return values


def without_external(run: Run | str | Path, wrench: Wrench) -> Run:
    """The run with the joint torques that it would have had without a known wrench on the robot.

    For a fit, a validation and all else that takes runs: tau - tau_ext(q), with tau_ext filtered as the boards filtered
    the torque. A friction that grows with the load was that of the loaded joint, and stays.

    Args:
        run: or its directory: of which all torques are changed, from motors and of sensors at joints.
        wrench: constant, or one for each of the run's samples.

    Raises:
        RunError: a directory that is named cannot be read.
        FitError: the run's robot has no such frame, its base moves, or the wrench does not match the samples.

    >>> pushed = jb.open_run("runs/arm")
    >>> free = jb.without_external(pushed, jb.Wrench("upper_arm", [0.0, 0.0, -20.0], moment=[2.0, 2.0, 2.0]))
    >>> bool(np.any(free.samples.motor_torque != pushed.samples.motor_torque)), free.warnings
    (True, ("a known force at 'upper_arm' was taken off its torques",))
    """
    run = as_run(run)
    samples, robot = run.samples, run.robot
    if robot.base_link is not None:
        raise FitError(
            f"run {run.path}: the base of {robot.name!r} moves and carries part of the wrench; a known force can be "
            f"taken off only where the base is fixed"
        )
    try:
        torque = _torques(run, wrench)
    except (FileError, ShapeError) as error:
        raise FitError(f"run {run.path}: {error}") from error
    changed: dict[str, Any] = {
        name: _less(values, torque)
        for name in ("motor_torque", "joint_torque")
        if (values := getattr(samples, name)) is not None
    }
    force = np.asarray(wrench.force)
    said = {"frame": wrench.frame, "force_N": force.tolist() if force.ndim == 1 else "recorded"}
    return dataclasses.replace(
        run,
        samples=dataclasses.replace(samples, **changed),
        provenance={**run.provenance, "external": said},
        warnings=(*run.warnings, f"a known force at {wrench.frame!r} was taken off its torques"),
    )


def _torques(run: Run, wrench: Wrench) -> Array:
    """Return the joints' torque against the wrench, as the boards filtered it, shape (n, n_joints)."""
    samples, robot = run.samples, run.robot
    for name, value in (("force", np.asarray(wrench.force)), ("moment", np.asarray(wrench.moment))):
        if value.shape not in ((3,), (samples.n_samples, 3)):
            raise ShapeError(f"{name} has shape {value.shape}; it must be (3,), or ({samples.n_samples}, 3)")
    torque = scratch_array((samples.n_samples, robot.n_joints), np.float64)
    for part in chunks(samples.n_samples):
        torque[part] = external_torques(robot, _between(read_rows(samples.motor_position, part)), wrench.part(part))
        release_pages(torque)
    for joint, board_filter in enumerate(samples.board_filters or ()):
        torque[:, joint] = board_filter.apply(torque[:, joint])
    return torque


def _between(position: Array) -> Array:
    """Positions of which those that are missing are between their neighbours, or 0 where there are none."""
    rows = np.arange(len(position))
    joints: list[Array] = []
    for joint in position.T:
        known = np.isfinite(joint)
        joints.append(np.interp(rows, rows[known], joint[known]) if known.any() else np.zeros(len(joint)))
    return np.stack(joints, axis=1)


def _less(values: Array, torque: Array) -> Array:
    changed = scratch_array(values.shape, np.float64)
    for part in chunks(len(values)):
        changed[part] = read_rows(values, part) - torque[part]
        release_pages(changed)
    return changed
